#!/usr/bin/env python3
"""
fastapi_peer.py: attention behind FastAPI and uvicorn, as it is usually written; what `make bench-http` compares with.

    python3 fastapi_peer.py pydantic|ujson

pydantic: nested lists checked by a model, PyTorch computes, FastAPI writes the answer. ujson: the body read and the
answer written by ujson, NumPy computes. Prints "listening on 127.0.0.1:PORT".
"""

import math
import socket
import sys

import fastapi
import uvicorn

app = fastapi.FastAPI()


def serve_pydantic():
    import pydantic
    import torch

    class Inputs(pydantic.BaseModel):
        query: list[list[list[list[float]]]]
        key: list[list[list[list[float]]]]
        value: list[list[list[list[float]]]]

    class Options(pydantic.BaseModel):
        returns: list[str] = pydantic.Field(["output", "attention"], alias="return")

    class Body(pydantic.BaseModel):
        inputs: Inputs
        options: Options = Options()

    @app.post("/v1/attention")
    def attend(body: Body):
        q, k, v = (torch.tensor(t) for t in (body.inputs.query, body.inputs.key, body.inputs.value))
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
        found = {"output": weights @ v, "attention": weights}
        return {"outputs": {name: found[name].tolist() for name in body.options.returns}}


def serve_ujson():
    import numpy
    import ujson

    def attend(inputs, returns):
        q, k, v = (numpy.asarray(inputs[name], dtype=numpy.float32) for name in ("query", "key", "value"))
        weights = q @ k.swapaxes(-2, -1) * numpy.float32(1 / math.sqrt(q.shape[-1]))
        weights = numpy.exp(weights - weights.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        found = {"output": weights @ v, "attention": weights}
        return {"outputs": {name: found[name].tolist() for name in returns}}

    @app.post("/v1/attention")
    async def handle(request: fastapi.Request):
        body = ujson.loads(await request.body())
        answer = attend(body["inputs"], body.get("options", {}).get("return", ["output", "attention"]))
        return fastapi.Response(ujson.dumps(answer), media_type="application/json")


def main():
    {"pydantic": serve_pydantic, "ujson": serve_ujson}[sys.argv[1]]()
    # asyncio sets TCP_NODELAY only where the protocol is given: without it an answer waits 40 ms for an acknowledgement.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(128)
    print("listening on 127.0.0.1:%d" % listener.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False)).run(sockets=[listener])


if __name__ == "__main__":
    main()
