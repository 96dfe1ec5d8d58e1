"""
oip_clients.py: the requests that clients of the Open Inference Protocol send, byte for byte: tritonclient.http, Triton's
C++ client (libcurl), the KServe SDK (InferenceRESTClient over httpx) and MLServer's client. The standard library alone.

Each function gives (method, path, fields, body); send() puts them on the wire as they are. The order and spelling of the
members is that of the clients, because a server may depend on neither.
"""
import gzip
import http.client
import json
import struct
import urllib.parse
import zlib

from oip import FORMATS, flat

SPLIT = "Inference-Header-Content-Length"
FORM = "application/x-www-form-urlencoded"
PACKERS = {"gzip": gzip.compress, "deflate": zlib.compress}
TRITON = [("Accept", "*/*"), ("User-Agent", "python/gevent-http-client-2.3.1")]
CURL = [("User-Agent", "libcurl-agent/1.0"), ("Accept", "*/*")]
HTTPX = [("accept", "*/*"), ("accept-encoding", "gzip, deflate"), ("user-agent", "python-httpx/0.28.1")]


def packed(numbers, datatype):
    numbers = flat(numbers)
    return struct.pack(f"<{len(numbers)}{FORMATS[datatype]}", *numbers)


def send(url, request):
    """(status, fields, body) of the answer to exactly these bytes."""
    method, path, fields, body = request
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    connection.putrequest(method, path, skip_accept_encoding=True)
    for name, value in fields:
        connection.putheader(name, value)
    connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body)
    reply = connection.getresponse()
    answer = reply.status, reply.headers, reply.read()
    connection.close()
    return answer


# ---- tritonclient.http: InferenceServerClient.infer, load_model, unload_model, get_model_repository_index ----

def triton_infer(model, inputs, outputs=None, version="", parameters=None, request_id="", priority=0, timeout=None,
                 coding=None):
    """inputs and outputs: (name, shape, datatype, data, is_binary) and (name, is_binary)."""
    request, own, tail = {}, {}, b""
    if request_id:
        request["id"] = request_id
    if priority:
        own["priority"] = priority
    if timeout is not None:
        own["timeout"] = timeout
    request["inputs"] = []
    for name, shape, datatype, data, is_binary in inputs:
        item = {"name": name, "shape": shape, "datatype": datatype}
        if is_binary:
            raw = packed(data, datatype)
            item["parameters"] = {"binary_data_size": len(raw)}
            tail += raw
        else:
            item["data"] = flat(data)
        request["inputs"].append(item)
    if outputs:
        request["outputs"] = [{"name": name, "parameters": {"binary_data": binary}} for name, binary in outputs]
    else:
        own["binary_data_output"] = True
    own.update(parameters or {})
    if own:
        request["parameters"] = own
    text = json.dumps(request).encode()
    fields = list(TRITON)
    if tail:
        fields.append((SPLIT, str(len(text))))
    body = text + tail
    if coding:
        fields += [("Content-Encoding", coding), ("Accept-Encoding", coding)]
        body = PACKERS[coding](body)
    path = f"/v2/models/{model}/versions/{version}/infer" if version else f"/v2/models/{model}/infer"
    return "POST", path, fields, body


def triton_index():
    return "POST", "/v2/repository/index", TRITON, b""


def triton_load(model, config=None):
    body = {} if config is None else {"parameters": {"config": config}}
    return "POST", f"/v2/repository/models/{model}/load", TRITON, json.dumps(body).encode()


def triton_unload(model):
    body = {"parameters": {"unload_dependents": False}}
    return "POST", f"/v2/repository/models/{model}/unload", TRITON, json.dumps(body).encode()


# ---- Triton's C++ client: libcurl gives every POST without a type that of a form ----

def cpp_index():
    return "POST", "/v2/repository/index", CURL + [("Content-Type", FORM)], b""


def cpp_load(model):
    return "POST", f"/v2/repository/models/{model}/load", CURL + [("Content-Type", FORM)], b"{}"


def cpp_unload(model):
    return "POST", f"/v2/repository/models/{model}/unload", CURL + [("Content-Type", FORM)], b""


def cpp_infer(model, inputs, coding=None):
    _, path, _, body = triton_infer(model, inputs)
    text = len(body) - sum(len(packed(data, datatype)) for _, _, datatype, data, is_binary in inputs if is_binary)
    fields = CURL + [("Content-Type", "application/octet-stream"), (SPLIT, str(text))]
    if coding:
        fields, body = fields + [("Content-Encoding", coding)], PACKERS[coding](body)
    return "POST", path, fields, body


# ---- the KServe SDK: InferRequest.to_rest, which always writes model_name ----

def kserve_infer(model, inputs, outputs=None, parameters=None, request_id="154a6dcd-5e0f-4a5c-9f39-0c4b6a3b5c1e"):
    request, tail = {"id": request_id, "model_name": model, "inputs": []}, b""
    for name, shape, datatype, data, is_binary in inputs:
        item = {"name": name, "shape": shape, "datatype": datatype}
        if is_binary:
            raw = packed(data, datatype)
            item["parameters"] = {"binary_data_size": len(raw)}
            tail += raw
        else:
            item["data"] = data
        request["inputs"].append(item)
    if parameters:
        request["parameters"] = parameters
    if outputs:
        request["outputs"] = [{"name": name, "parameters": {"binary_data": binary}} for name, binary in outputs]
    text = json.dumps(request, separators=(",", ":")).encode()
    fields = HTTPX + ([("content-type", "application/octet-stream"), (SPLIT.lower(), str(len(text)))] if tail else
                      [("content-type", "application/json")])
    return "POST", f"/v2/models/{model}/infer", fields, text + tail


# ---- MLServer's types, as pydantic writes them: null for what is not given, and hints to decode tensors by ----

def mlserver_infer(model, inputs):
    hints = {"content_type": "np", "headers": {"x-trace": "a"}}
    request = {"id": None, "parameters": {**hints}, "outputs": None, "inputs": [
        {"name": name, "shape": shape, "datatype": datatype, "parameters": {**hints}, "data": flat(data)}
        for name, shape, datatype, data, _ in inputs]}
    return "POST", f"/v2/models/{model}/infer", HTTPX + [("content-type", "application/json")], json.dumps(request).encode()
