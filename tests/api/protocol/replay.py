"""
replay.py: replays the requests of tritonclient, Triton's C++ client, the KServe SDK and MLServer's client, byte for byte,
and tests clients with a fixed version, with a form type, and without JSON.
"""

import json
import struct
import sys

from oip import flat, read_answer
import oip_clients as clients
from suite import registry

SPLIT = "Inference-Header-Content-Length"
QUERY = [[0.25, 0.5, -1.0], [1.5, 2.0, 0.125]]
KEY = [[1.0, 0.0, 0.5], [0.0, -1.0, 2.0], [0.5, 0.5, 0.5]]
LAYER = {"weights": {"query": {"weight": [[1, 0.5], [0.25, 1], [0, 1]]}, "key": {"weight": [[0.5, 1], [1, -0.5], [1, 0]]},
                     "value": {"weight": [[1, 2], [3, 4], [5, 6]]}}}
CHECKS = []
check = registry(CHECKS)


def expect(holds, sentence):
    if not holds:
        raise ValueError(sentence)


def inputs(is_binary=False, datatype="FP32"):
    return [("QUERY", [2, 3], datatype, QUERY, is_binary), ("KEY", [3, 3], datatype, KEY, is_binary)]


def asked(client, request, status=200):
    """The answer, its outputs as flat lists by name."""
    got, fields, body = clients.send(client.url, request)
    expect(got == status, f"{request[0]} {request[1]}: status {got}, expected {status}: {body[:300]}")
    if fields.get("Content-Encoding"):
        coding = fields["Content-Encoding"]
        expect(coding == "gzip", f"an answer in {coding}")
        body = clients.gzip.decompress(body)
    length = fields.get(SPLIT)
    answer = read_answer(body, None if length is None else int(length)) if body else None
    if isinstance(answer, dict) and "model_version" in answer:
        answer["named"] = {output["name"]: flat(output["data"]) for output in answer["outputs"]}
    return answer


def wanted(client, path="/v1/attention", options=None, **more):
    body = {"inputs": {"query": QUERY, "key": KEY}, "options": options or {}, **more}
    reply = client.post(path, body)
    expect(reply.status == 200, f"{path}: {reply.body[:300]}")
    return {name.upper(): flat(rows) for name, rows in reply.json()["outputs"].items()}


def keep(client, name="enc", **more):
    reply = client.send("PUT", f"/v1/layers/{name}", json.dumps({**LAYER, **more}).encode(),
                        {"Content-Type": "application/json"})
    expect(reply.status in (200, 201), f"PUT /v1/layers/{name}: {reply.body[:300]}")


def close(left, right):
    return len(left) == len(right) and all(abs(a - b) <= 1e-6 * (1 + abs(b)) for a, b in zip(left, right))


@check
def tritonclient_infers_in_every_form(client):
    right = wanted(client)
    for is_binary in (False, True):
        for outputs in (None, [("OUTPUT", True), ("ATTENTION", False)]):
            for coding in (None, "gzip", "deflate"):
                answer = asked(client, clients.triton_infer("attention", inputs(is_binary), outputs, "1", {"scale": 2.0},
                                                            "a-7", 1, 5000000, coding))
                expect(answer["id"] == "a-7" and answer["model_name"] == "attention", f"{answer}")
                named = wanted(client, options={"scale": 2.0})
                expect(all(close(answer["named"][name], named[name]) for name in named), f"{answer['named']}")
    answer = asked(client, clients.triton_infer("attention", inputs(True)))
    expect(all(close(answer["named"][name], right[name]) for name in right), f"{answer['named']}")


@check
def tritonclient_controls_models(client):
    keep(client)
    index = asked(client, clients.triton_index())
    states = {row["name"]: row["state"] for row in index if not row["name"].startswith("demo.")}
    expect(states == {"attention": "READY", "broken": "UNAVAILABLE", "demo": "READY", "enc": "READY"}, f"{index}")
    for model in ("attention", "enc"):
        for _ in range(2):
            expect(asked(client, clients.triton_load(model)) == {}, f"load of {model}")
    expect(asked(client, clients.triton_unload("enc")) == {}, "unload")
    expect(asked(client, ("GET", "/v2/models/enc/ready", [], b""), 409)["error"], "an unloaded layer is ready")
    asked(client, clients.triton_load("enc"))
    refusal = asked(client, clients.triton_load("enc", config="{}"), 400)
    expect("load takes no parameters" in refusal["error"] and refusal["pointer"] == "/parameters/config", f"{refusal}")
    expect(refusal["error"][-1] not in ":, ", f"a sentence without an end: {refusal['error']}")
    expect("built in" in asked(client, clients.triton_unload("attention"), 409)["error"], "unload of attention")


@check
def the_cpp_client_controls_models_and_infers(client):
    keep(client)
    index = {row["name"]: row["state"] for row in asked(client, clients.cpp_index())}
    expect(index["enc"] == "READY" and index["broken"] == "UNAVAILABLE", f"{index}")
    asked(client, clients.cpp_load("attention"))
    asked(client, clients.cpp_unload("enc"))
    asked(client, clients.cpp_load("enc"))
    right = wanted(client)
    for coding in (None, "gzip", "deflate"):
        answer = asked(client, clients.cpp_infer("attention", inputs(True), coding))
        expect(close(answer["named"]["OUTPUT"], right["OUTPUT"]), f"{coding}: {answer['named']}")


@check
def the_kserve_sdk_infers(client):
    right = wanted(client)
    keep(client)
    for is_binary in (False, True):
        for outputs in (None, [("OUTPUT", is_binary)]):
            answer = asked(client, clients.kserve_infer("attention", inputs(is_binary), outputs))
            expect(close(answer["named"]["OUTPUT"], right["OUTPUT"]), f"{answer['named']}")
            expect(answer["id"] == "154a6dcd-5e0f-4a5c-9f39-0c4b6a3b5c1e", f"id {answer['id']}")
    both = {"causal": True, "binary_data_output": True}
    answer = asked(client, clients.kserve_infer("attention", inputs(True), parameters=both))
    named = wanted(client, masks={"causal": True})
    expect(close(answer["named"]["ATTENTION"], named["ATTENTION"]), f"{answer['named']}")
    answer = asked(client, clients.kserve_infer("enc", inputs()))
    named = wanted(client, "/v1/layers/enc/attention")
    expect(close(answer["named"]["OUTPUT"], named["OUTPUT"]), f"{answer['named']}")


@check
def hints_and_nulls_of_other_clients_are_passed_over(client):
    answer = asked(client, clients.mlserver_infer("attention", inputs()))
    expect(close(answer["named"]["OUTPUT"], wanted(client)["OUTPUT"]) and "id" not in answer, f"{answer}")
    output = {"name": "OUTPUT", "parameters": {"content_type": "np", "headers": {}, "binary_data": None}}
    body = {"inputs": [{"name": "QUERY", "shape": [1.0, 3.0], "datatype": "INT8", "data": [1.0, 2, 3e0],
                        "parameters": None}], "outputs": [output], "parameters": {"priority": 1.0, "timeout": None}}
    asked(client, ("POST", "/v2/models/attention/infer", [("Content-Type", "application/json")], json.dumps(body).encode()))
    body["parameters"] = {"content_typ": "np"}
    refusal = asked(client, ("POST", "/v2/models/attention/infer", [], json.dumps(body).encode()), 400)
    expect(refusal["pointer"] == "/parameters/content_typ", f"{refusal}")


@check
def names_in_the_body_may_only_repeat_the_path(client):
    keep(client)
    digest = client.get("/v2/models/enc").json()["versions"][0]

    def tried(path, status, **names):
        body = {**names, "inputs": [{"name": "QUERY", "shape": [2, 3], "datatype": "FP32", "data": QUERY}]}
        answer = asked(client, ("POST", path, [], json.dumps(body).encode()), status)
        expect(status == 200 or answer["pointer"] in ("/model_name", "/model_version"), f"{names}: {answer}")

    tried("/v2/models/attention/infer", 200, model_name="attention", model_version="1")
    tried("/v2/models/attention/infer", 200, model_name=None, model_version="")
    tried("/v2/models/attention/infer", 400, model_name="enc")
    tried("/v2/models/attention/infer", 400, model_version="2")
    tried("/v2/models/attention/infer", 400, model_version=1)
    for version in ("1", digest):
        tried("/v2/models/enc/infer", 200, model_name="enc", model_version=version)
        tried(f"/v2/models/enc/versions/{version}/infer", 200, model_name="enc", model_version=version)
    tried("/v2/models/enc/infer", 400, model_version="0" * 64)
    tried("/v2/models/enc/versions/1/infer", 400, model_name="attention")


@check
def version_1_is_the_present_one(client):
    keep(client, "old")
    before = client.get("/v2/models/old").json()["versions"][0]
    keep(client, "old", options={"scale": 3})
    present = client.get("/v2/models/old").json()["versions"][0]
    for what in ("", "/ready", "/config", "/stats"):
        first = asked(client, ("GET", f"/v2/models/old/versions/1{what}", [], b""))
        expect(first == asked(client, ("GET", f"/v2/models/old{what}", [], b"")), f"{what}: {first}")
    answer = asked(client, clients.triton_infer("old", [("QUERY", [2, 3], "FP32", QUERY, True)], version="1"))
    expect(answer["model_version"] == present, f"{answer['model_version']}")
    answer = asked(client, clients.triton_infer("old", [("QUERY", [2, 3], "FP32", QUERY, True)], version=before))
    expect(answer["model_version"] == before, "an older version")
    body = {"model_version": "1", "inputs": [{"name": "QUERY", "shape": [2, 3], "datatype": "FP32", "data": QUERY}]}
    path = f"/v2/models/old/versions/{before}/infer"
    expect(asked(client, ("POST", path, [], json.dumps(body).encode()), 400)["pointer"] == "/model_version", "1 is new")
    asked(client, ("GET", "/v2/models/old/versions/2", [], b""), 404)


@check
def a_body_without_json_is_the_query_of_a_layer(client):
    keep(client)
    numbers = struct.pack("<6f", *flat(QUERY))
    raw = [(SPLIT, "0"), ("Content-Type", "application/octet-stream")]
    answer = asked(client, ("POST", "/v2/models/enc/infer", raw, numbers))
    right = asked(client, clients.triton_infer("enc", [("QUERY", [2, 3], "FP32", QUERY, True)]))
    expect(answer["outputs"] == right["outputs"], f"{answer}")
    expect(all("binary_data_size" in output["parameters"] for output in answer["outputs"]), "outputs are not binary")
    refusal = asked(client, ("POST", "/v2/models/enc/infer", raw, numbers[:-4]), 400)
    expect("20 bytes" in refusal["error"] and "12 bytes" in refusal["error"], f"{refusal}")
    asked(client, ("POST", "/v2/models/enc/infer", raw, b""), 400)
    refusal = asked(client, ("POST", "/v2/models/attention/infer", raw, numbers), 400)
    expect("send the JSON part with the shape of QUERY" in refusal["error"], f"{refusal}")
    keep(client, "double", options={"compute": "float64"})
    answer = asked(client, ("POST", "/v2/models/double/infer", raw, struct.pack("<6d", *flat(QUERY))))
    expect(answer["outputs"][0]["datatype"] == "FP64" and answer["outputs"][0]["shape"] == [2, 2], f"{answer}")


@check
def members_of_our_own_requests_are_sent_home(client):
    for name, word in (("padding", "ATTEND"), ("key_lengths", "ATTEND"), ("query", "QUERY"), ("qkv", "kept layer")):
        body = {"parameters": {name: "[[1]]"},
                "inputs": [{"name": "QUERY", "shape": [2, 3], "datatype": "FP32", "data": QUERY}]}
        for model in ("attention", "enc"):
            keep(client)
            request = ("POST", f"/v2/models/{model}/infer", [], json.dumps(body).encode())
            refusal = asked(client, request, 400)
            expect(word in refusal["error"] and "belongs into" not in refusal["error"], f"{name}: {refusal['error']}")
            expect(refusal["pointer"] == f"/parameters/{name}", f"{name}: {refusal['pointer']}")


if __name__ == "__main__":
    sys.exit("run.py runs these checks")
