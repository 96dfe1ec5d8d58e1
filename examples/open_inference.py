#!/usr/bin/env python3
"""
open_inference.py: the same request by each client of the Open Inference Protocol (KServe v2) that is installed:
the standard library alone, tritonclient (pip install 'tritonclient[http]') and the KServe SDK (pip install kserve).
ATTND_URL names another server.
"""

import asyncio
import json
import os
import urllib.request

URL = os.environ.get("ATTND_URL", "http://127.0.0.1:8080")
MODEL, VERSION = "attention", "1"
TOKENS = [[1.0, 0.0], [0.0, 1.0]]


def standard_library():
    request = {"inputs": [{"name": "QUERY", "datatype": "FP32", "shape": [2, 2], "data": TOKENS}],
               "parameters": {"causal": True}, "outputs": [{"name": "OUTPUT"}]}
    call = urllib.request.Request(f"{URL}/v2/models/{MODEL}/infer", json.dumps(request).encode(),
                                  {"Content-Type": "application/json"})
    with urllib.request.urlopen(call) as reply:
        output = json.load(reply)["outputs"][0]
    width = output["shape"][1]
    return [output["data"][start:start + width] for start in range(0, len(output["data"]), width)]


def triton():
    import numpy
    import tritonclient.http as http

    client = http.InferenceServerClient(URL.split("://")[1])
    if not client.is_server_live() or not client.is_model_ready(MODEL, VERSION):
        raise RuntimeError("not ready")
    query = http.InferInput("QUERY", [2, 2], "FP32")
    query.set_data_from_numpy(numpy.array(TOKENS, numpy.float32), binary_data=True)
    answer = client.infer(MODEL, [query], model_version=VERSION, parameters={"causal": True},
                          outputs=[http.InferRequestedOutput("OUTPUT", binary_data=True)])
    return answer.as_numpy("OUTPUT").tolist()


def kserve_sdk():
    import numpy
    from kserve import InferenceRESTClient, InferInput, InferRequest, RESTConfig

    async def ask():
        client = InferenceRESTClient(RESTConfig(protocol="v2"))
        try:
            if not await client.is_server_live(URL) or not await client.is_model_ready(URL, MODEL):
                raise RuntimeError("not ready")
            query = InferInput("QUERY", [2, 2], "FP32")
            query.set_data_from_numpy(numpy.array(TOKENS, numpy.float32), binary_data=False)
            request = InferRequest(model_name=MODEL, infer_inputs=[query], parameters={"causal": True})
            return await client.infer(URL, request, model_name=MODEL)
        finally:
            await client.close()

    answer = asyncio.run(ask())
    return next(item for item in answer.outputs if item.name == "OUTPUT").as_numpy().tolist()


def main():
    for name, client in (("standard library", standard_library), ("tritonclient", triton), ("KServe SDK", kserve_sdk)):
        try:
            rows = client()
        except ImportError:
            print(f"{name}: not installed")
            continue
        print(f"{name}: {[[round(float(value), 4) for value in row] for row in rows]}")


if __name__ == "__main__":
    main()
