"""http.py: replaces tritonclient.http if it is not installed: the same calls send the same bytes."""
import numpy
import oip_clients as clients
from oip import read_answer


class InferInput:
    def __init__(self, name, shape, datatype):
        self.item = [name, shape, datatype]

    def set_data_from_numpy(self, rows, binary_data=True):
        self.item += [rows.tolist(), binary_data]


class InferRequestedOutput:
    def __init__(self, name, binary_data=True):
        self.item = (name, binary_data)


class InferResult:
    def __init__(self, answer):
        self.outputs = {output["name"]: output for output in answer["outputs"]}

    def as_numpy(self, name):
        data, width = self.outputs[name]["data"], self.outputs[name]["shape"][-1]
        return numpy.array([data[at:at + width] for at in range(0, len(data), width)])


class InferenceServerClient:
    def __init__(self, url):
        if "://" in url:
            raise ValueError("url should not include the scheme")
        self.url = "http://" + url

    def is_server_live(self):
        return clients.send(self.url, ("GET", "/v2/health/live", clients.TRITON, b""))[0] == 200

    def is_model_ready(self, model, version=""):
        path = f"/v2/models/{model}" + (f"/versions/{version}" if version else "") + "/ready"
        return clients.send(self.url, ("GET", path, clients.TRITON, b""))[0] == 200

    def infer(self, model, inputs, model_version="", outputs=None, parameters=None):
        request = clients.triton_infer(model, [item.item for item in inputs], [item.item for item in outputs or []],
                                       model_version, parameters)
        status, fields, body = clients.send(self.url, request)
        if status != 200:
            raise RuntimeError(body.decode())
        return InferResult(read_answer(body, int(fields[clients.SPLIT]) if clients.SPLIT in fields else None))
