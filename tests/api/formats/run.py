#!/usr/bin/env python3
"""
run.py: sends the same requests as JSON, safetensors and CSV; the answers must have the same numbers.

The reader and writer of safetensors here (support/tensor_file.py) share no code with the server's.
"""

import argparse
import csv
import io
import json
import pathlib
import random
import struct
import xml.etree.ElementTree
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "support"))

import tensor_file  # noqa: E402
from attnd import Server  # noqa: E402
from suite import conclude, registry, run_tests  # noqa: E402

TENSORS = "application/vnd.attnd.safetensors"
PATH = "/v1/multi-head-attention"
LENGTH, WIDTH, HEADS = 5, 8, 2
STEPS = ["q", "scores", "masked", "attention", "lse", "output", "attention_mean", "mask"]
CASES = []
case = registry(CASES)


def main():
    parser = argparse.ArgumentParser(description="compare formats of requests and answers")
    parser.add_argument("--attnd", default=str(HERE.parents[2] / "build" / "release" / "attnd"), help="server to start")
    parser.add_argument("--url", help="a server that runs already")
    parser.add_argument("--only", default="", help="tests whose name holds this")
    options = parser.parse_args()
    # Instrumented code on a busy machine needs longer than the usual deadline.
    with Server(options.attnd, options.url, environment={"ATTND_DEADLINE": "900"}) as server:
        return conclude("formats", *run_tests(CASES, lambda test: test(server.client()), options.only))


# ---- requests ----

def request(**options):
    numbers = random.Random(5)

    def matrix(rows, columns):
        return [[struct.unpack("<f", struct.pack("<f", numbers.gauss(0, 1)))[0] for _ in range(columns)]
                for _ in range(rows)]

    return {"inputs": {"query": matrix(LENGTH, WIDTH)},
            "weights": {name: {"weight": matrix(WIDTH, WIDTH)} for name in ("query", "key", "value")},
            "masks": {"causal": True, "padding": [[True, True, False, True, True]]},
            "options": {"num_heads": HEADS, "return": STEPS, **options},
            "tokens": {"query": ["the", "=cmd", "a,b", 'say "hi"', "naïve"]}}


def as_file(whole, dtype="F32", weight_name="weights.%s.weight"):
    """The same with every tensor but masks as bytes."""
    tensors = {f"inputs.{name}": (dtype, [LENGTH, WIDTH], sum(matrix, [])) for name, matrix in whole["inputs"].items()}
    for name, weight in whole["weights"].items():
        tensors[weight_name % name] = (dtype, [WIDTH, WIDTH], sum(weight["weight"], []))
    tensors["masks.padding"] = ("BOOL", [1, LENGTH], whole["masks"]["padding"][0])
    rest = {"masks": {"causal": True}, "options": whole["options"], "tokens": whole["tokens"]}
    return tensor_file.write(tensors, {"request": json.dumps(rest)})


def post(client, body, content_type="application/json", accept="application/json", status=200, path=PATH):
    if isinstance(body, dict):
        body = json.dumps(body).encode()
    reply = client.send("POST", path, body, {"Content-Type": content_type, "Accept": accept})
    expect(reply.status == status, f"status {reply.status}: {reply.body[:300]}")
    if status == 200:
        expect(reply.headers["Content-Type"].split(";")[0] == accept, reply.headers["Content-Type"])
    return reply


def expect(holds, message):
    if not holds:
        raise AssertionError(message)


def flat(tensor):
    return [number for part in tensor for number in flat(part)] if isinstance(tensor, list) else [tensor]


def float32(number):
    """null stands for a masked score."""
    return float("-inf") if number is None else struct.unpack("<f", struct.pack("<f", number))[0]


# ---- cases ----

@case
def a_request_as_a_file_is_the_same_request(client):
    wanted = post(client, request()).json()
    for dtype in ("F32", "F64"):
        got = post(client, as_file(request(), dtype), TENSORS).json()
        expect(got == wanted, f"{dtype} gave other numbers")
    short = post(client, as_file(request(), weight_name="weights.%s"), TENSORS).json()
    expect(short == wanted, "weights by their short names gave other numbers")


@case
def an_answer_as_a_file_has_the_same_numbers(client):
    wanted = post(client, request()).json()
    reply = post(client, request(), accept=TENSORS)
    (length,) = struct.unpack("<Q", reply.body[:8])
    expect((8 + length) % 64 == 0, f"data starts at {8 + length}")
    tensors, metadata = tensor_file.read(reply.body)
    expect(set(tensors) == set(STEPS), sorted(tensors))
    for name, (dtype, shape, numbers) in tensors.items():
        expect(shape == wanted["shapes"][name], f"{name} has the shape {shape}")
        expect(dtype == ("BOOL" if name == "mask" else "F32"), f"{name} is {dtype}")
        expect(numbers == [float32(number) for number in flat(wanted["outputs"][name])], f"{name} differs")
    for name in ("effective", "diagnostics", "tokens"):
        expect(json.loads(metadata[name]) == wanted[name], f"{name} differs")


@case
def gradients_travel_as_files_both_ways(client):
    for steps in (["output"], ["grad_scores", "grad_attention", "inputs.query", "weights.key.weight", "attention"]):
        whole = request(**{"return": steps})
        whole["inputs"]["grad_output"] = request()["weights"]["key"]["weight"][:LENGTH]
        path = f"{PATH}/gradients"
        wanted = post(client, whole, path=path).json()
        expect(post(client, as_file(whole), TENSORS, path=path).json() == wanted, "the request as a file gave other numbers")
        tensors, metadata = tensor_file.read(post(client, as_file(whole), TENSORS, TENSORS, path=path).body)
        expect(json.loads(metadata["effective"]) == wanted["effective"], "effective differs")
        expect("gradients.inputs.query" in tensors and set(wanted["outputs"]) <= set(tensors), sorted(tensors))
        for name, (_, shape, numbers) in tensors.items():
            found, its_shape = (wanted, wanted["shapes"]) if name.startswith("gradients.") else (wanted["outputs"], wanted["shapes"])
            for part in name.split("."):
                found, its_shape = found[part], its_shape[part]
            expect(shape == its_shape and numbers == [float32(number) for number in flat(found)], f"{name} differs")
        count = sum(len(flat(part)) for part in leaves(wanted["gradients"]))
        expect(count == sum(len(numbers) for name, (_, _, numbers) in tensors.items() if name.startswith("gradients.")), "one is missing")
    layer = {"weights": request()["weights"], "options": {"num_heads": HEADS}}
    expect(client.send("PUT", "/v1/layers/formats", json.dumps(layer).encode(), {"Content-Type": "application/json"}).status == 201, "put")
    inputs = {"inputs": {"query": request()["inputs"]["query"], "grad_output": request()["weights"]["key"]["weight"][:LENGTH]}}
    kept = "/v1/layers/formats/gradients"
    tensors, _ = tensor_file.read(post(client, inputs, accept=TENSORS, path=kept).body)
    wanted = flat(post(client, inputs, path=kept).json()["gradients"]["inputs"]["query"])
    expect(tensors["gradients.inputs.query"][2] == [float32(number) for number in wanted], "a kept layer's differ")
    client.send("DELETE", "/v1/layers/formats")


def leaves(value):
    return [leaf for part in value.values() for leaf in leaves(part)] if isinstance(value, dict) else [value]


@case
def vectors_go_into_a_model_as_a_file(client):
    path, numbers = "/v1/models/demo/attention", random.Random(2)
    vectors = [[numbers.gauss(0, 1) for _ in range(64)] for _ in range(3)]
    options = {"layers": [1], "return": ["attention", "hidden"], "compute": "float64"}
    wanted = post(client, {"inputs": {"embeddings": vectors}, "options": options}, path=path).json()
    body = tensor_file.write({"inputs.embeddings": ("F64", [3, 64], sum(vectors, []))}, {"request": json.dumps({"options": options})})
    expect(post(client, body, TENSORS, path=path).json() == wanted, "it gave other numbers")
    text = tensor_file.write({}, {"request": json.dumps({"inputs": {"text": "it is"}})})
    expect(post(client, text, TENSORS, path=path).json() == post(client, {"inputs": {"text": "it is"}}, path=path).json(), "a text alone")
    for pointer, inputs in (("/inputs/ids", {}), ("/inputs/other", {}), ("/options/layers", {"text": "it is"})):
        wrong = tensor_file.write({pointer[1:].replace("/", "."): ("I64", [1], [1])}, {"request": json.dumps({"inputs": inputs})})
        refusal = post(client, wrong, TENSORS, status=400, path=path).json()
        expect(refusal["pointer"] == pointer, refusal["error"])
    refusal = post(client, body[:-1], TENSORS, status=400, path=path).json()
    expect(refusal["error"].startswith("not safetensors: "), refusal["error"])


@case
def maps_in_other_types_are_rounded(client):
    reply = post(client, request(**{"return": ["attention"]}), accept=TENSORS)
    weights = tensor_file.read(reply.body)[0]["attention"][2]
    rounded = {"float16": ("F16", 2**-11), "bfloat16": ("BF16", 2**-8), "float64": ("F64", 0), "uint8": ("U8", None)}
    for dtype, (name, relative) in rounded.items():
        reply = post(client, request(**{"return": ["attention"], "dtype": dtype}), accept=TENSORS)
        got = tensor_file.read(reply.body)[0]["attention"]
        expect(got[0] == name, f"{dtype} is {got[0]}")
        for number, weight in zip(got[2], weights):
            if dtype == "uint8":
                expect(abs(number - 255 * weight) <= 0.5, f"{number} for {weight}")
            else:
                expect(abs(number - weight) <= relative * weight + 2**-25, f"{dtype}: {number} for {weight}")


@case
def top_k_is_the_same_everywhere(client):
    options = {"return": ["attention"], "top_k": 2}
    wanted = post(client, request(**options)).json()["outputs"]["attention"]
    tensors = tensor_file.read(post(client, request(**options), accept=TENSORS).body)[0]
    expect(tensors["attention.indices"][2] == flat(wanted["indices"]), "indices differ")
    expect(tensors["attention.weights"][2] == [float32(w) for w in flat(wanted["weights"])], "weights differ")
    lines = list(csv.DictReader(io.StringIO(post(client, request(**options), accept="text/csv").body.decode())))
    listed = [index for index in flat(wanted["indices"]) if index >= 0]
    expect([int(line["key"]) for line in lines] == listed, "keys in CSV differ")


@case
def csv_has_every_number_in_its_place(client):
    wanted = post(client, request()).json()["outputs"]
    text = post(client, request(), accept="text/csv").body.decode()
    lines = list(csv.DictReader(io.StringIO(text, newline="")))
    tokens = ["the", "'=cmd", "a,b", 'say "hi"', "naïve"]
    for line in lines:
        place = [line[column] for column in ("batch", "head", "query", "key", "feature")]
        value = wanted[line["step"]]
        if line["step"] == "output":  # which has the rank of query
            place[0] = ""
        for index in place:
            value = value[int(index)] if index else value
        got = {"": None, "1": True, "0": False}[line["value"]] if line["step"] == "mask" else line["value"]
        got = None if got == "" else float(got) if isinstance(got, str) else got
        expect(got == value, f"{line} is not {value}")
        expect(not line["query"] or line["query_token"] == tokens[int(line["query"])], f"label of {line}")
    expect(len(lines) == sum(len(flat(tensor)) for tensor in wanted.values()), f"{len(lines)} lines")


def picture_size(png):
    expect(png[:8] == b"\x89PNG\r\n\x1a\n" and png[12:16] == b"IHDR", "it is no PNG")
    return struct.unpack(">II", png[16:24])


@case
def pictures_are_drawn_as_asked(client):
    def draw(accept, query="", status=200, **options):
        reply = client.send("POST", PATH + query, json.dumps(request(**options)).encode(),
                            {"Content-Type": "application/json", "Accept": accept})
        expect(reply.status == status, f"{query}: status {reply.status}: {reply.body[:300]}")
        return reply.body

    whole, one = draw("image/png"), draw("image/png", "?head=1")
    expect(picture_size(one)[0] < picture_size(whole)[0], "one head is not narrower than all of them")
    expect(draw("image/png", "?colormap=cividis") != whole == draw("image/png", "?colormap=viridis"), "colormap")
    expect(draw("image/png", f"?head={HEADS}", 400) and b"head" in draw("image/png", "?head=x", 400), "head")
    expect(b"colormap" in draw("image/png", "?colormap=jet", 400), "colormap")
    expect(b"/options/pool" in draw("image/png", "", 400, pool={"rows": 2}), "pool")
    expect(b"image/png" in draw("application/json", "?head=0", 400), "a parameter of pictures beside JSON")
    drawing = xml.etree.ElementTree.fromstring(draw("image/svg+xml"))
    texts = "".join(drawing.itertext())
    for token in request()["tokens"]["query"]:
        expect(token in texts, f"the label {token} is not in the drawing")


def events_of(reply):
    expect(reply.status == 200 and reply.headers["Content-Type"] == "text/event-stream", f"{reply.status}: {reply.body[:300]}")
    expect(reply.body.endswith(b"\n\n"), "the last event does not end")
    events = [event.split(b"\n") for event in reply.body[:-2].split(b"\n\n")]
    for lines in events:
        expect(len(lines) >= 2 and lines[0].startswith(b"event: "), f"an event is {lines[:2]}")
        expect(all(line.startswith(b"data: ") for line in lines[1:]), f"an event is {lines[:3]}")
    return [(name.removeprefix(b"event: ").decode(), b"\n".join(line.removeprefix(b"data: ") for line in data)) for name, *data in events]


def post_twice(client, path, body):
    """The events, and the plain answer."""
    asked = {"Content-Type": "application/json", "Accept-Encoding": "gzip"}
    events = events_of(client.send("POST", path, body, {**asked, "Accept": "text/event-stream"}))
    plain = client.send("POST", path, body, {"Content-Type": "application/json"})
    expect(plain.status == 200, f"{path}: {plain.body[:300]}")
    return events, plain.body


@case
def events_end_with_the_bytes_of_the_answer(client):
    layer = {"weights": {name: {"weight": [[1, 0], [0, 1]]} for name in ("query", "key", "value")}}
    client.send("PUT", "/v1/layers/events", json.dumps(layer).encode(), {"Content-Type": "application/json"})
    query = [[0.1 * i, 1 - 0.01 * i] for i in range(300)]
    graded = {"query": query, "grad_output": query}
    words = {"inputs": {"text": "Anna likes \n\r tea"}, "options": {"return": ["sweep", "attention"], "metric": {"words": ["tea"]},
             "sweep": {"at": "hidden", "over": ["layer", "query"], "do": "zero"}}}
    integrated = {"inputs": {"text": ["Anna likes [MASK]", "tea"]},
                  "options": {"return": ["integrated"], "steps": 300, "metric": {"words": ["tea"], "query": 1}}}
    labels = [f"{i}\n\r\u2028" for i in range(300)]
    rows = {"options": {"view": "rows"}}
    for path, sent, what in (("/v1/attention", {"inputs": {"query": query}, "tokens": {"query": labels}}, "task"),
                             ("/v1/attention", {"inputs": {"query": [[1]]}}, "task"),
                             ("/v1/attention", {"inputs": {"query": query}, "tokens": {"query": labels}, **rows}, "task"),
                             ("/v1/multi-head-attention", {"inputs": {"query": query}, **layer}, "task"),
                             ("/v1/attention/gradients", {"inputs": graded}, "task"),
                             ("/v1/multi-head-attention/gradients", {"inputs": graded, **layer}, "task"),
                             ("/v1/layers/events/attention", {"inputs": {"query": query}}, "task"),
                             ("/v1/layers/events/gradients", {"inputs": graded}, "task"),
                             ("/v2/models/attention/infer", {"inputs": [{"name": "QUERY", "datatype": "FP64", "shape": [300, 2], "data": query}]}, "task"),
                             ("/v2/models/demo/infer", {"inputs": [{"name": "TEXT", "datatype": "BYTES", "shape": [1], "data": ["Anna likes tea"]}]}, "layer"),
                             ("/v1/models/demo/attention", words, "layer"),
                             ("/v1/models/demo/attention", {"inputs": words["inputs"], **rows}, "layer"), ("/v1/models/demo/gradients", integrated, "layer")):
        for body in (json.dumps(sent).encode(), json.dumps(sent, indent=1).encode()):
            events, plain = post_twice(client, path, body)
            expect(events[-1] == ("result", plain), f"{path}: {events[-1]}")
            for name, data in events[:-1]:
                progress = json.loads(data)
                expect(name == "progress" and 0 <= progress["done"] <= progress["of"] > 0, f"{path}: {name} {data}")
                expect(progress["what"] in (what, "preparation"), f"{path}: {data}")


@case
def errors_before_the_computation_are_no_events(client):
    bytes_wanted = b'{"inputs": [{"name": "QUERY", "datatype": "FP32", "shape": [1, 1], "data": [1]}], "parameters": {"binary_data_output": true}}'
    for path, body, accept, status in (("/v2/models/attention/infer", bytes_wanted, "text/event-stream", 400), (PATH, b'{"inputs": {"qery": [[1]]}}', "text/event-stream", 400), (PATH, b"{", "text/event-stream", 400),
                                       ("/v1/models/none/attention", b'{"inputs": {"text": "a"}}', "text/event-stream", 404),
                                       ("/v1/models/demo/tokens", b'{"inputs": {"text": "a"}}', "text/event-stream", 406)):
        reply = client.send("POST", path, body, {"Content-Type": "application/json", "Accept": accept})
        expect(reply.status == status and reply.headers["Content-Type"] == "application/json", f"{path}: {reply.status}")


@case
def a_type_of_bytes_is_refused_where_there_are_none(client):
    for accept in ("text/csv", "application/json"):
        for form in ("nested", "base64"):
            reply = client.send("POST", PATH, json.dumps(request(dtype="float16", format=form)).encode(),
                                {"Content-Type": "application/json", "Accept": accept})
            wanted = 200 if accept == "application/json" and form == "base64" else 400
            expect(reply.status == wanted, f"{accept}, {form}: status {reply.status}")
    body = {"inputs": [{"name": "QUERY", "datatype": "FP32", "shape": [1, 1], "data": [1]}]}
    for parameters in ({"dtype": "float16", "format": "base64"}, {"top_k": 1}, {"view": "rows"}):
        reply = client.post("/v2/models/attention/infer", {**body, "parameters": parameters})
        expect(reply.status == 400, f"{parameters}: status {reply.status}")


@case
def a_broken_file_is_refused(client):
    body = as_file(request())
    numbers = random.Random(9)
    post(client, body[:-1], TENSORS, status=400)
    post(client, body + b"\0", TENSORS, status=400)
    post(client, b"\xff" * 8 + body[8:], TENSORS, status=400)
    for _ in range(300):
        mutant = bytearray(body[: numbers.randrange(len(body))] if numbers.random() < 0.2 else body)
        for _ in range(numbers.randrange(1, 4)):
            if mutant:
                mutant[numbers.randrange(min(len(mutant), 600))] = numbers.randrange(256)
        reply = client.send("POST", PATH, bytes(mutant), {"Content-Type": TENSORS})
        expect(reply.status in (200, 400, 413), f"status {reply.status}")


if __name__ == "__main__":
    sys.exit(main())
