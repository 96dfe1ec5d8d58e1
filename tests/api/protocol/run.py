#!/usr/bin/env python3
"""
run.py: tests a server against the Open Inference Protocol: its endpoints, inference in JSON and with binary tensors.

The tests follow the specification (REST, "binary tensor data extension"), not the server. The numbers are compared
with the answer to the same request at /v1/attention.
"""

import argparse
import gzip
import json
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "support"))

from attnd import Server  # noqa: E402
import replay  # noqa: E402
import texts  # noqa: E402
from oip import binary_request, flat, read_answer, tensor  # noqa: E402
from suite import conclude, registry, run_tests  # noqa: E402

INFER = "/v2/models/attention/infer"
SPLIT = "Inference-Header-Content-Length"
QUERY = [[0.25, 0.5, -1.0], [1.5, 2.0, 0.125]]
KEY = [[1.0, 0.0, 0.5], [0.0, -1.0, 2.0], [0.5, 0.5, 0.5]]
CHECKS = []
check = registry(CHECKS)


class Wrong(Exception):
    """A check that does not hold, as a sentence."""


def expect(holds, sentence):
    if not holds:
        raise Wrong(sentence)


def post(client, body, headers=None, path=INFER):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    return client.send("POST", path, body, {"Content-Type": "application/json", **(headers or {})})


def post_nothing(client, path):
    """As `curl -X POST` does: neither a body nor its length."""
    client.connection.putrequest("POST", path)
    client.connection.endheaders()
    reply = client.connection.getresponse()
    return reply.status, json.loads(reply.read())


def answered(reply):
    expect(reply.status == 200, f"status {reply.status}: {reply.body[:300]}")
    length = reply.headers.get(SPLIT)
    return read_answer(reply.body, None if length is None else int(length))


def outputs(answer):
    return {output["name"]: output for output in answer["outputs"]}


def expected(client, options=None, masks=None):
    body = {"inputs": {"query": QUERY, "key": KEY}, "options": options or {}, "masks": masks or {}}
    reply = client.send("POST", "/v1/attention", json.dumps(body).encode(), {"Content-Type": "application/json"})
    expect(reply.status == 200, f"/v1/attention: {reply.body[:300]}")
    return reply.json()["outputs"]


def inputs(datatype="FP32"):
    return [tensor("QUERY", QUERY, datatype), tensor("KEY", KEY, datatype)]


def refused(reply, status, *words):
    expect(reply.status == status, f"status {reply.status}, expected {status}: {reply.body[:300]}")
    expect(reply.headers["Content-Type"] == "application/json", f"an error of type {reply.headers['Content-Type']}")
    error = reply.json()["error"]
    for word in words:
        expect(word in error, f"{word!r} is not in {error!r}")


@check
def health_is_told_in_both_words(client):
    expect(client.get("/v2/health/live").json() == {"live": True}, "live")
    reply = client.get("/v2/health/ready")
    expect(reply.status == 503 and reply.json() == {"ready": False, "live": True}, f"ready, with a broken model alone: {reply.body}")


@check
def the_server_tells_its_name_and_extensions(client):
    for path in ("/v2", "/v2/"):
        answer = client.get(path).json()
        expect(answer["name"] == "attnd" and answer["version"], f"{path}: {answer}")
        expect("binary_tensor_data" in answer["extensions"], f"{path}: {answer['extensions']}")


@check
def models_are_listed_and_described(client):
    expect("attention" in client.get("/v2/models").json()["models"], "the list of models")
    answer = client.get("/v2/models/attention").json()
    expect(answer == client.get("/v2/models/attention/versions/1").json(), "metadata of version 1")
    expect([port["name"] for port in answer["inputs"]] == ["QUERY", "KEY", "VALUE", "ATTEND", "BIAS"], "inputs")
    expect([port["name"] for port in answer["outputs"]] == ["OUTPUT", "ATTENTION"], "outputs")
    for port in answer["inputs"] + answer["outputs"]:
        expect(port["shape"] == [-1] * 4 and port["datatype"] in ("FP32", "BOOL"), f"{port}")
    expect(client.get("/v2/models/attention/ready").json() == {"name": "attention", "ready": True}, "ready")
    config = client.get("/v2/models/attention/config").json()
    expect(config["max_batch_size"] == 0 and config["input"][0]["data_type"] == "TYPE_FP32", f"{config}")
    index = post(client, {}, path="/v2/repository/index").json()
    expect(post_nothing(client, "/v2/repository/index") == (200, index), "index without a body")
    expect(post_nothing(client, "/v2/repository/models/none/load")[0] == 404, "load without a body")
    expect(index[0]["name"] == "attention" and index[0]["state"] == "READY", f"{index}")


@check
def unknown_models_and_versions_are_404(client):
    for path in ("/v2/models/nope", "/v2/models/nope/ready"):
        refused(client.get(path), 404, "no model")
    refused(client.get("/v2/models/attention/versions/9"), 404, "version 9")
    refused(post(client, {"inputs": inputs()}, path="/v2/models/nope/infer"), 404, "nope")
    refused(post(client, {"inputs": inputs()}, path="/v2/models/attention/versions/2/infer"), 404, "2")


@check
def json_gives_all_outputs_and_the_id(client):
    answer = answered(post(client, {"id": "a-7", "inputs": inputs()}))
    expect((answer["model_name"], answer["model_version"], answer["id"]) == ("attention", "1", "a-7"), f"{answer}")
    wanted, got = expected(client), outputs(answer)
    expect(list(got) == ["OUTPUT", "ATTENTION"], f"outputs {list(got)}")
    expect(got["OUTPUT"]["data"] == flat(wanted["output"]), "OUTPUT differs from /v1/attention")
    expect(got["ATTENTION"]["data"] == flat(wanted["attention"]), "ATTENTION differs from /v1/attention")
    expect(got["OUTPUT"]["shape"] == [2, 3] and got["ATTENTION"]["shape"] == [1, 1, 2, 3], "shapes")
    expect(got["OUTPUT"]["datatype"] == "FP32", "datatype")
    expect("id" not in answered(post(client, {"inputs": inputs()})), "an id that nobody gave")


@check
def flat_and_nested_data_mean_the_same(client):
    nested = post(client, {"inputs": inputs()}).body
    flattened = [{**item, "data": flat(item["data"])} for item in inputs()]
    expect(post(client, {"inputs": flattened}).body == nested, "flat data gives another answer")


@check
def only_the_outputs_asked_for_are_sent_in_their_order(client):
    for names in (["ATTENTION"], ["ATTENTION", "OUTPUT"], ["LSE"]):
        asked = [{"name": name} for name in names]
        answer = answered(post(client, {"inputs": inputs(), "outputs": asked}))
        expect([output["name"] for output in answer["outputs"]] == names, f"{names}: {list(outputs(answer))}")


@check
def binary_inputs_and_outputs_are_exact(client):
    wanted = outputs(answered(post(client, {"inputs": inputs()})))
    body, length = binary_request(inputs(), parameters={"binary_data_output": True}, id="b")
    headers = {SPLIT: str(length), "Content-Type": "application/octet-stream"}
    for sent, extra in ((body, {}), (gzip.compress(body), {"Content-Encoding": "gzip"})):
        reply = post(client, sent, {**headers, **extra})
        got = outputs(answered(reply))
        expect(reply.headers["Content-Type"] == "application/octet-stream", reply.headers["Content-Type"])
        expect(int(reply.headers[SPLIT]) % 64 == 0, "the JSON part is not padded to 64 bytes")
        for name, output in got.items():
            expect(output["parameters"]["binary_data_size"] == 4 * len(output["data"]), f"{name}: size")
            close = all(abs(a - b) <= 1e-7 * abs(b) for a, b in zip(output["data"], wanted[name]["data"]))
            expect(close, f"{name} differs from its JSON")


@check
def one_output_may_be_binary_and_another_json(client):
    asked = [{"name": "ATTENTION", "parameters": {"binary_data": True}}, {"name": "OUTPUT"}]
    reply = post(client, {"inputs": inputs(), "outputs": asked})
    got = outputs(answered(reply))
    expect("parameters" in got["ATTENTION"] and "parameters" not in got["OUTPUT"], f"{got}")
    all_but_one = {"binary_data_output": True}
    asked = [{"name": "OUTPUT", "parameters": {"binary_data": False}}]
    reply = post(client, {"inputs": inputs(), "outputs": asked, "parameters": all_but_one})
    expect(SPLIT not in reply.headers and reply.headers["Content-Type"] == "application/json", "JSON was asked for")


@check
def every_datatype_is_converted_or_refused(client):
    whole = [tensor("QUERY", [[1, 2, 3], [4, 5, 6]])]
    wanted = post(client, {"inputs": whole, "outputs": [{"name": "OUTPUT"}]}).body
    for datatype in ("FP16", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"):
        item = tensor("QUERY", [[1, 2, 3], [4, 5, 6]], datatype)
        asked = {"outputs": [{"name": "OUTPUT"}]}
        expect(post(client, {"inputs": [item], **asked}).body == wanted, f"{datatype} in JSON")
        body, length = binary_request([item], **asked)
        expect(post(client, body, {SPLIT: str(length)}).body == wanted, f"{datatype} in binary")
    refused(post(client, {"inputs": [tensor("QUERY", [[16777217]], "INT64")]}), 400, "QUERY")
    refused(post(client, {"inputs": [tensor("QUERY", [[300]], "INT8")]}), 400, "300", "INT8")
    refused(post(client, {"inputs": [tensor("QUERY", [[1]], "BYTES")]}), 400, "datatype")
    body, length = binary_request([tensor("QUERY", [[2 ** 63]], "UINT64")])
    refused(post(client, body, {SPLIT: str(length)}), 400, "element 0")


@check
def a_query_of_fp64_is_computed_in_double(client):
    got = outputs(answered(post(client, {"inputs": inputs("FP64")})))
    expect(got["OUTPUT"]["datatype"] == "FP64", got["OUTPUT"]["datatype"])
    wanted = expected(client, {"compute": "float64"})
    expect(got["OUTPUT"]["data"] == flat(wanted["output"]), "not the numbers of float64")
    single = post(client, {"inputs": inputs("FP64"), "parameters": {"compute": "float32"}})
    expect(outputs(answered(single))["OUTPUT"]["datatype"] == "FP32", "a parameter that says float32")


@check
def products_may_be_in_bfloat16(client):
    query = [[0.3, 0.7, -1.1], [1.3, 2.1, 0.1]]
    body = {"inputs": {"query": query}, "options": {"compute": "bfloat16"}}
    reply = client.send("POST", "/v1/attention", json.dumps(body).encode(), {"Content-Type": "application/json"})
    wanted = {name.upper(): flat(numbers) for name, numbers in reply.json()["outputs"].items()}
    asked = {"inputs": [tensor("QUERY", query)], "parameters": {"compute": "bfloat16"}}
    binary, length = binary_request(**asked)
    for got in (post(client, asked), post(client, binary, {SPLIT: str(length)})):
        got = outputs(answered(got))
        for name, numbers in wanted.items():
            expect(got[name]["datatype"] == "FP32" and got[name]["data"] == numbers, f"{name}: {got[name]}")
    whole = outputs(answered(post(client, {"inputs": asked["inputs"]})))
    expect(whole["OUTPUT"]["data"] != wanted["OUTPUT"], "the products are not rounded")
    refused(post(client, {**asked, "parameters": {"compute": "float16"}}), 400, "/parameters/compute", "bfloat16")


@check
def masks_and_parameters_reach_the_computation(client):
    attend = [[True, False, True], [False, True, True]]
    got = answered(post(client, {"inputs": inputs() + [tensor("ATTEND", attend, "BOOL")],
                                 "parameters": {"scale": 0.5, "causal": True}}))
    wanted = expected(client, {"scale": 0.5}, {"attend": attend, "causal": True})
    expect(outputs(got)["ATTENTION"]["data"] == flat(wanted["attention"]), "ATTEND, scale and causal")
    got = answered(post(client, {"inputs": inputs(), "parameters": {"causal": '{"align": "top_left"}'}}))
    wanted = expected(client, {}, {"causal": {"align": "top_left"}})
    expect(outputs(got)["ATTENTION"]["data"] == flat(wanted["attention"]), "an object in a string")
    refused(post(client, {"inputs": inputs(), "parameters": {"scal": 1}}), 400, "/parameters/scal", "scale")
    refused(post(client, {"inputs": inputs(), "parameters": {"softcap": -1}}), 400, "/parameters/softcap")


@check
def mistakes_are_named(client):
    def wrong(body, *words):
        refused(post(client, body), 400, *words)

    wrong({}, "inputs")
    wrong({"inputs": []}, "QUERY")
    wrong({"inputs": {}}, "/inputs")
    wrong({"inputs": inputs(), "extra": 1}, "/extra")
    wrong({"inputs": [tensor("NOPE", [[1]])]}, "/inputs/0/name", "NOPE")
    wrong({"inputs": inputs() + [tensor("KEY", KEY)]}, "KEY", "second")
    wrong({"inputs": [{**tensor("QUERY", QUERY), "shape": [3, 3]}]}, "/inputs/0/data", "9")
    wrong({"inputs": [{**tensor("QUERY", QUERY), "shape": [-2, 3]}]}, "/inputs/0/shape", "-2")
    wrong({"inputs": [{"name": "QUERY", "datatype": "FP32", "shape": [1, 1]}]}, "data")
    wrong({"inputs": inputs(), "outputs": [{"name": "NOPE"}]}, "/outputs/0/name", "NOPE")
    wrong({"inputs": inputs(), "outputs": [{"name": "OUTPUT"}, {"name": "OUTPUT"}]}, "second")
    wrong({"inputs": [tensor("QUERY", QUERY), tensor("KEY", [[1.0, 2.0]])]}, "key")
    wrong(b"{", "JSON")


@check
def parameters_of_any_length_are_read(client):
    window = json.dumps([1, None]) + " " * 2000
    got = outputs(answered(post(client, {"inputs": inputs(), "parameters": {"window": window}})))
    want = expected(client, masks={"window": [1, None]})
    expect(got["OUTPUT"]["data"] == flat(want["output"]), f"{got['OUTPUT']}")
    answer = answered(post(client, {"inputs": inputs(), "id": "long " * 1000}))
    expect(answer["id"] == "long " * 1000, f"id {answer['id'][:20]}")


@check
def what_would_be_passed_over_is_refused(client):
    def wrong(more, *words):
        refused(post(client, {"inputs": inputs(), **more}), 400, *words)
    for name, value in (("format", "base64"), ("digits", 3), ("view", "rows"), ("top_k", 1), ("dtype", "float16")):
        wrong({"parameters": {name: value}}, f"/parameters/{name}")
    wrong({"parameters": {"causal": {"offset": [1]}}}, "/parameters/causal", "string")
    wrong({"parameters": {"rope": {"scaling": {"rope_type": "longrope", "short_factor": [1, 2]}}}},
          "/parameters/rope", "string")
    wrong({"outputs": [{"name": "OUTPUT\0X"}]}, "/outputs/0/name")
    wrong({"id": "a\0b"}, "/id")
    def one(shape, number):
        return {"inputs": [{"name": "QUERY", "shape": shape, "datatype": "FP16", "data": [number]}]}
    refused(post(client, one([1, 1], 65520)), 400, "/inputs/0/data", "FP16")
    answered(post(client, one([1, 1], -65519)))
    refused(post(client, one(1, 1)), 400, "/inputs/0/shape", "dimensions")


@check
def wrong_splits_are_named(client):
    body, length = binary_request(inputs())

    def wrong(sent, split, *words):
        refused(post(client, sent, {SPLIT: split}), 400, *words)

    wrong(body, str(len(body) + 1), SPLIT)
    wrong(body, "x", SPLIT)
    wrong(body, "0", SPLIT)
    wrong(body[:-4], str(length), "binary_data_size")
    wrong(body + b"1234", str(length), "4 bytes")
    wrong(body, str(length - 1), "JSON")


@check
def methods_are_kept(client):
    reply = client.get(INFER)
    expect(reply.status == 405 and "POST" in reply.headers["Allow"], f"{reply.status}")
    reply = client.send("POST", "/v2/models/attention", b"", {})
    expect(reply.status == 405 and "GET" in reply.headers["Allow"], f"{reply.status}")


def main():
    parser = argparse.ArgumentParser(description="hold a server against the Open Inference Protocol")
    parser.add_argument("--attnd", default=str(HERE.parents[2] / "build" / "release" / "attnd"), help="server to start")
    parser.add_argument("--only", default="", help="tests whose name holds this")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, \
            Server(options.attnd, environment={"ATTND_MODELS": texts.broken_model(folder)}) as server:
        client = server.client()
        return conclude("protocol", *run_tests(CHECKS + replay.CHECKS + texts.CHECKS, lambda test: test(client), options.only))


if __name__ == "__main__":
    sys.exit(main())
