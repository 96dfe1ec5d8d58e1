"""
texts.py: whole models under the Open Inference Protocol: TEXT and IDS in, ATTENTION, OUTPUT and TOKENS out. The numbers
are those of the same request at /v1/models/demo/attention.
"""

import json
import pathlib
import struct

from oip import FORMATS, flat
from suite import registry

CHECKS = []
check = registry(CHECKS)
MODEL = "/v2/models/demo"
SPLIT = "Inference-Header-Content-Length"
TEXTS = ["the cat sat on the mat", "a dog"]


def post(client, path, body, headers=None):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    return client.send("POST", path, body, {"Content-Type": "application/json", **(headers or {})})


def of_texts(texts, **members):
    return {"inputs": [{"name": "TEXT", "datatype": "BYTES", "shape": [len(texts)], "data": texts}], **members}


def of_ids(rows, **members):
    return {"inputs": [{"name": "IDS", "datatype": "INT64", "shape": [len(rows), len(rows[0])], "data": rows}], **members}


def packed(texts):
    return b"".join(struct.pack("<I", len(text.encode())) + text.encode() for text in texts)


def unpacked(data, datatype):
    if datatype != "BYTES":
        code = FORMATS[datatype]
        return list(struct.unpack(f"<{len(data) // struct.calcsize(code)}{code}", data))
    texts = []
    while data:
        length = struct.unpack("<I", data[:4])[0]
        texts.append(data[4:4 + length].decode())
        data = data[4 + length:]
    return texts


def inferred(client, body, headers=None):
    """The outputs of the answer by name, with lists as data."""
    reply = post(client, MODEL + "/infer", body, headers)
    assert reply.status == 200, reply.body[:300]
    at = int(reply.headers.get(SPLIT, len(reply.body)))
    answer = json.loads(reply.body[:at])
    assert answer["model_name"] == "demo" and answer["model_version"] == "1"
    for output in answer["outputs"]:
        if "parameters" in output:
            size = output["parameters"]["binary_data_size"]
            output["data"], at = unpacked(reply.body[at:at + size], output["datatype"]), at + size
    assert at == len(reply.body)
    return {output["name"]: output for output in answer["outputs"]}


def expected(client, inputs, **options):
    reply = post(client, "/v1/models/demo/attention",
                 {"inputs": inputs, "options": {"return": ["attention", "output"], **options}})
    assert reply.status == 200, reply.body[:300]
    return reply.json()


def hold_alike(outputs, answer):
    rows = answer["tokens"]["text"]
    longest = max(len(row) for row in rows)
    for name in ("attention", "output"):
        output, wanted = outputs[name.upper()], flat(answer["outputs"][name])
        assert output["datatype"] == "FP32" and output["shape"] == answer["shapes"][name], name
        assert struct.pack(f"<{len(wanted)}f", *output["data"]) == struct.pack(f"<{len(wanted)}f", *wanted), name
    tokens = outputs["TOKENS"]
    assert tokens["datatype"] == "BYTES" and tokens["shape"] == [len(rows), longest]
    assert tokens["data"] == [word for row in rows for word in row + [""] * (longest - len(row))]


@check
def whole_models_are_listed_and_described(client):
    assert "demo" in client.get("/v2/models").json()["models"]
    for path in (MODEL, MODEL + "/versions/1"):
        told = client.get(path).json()
        assert told["name"] == "demo" and told["versions"] == ["1"]
        assert [(port["name"], port["datatype"], port["shape"]) for port in told["inputs"]] == [
            ("TEXT", "BYTES", [-1]), ("IDS", "INT64", [-1, -1])]
        assert [(port["name"], port["datatype"], len(port["shape"])) for port in told["outputs"]] == [
            ("OUTPUT", "FP32", 3), ("ATTENTION", "FP32", 5), ("TOKENS", "BYTES", 2)]
    assert client.get(MODEL + "/versions/2").status == 404
    assert client.get(MODEL + "/ready").json() == {"name": "demo", "ready": True}
    config = client.get(MODEL + "/config").json()
    assert [port["data_type"] for port in config["input"]] == ["TYPE_STRING", "TYPE_INT64"]
    index = post(client, "/v2/repository/index", {}).json()
    assert {"name": "demo", "version": "1", "state": "READY", "reason": ""} in index


@check
def texts_and_ids_give_the_numbers_of_the_models_own_requests(client):
    answer = expected(client, {"text": TEXTS})
    hold_alike(inferred(client, of_texts(TEXTS)), answer)
    nested = of_texts([[text] for text in TEXTS])
    nested["inputs"][0]["shape"] = [2, 1]
    hold_alike(inferred(client, nested), answer)
    rows = [[2, 5, 6, 3], [2, 7, 8, 3]]
    hold_alike(inferred(client, of_ids(rows)), expected(client, {"ids": rows}))
    short = of_ids(rows)
    short["inputs"][0]["datatype"] = "INT32"
    hold_alike(inferred(client, short), expected(client, {"ids": rows}))
    one = {"inputs": [{"name": "IDS", "datatype": "INT64", "shape": [4], "data": rows[0]}]}
    hold_alike(inferred(client, one), expected(client, {"ids": rows[0]}))


@check
def binary_texts_and_ids_give_the_same(client):
    for sent, datatype, inputs in ((packed(TEXTS), "BYTES", {"text": TEXTS}),
                                   (struct.pack("<4q", 2, 5, 6, 3), "INT64", {"ids": [2, 5, 6, 3]}),
                                   (struct.pack("<4i", 2, 5, 6, 3), "INT32", {"ids": [2, 5, 6, 3]})):
        body = of_texts(TEXTS) if "text" in inputs else of_ids([inputs["ids"]])
        del body["inputs"][0]["data"]
        body["inputs"][0]["datatype"] = datatype
        body["inputs"][0]["parameters"] = {"binary_data_size": len(sent)}
        body["parameters"] = {"binary_data_output": True}
        for padding in range(3):  # the tensor may begin at any address
            head = json.dumps(body).encode() + b" " * padding
            outputs = inferred(client, head + sent, {SPLIT: str(len(head))})
            assert all("parameters" in output for output in outputs.values())
            hold_alike(outputs, expected(client, inputs))


@check
def parameters_of_whole_models_are_options(client):
    outputs = inferred(client, of_texts(TEXTS, parameters={"layers": "[1]", "heads": "0-2"}))
    hold_alike(outputs, expected(client, {"text": TEXTS}, layers=[1], heads=[0, 1, 2]))
    asked = of_texts(TEXTS, outputs=[{"name": "TOKENS", "parameters": {"binary_data": True}}, {"name": "ATTENTION"}])
    assert list(inferred(client, asked)) == ["TOKENS", "ATTENTION"]
    assert list(inferred(client, of_texts(TEXTS, outputs=[{"name": "TOKENS"}]))) == ["TOKENS"]
    plain = inferred(client, of_texts(["cat"], parameters={"special_tokens": False}, outputs=[{"name": "TOKENS"}]))
    assert plain["TOKENS"]["data"] == ["cat"]


@check
def mistakes_with_whole_models_are_named(client):
    def wrong(body, *words, **headers):
        reply = post(client, MODEL + "/infer", body, {name.replace("_", "-"): value for name, value in headers.items()})
        assert reply.status == 400, (body, reply.status, reply.body[:300])
        assert all(word in reply.json()["error"] for word in words), (words, reply.json()["error"])

    wrong(of_texts(["a\0b"]), "/inputs/TEXT", "U+0000")
    wrong(of_texts(["a " * 3000]), "/inputs/TEXT", "tokens")
    wrong(of_texts([]), "TEXT or IDS")
    wrong({"inputs": of_texts(["a"])["inputs"] + of_ids([[1]])["inputs"]}, "one tensor")
    wrong(of_ids([[1, 10 ** 6]]), "/inputs/IDS", "1000000")
    wrong(of_ids([[-1]]), "/inputs/IDS", "-1")
    wrong(of_texts([5]), "a string")
    wrong(of_texts(["a"], parameters={"sequence_id": 1}), "sequences are not offered")
    wrong({"inputs": [{"name": "IDS", "datatype": "INT32", "shape": [1], "data": [2 ** 31]}]}, "which INT32 cannot")
    wrong({"inputs": [{"name": "IDS", "datatype": "FP32", "shape": [1], "data": [1]}]}, '"INT64" or "INT32"')
    wrong(of_texts(["a"], outputs=[{"name": "LOGITS"}]), "TOKENS")
    wrong(of_texts(["a"], parameters={"layers": "[99]"}), "99")
    wrong(of_texts(["a"], parameters={"causal": True}), "/parameters/causal")
    wrong(of_texts(["a"], parameters={"return": "[]"}), "outputs")
    wrong(of_texts(["a"], model_name="other"), "model_name")
    for tail in (packed(TEXTS)[:-1], packed(TEXTS) + b"x", packed(TEXTS[:1]), b"\xff\xff\xff\xff"):
        head = json.dumps({"inputs": [{"name": "TEXT", "datatype": "BYTES", "shape": [2],
                                       "parameters": {"binary_data_size": len(tail)}}]}).encode()
        wrong(head + tail, "2 texts", Inference_Header_Content_Length=str(len(head)))
    wrong(b"abc", "TEXT or IDS", Inference_Header_Content_Length="0", Content_Type="application/octet-stream")


@check
def whole_models_are_loaded_as_long_as_their_folders_are_there(client):
    assert post(client, "/v2/repository/models/demo/load", {}).status == 200
    assert post(client, "/v2/repository/models/demo/unload", {}).status == 409
    assert client.get(MODEL + "/ready").status == 200


def broken_model(folder):
    """Makes a folder of models with one that cannot be read."""
    model = pathlib.Path(folder) / "broken"
    model.mkdir()
    (model / "config.json").write_text("{}")
    return folder


@check
def a_broken_model_is_not_ready(client):
    assert client.get("/v2/models/broken/ready").status == 409
    index = {entry["name"]: entry for entry in post(client, "/v2/repository/index", {}).json()}
    assert index["broken"]["state"] == "UNAVAILABLE" and index["broken"]["reason"]
    assert post(client, "/v2/repository/models/broken/load", {}).status == 409
