"""asked.py: every endpoint once, in each of its forms: the requests of torture.py and chaos.py."""

import gzip
import json
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "api" / "layers"))

import tensor_file  # noqa: E402
from exchange import Request  # noqa: E402
from layer import as_file, layer  # noqa: E402

TENSORS = "application/vnd.attnd.safetensors"
STEPS = ["q", "k", "q_rotated", "k_rotated", "scores", "scaled", "masked", "attention", "lse", "output"]
QUERY = [[0.25, -1.5, 2], [0.5, 1, -0.75], [3, 0.125, 1]]


def text(**members):
    return json.dumps(members).encode()


def binary_inference():
    data = struct.pack("<9f", *sum(QUERY, []))
    head = text(inputs=[{"name": "QUERY", "shape": [3, 3], "datatype": "FP32",
                         "parameters": {"binary_data_size": len(data)}}], parameters={"binary_data_output": True})
    return head + data, {"Inference-Header-Content-Length": len(head)}


def large_layer(width=768):
    """So large that it is written to the disk while it comes."""
    row = [(i % 61 - 30) / 64 for i in range(width)]
    parts = ("query", "key", "value", "output")
    tensors = {f"weights.{part}.weight": ("F32", [width, width], row * width) for part in parts}
    return tensor_file.write(tensors, {"request": json.dumps({"options": {"num_heads": 2}})})


def at_first():
    """Requests that reset the state of the server."""
    return [Request("put", "PUT", "/v1/layers/kept", text(**layer(1))),
            Request("load", "POST", "/v2/repository/models/kept/load", b"{}")]


def all_requests():
    # A number longer than what the JSON library has room for at first, and below a label that ends there.
    attend = text(inputs={"query": QUERY}, masks={"causal": True}, options={"scale": 3 ** -0.5},
                  tokens={"query": ["a", "\"b\" and \u00e7, \n escaped", "c"]})
    own = layer(1)
    whole = {**own, "inputs": {"query": [[1, 2, 3, 4], [4, 3, 2, 1]]}}
    large = text(inputs={"query": [[(i * j) % 7 / 7 for j in range(8)] for i in range(400)]},
                 options={"return": ["attention", "scores"]})
    grad = text(inputs={"query": QUERY, "grad_output": QUERY})
    infer = text(inputs=[{"name": "QUERY", "shape": [3, 3], "datatype": "FP32", "data": sum(QUERY, [])}])
    of_layer = text(inputs=[{"name": "QUERY", "shape": [2, 4], "datatype": "FP32", "data": [1, 2, 3, 4, 4, 3, 2, 1]}])
    tensors = tensor_file.write({"inputs.query": ("F32", [3, 3], sum(QUERY, []))}, {"request": "{}"})
    binary, its_headers = binary_inference()
    step = text(inputs={"query": QUERY}, masks={"causal": True}, options={"cache": "steps", "return": ["output"]})
    forget = Request("forget", "DELETE", "/v1/caches/steps")
    remember = Request("remember", "POST", "/v1/attention", step)
    grouped = text(inputs={"query": [[[[1, 2, 3, 4]] * 3] * 4], "key": [[[[4, 3, 2, 1]] * 3] * 2]}, masks={"window": [1, 1]},
                   options={"kv_num_heads": 2, "rope": {}, "qk_norm": {"type": "rms"}, "return": STEPS})
    performer = text(inputs={"query": QUERY}, options={"mechanism": {"type": "performer", "features": 8, "seed": 1}})
    viewed = text(inputs={"query": QUERY}, tokens={"query": ["fourteen bytes", "b", "c"]}, options={"view": "bertviz"})
    reduced = text(inputs={"query": QUERY}, options={"return": ["attention"], "top_k": 2, "queries": "0-2"})
    put = Request("put", "PUT", "/v1/layers/kept", text(**own), answers=(200, 201))
    other = Request("put other", "PUT", "/v1/layers/kept", text(**layer(2)), answers=(200, 201))
    get = Request("get", "GET", "/v1/layers/kept")
    file = Request("get tensors", "GET", "/v1/layers/kept", headers={"Accept": TENSORS})
    unload = Request("unload", "POST", "/v2/repository/models/kept/unload", b"{}")
    return [
        Request("attention", "POST", "/v1/attention", attend),
        Request("chunked", "POST", "/v1/attention", attend, is_chunked=True),
        Request("gzip", "POST", "/v1/attention", gzip.compress(attend), headers={"Content-Encoding": "gzip"}),
        Request("tensors", "POST", "/v1/attention", tensors, TENSORS, {"Accept": TENSORS}),
        Request("csv", "POST", "/v1/attention", attend, headers={"Accept": "text/csv"}),
        Request("png", "POST", "/v1/attention", attend, headers={"Accept": "image/png"}),
        Request("svg", "POST", "/v1/attention", attend, headers={"Accept": "image/svg+xml"}),
        Request("large", "POST", "/v1/attention", large),
        Request("large gzip", "POST", "/v1/attention", large, headers={"Accept-Encoding": "gzip"}),
        Request("large zstd", "POST", "/v1/attention", large, headers={"Accept-Encoding": "zstd"}),
        Request("grouped", "POST", "/v1/attention", grouped),
        Request("performer", "POST", "/v1/attention", performer),
        Request("view", "POST", "/v1/attention", viewed),
        Request("reduced", "POST", "/v1/attention", reduced),
        Request("step", "POST", "/v1/attention", step, before=[forget]),
        Request("caches", "GET", "/v1/caches", before=[forget]),
        Request("forget", "DELETE", "/v1/caches/steps", before=[remember], answers=(204, 404)),
        Request("multi-head", "POST", "/v1/multi-head-attention", text(**whole)),
        Request("gradients", "POST", "/v1/attention/gradients", grad),
        Request("layer gradients", "POST", "/v1/multi-head-attention/gradients",
                text(**{**whole, "inputs": {**whole["inputs"], "grad_output": [[1, 0, 0, 1], [0, 1, 1, 0]]}})),
        Request("put again", "PUT", "/v1/layers/kept", text(**own), before=[other], after=file, answers=(200, 201)),
        Request("put tensors", "PUT", "/v1/layers/kept", as_file(own), TENSORS, before=[other], after=file,
                answers=(200, 201)),
        Request("put large", "PUT", "/v1/layers/kept", large_layer(), TENSORS, before=[other], after=file,
                answers=(200, 201)),
        get,
        file,
        Request("list", "GET", "/v1/layers"),
        Request("kept attention", "POST", "/v1/layers/kept/attention",
                text(inputs={"query": [[1, 2, 3, 4], [4, 3, 2, 1]]})),
        Request("delete", "DELETE", "/v1/layers/kept", before=[put], answers=(204, 404)),
        Request("v2", "GET", "/v2"),
        Request("models", "GET", "/v2/models"),
        Request("metadata", "GET", "/v2/models/kept"),
        Request("config", "GET", "/v2/models/attention/config"),
        Request("statistics", "GET", "/v2/models/stats"),
        Request("infer", "POST", "/v2/models/attention/infer", infer),
        Request("infer kept", "POST", "/v2/models/kept/infer", of_layer),
        Request("infer binary", "POST", "/v2/models/attention/infer", binary, "application/octet-stream", its_headers),
        Request("index", "POST", "/v2/repository/index", b"{}"),
        Request("load", "POST", "/v2/repository/models/kept/load", b"{}", before=[unload]),
        Request("unload", "POST", "/v2/repository/models/kept/unload", b"{}"),
        Request("livez", "GET", "/livez"),
        Request("readyz", "GET", "/readyz"),
        Request("version", "GET", "/version"),
        Request("openapi", "GET", "/openapi.json"),
        Request("docs", "GET", "/docs", headers={"Accept": "text/html"}),
        Request("page", "GET", "/", headers={"Accept": "text/html", "Accept-Encoding": "gzip"}),
        Request("refused", "POST", "/v1/attention", b'{"inputs": [1', answers=(400,)),
        Request("nowhere", "GET", "/nowhere", answers=(404,)),
    ]
