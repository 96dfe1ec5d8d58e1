"""kserve: replaces the KServe SDK if it is not installed: the same calls send the same bytes."""
import json

import numpy
import oip_clients as clients


class RESTConfig:
    def __init__(self, protocol="v1"):
        self.protocol = protocol


class InferInput:
    def __init__(self, name, shape, datatype):
        self.item = [name, shape, datatype]

    def set_data_from_numpy(self, rows, binary_data=True):
        self.item += [[x for row in rows.tolist() for x in row], binary_data]


class InferRequest:
    def __init__(self, model_name, infer_inputs, parameters=None):
        self.request = clients.kserve_infer(model_name, [item.item for item in infer_inputs], parameters=parameters)


class InferOutput:
    def __init__(self, output):
        self.name, self.output = output["name"], output

    def as_numpy(self):
        data, width = self.output["data"], self.output["shape"][-1]
        return numpy.array([data[at:at + width] for at in range(0, len(data), width)])


class InferResponse:
    def __init__(self, answer):
        self.outputs = [InferOutput(output) for output in answer["outputs"]]


class InferenceRESTClient:
    def __init__(self, config):
        if config.protocol != "v2":
            raise ValueError("the stand-in speaks v2 alone")

    async def is_server_live(self, url):
        return clients.send(url, ("GET", "/v2/health/live", clients.HTTPX, b""))[0] == 200

    async def is_model_ready(self, url, model):
        return clients.send(url, ("GET", f"/v2/models/{model}/ready", clients.HTTPX, b""))[0] == 200

    async def infer(self, url, request, model_name=None):
        status, _, body = clients.send(url, request.request)
        if status != 200:
            raise RuntimeError(body.decode())
        return InferResponse(json.loads(body))

    async def close(self):
        pass
