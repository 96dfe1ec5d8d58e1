"""amplifiers.py: no request of 64 KiB gets an answer above 16 MiB unless the server computes it."""

import gzip
import itertools
import json

from attnd import Server
from suite import one_in, registry

TESTS = []
WIRE_MAX, ANSWER_MAX = 64 << 10, 16 << 20
LONGEST = 1024  # bytes of a label


test = registry(TESTS)


def ones(*shape):
    count = 1
    for length in shape:
        count *= length
    return {"shape": list(shape), "data": [0] * count}


def labels(count, length=LONGEST, letter="a"):
    return [letter * (length // len(letter.encode()))] * count


def request(query, tokens=None, **options):
    body = {"inputs": {"query": query}, "options": options}
    if tokens is not None:
        body["tokens"] = {"query": tokens}
    return body


def requests():
    """Name, path, headers, body, and how many operations its answer takes at least."""
    json_answer, csv, svg, png, tensors = ({"Accept": media} for media in (
        "application/json", "text/csv", "image/svg+xml", "image/png", "application/vnd.attnd.safetensors"))
    attention, layer, infer = "/v1/attention", "/v1/multi-head-attention", "/v2/models/attention/infer"
    for media in (json_answer, csv, svg, png, tensors):
        yield "one label of 60 MB", attention, media, request(ones(1, 1), labels(1, 60_000_000)), 0
        yield "labels up to their limit", attention, media, request(ones(1000, 1), labels(1000)), 10**6
        yield "labels that quoting makes longer", attention, media, request(ones(500, 1), labels(500, 1024, '"')), 500 * 500
        yield "labels that escaping makes longer", attention, media, request(ones(300, 1), labels(300, 1024, "\x01")), 300 * 300
        yield "labels of letters of three bytes", attention, media, request(ones(900, 1), labels(900, 1023, "\uff1d")), 900 * 900
        yield "many labels of nothing", attention, media, request(ones(5_000, 1), [""] * 5_000, **{"return": ["output"]}), 5_000**2
    for view in ("bertviz", "circuitsvis", "inspectus", "rows"):
        yield f"labels in the view {view}", attention, {}, request(ones(900, 1), labels(900), view=view), 900 * 900
    for form in ("nested", "flat", "base64"):
        for digits in (1,) if form == "base64" else (17,):
            echo = request(ones(1, 1), digits=digits, format=form, **{"return": ["v"]})
            echo["inputs"]["key"] = ones(3_000_000, 1)
            yield f"values that come back as {form} of {digits} digits", attention, {}, echo, 3_000_000
            kept = request(ones(1, 1), digits=digits, format=form, **{"return": ["present_key", "present_value"]})
            kept["inputs"].update(past_key=ones(1, 1, 3_000_000, 1), past_value=ones(1, 1, 3_000_000, 1),
                                  query=ones(1, 1, 1, 1))
            yield f"a past that comes back as {form} of {digits} digits", attention, {}, kept, 3_000_000
    yield "values that come back as CSV", attention, csv, request(ones(3_000_000, 1), **{"return": ["v"]}), 0
    yield "a declared shape without its data", attention, {}, request({"shape": [1 << 20, 1 << 20], "data": [0]}), 0
    yield "a declared shape of nothing", attention, {}, request({"shape": [1 << 40, 0], "data": []}), 0
    yield "a declared shape of base64", attention, {}, request(
        {"shape": [1 << 30, 1 << 30], "dtype": "float32", "base64": "AAAA"}), 0
    yield "ranges", attention, {}, request(ones(1, 1), heads="0-1048575", queries="0-1048575", keys=[[0, 1048575]]), 0
    yield "lists of ranges", attention, {}, request(ones(1, 1), keys=[[0, 500000], [500001, 1000000]]), 0
    yield "a cache of a long name", attention, {}, request(ones(1, 1), cache="a" * 60_000_000), 0
    yield "a member of a long name", attention, {}, {"inputs": {"query": [[1]]}, "a" * 900_000: 1}, 0
    yield "a word of 60 MB", attention, {}, request(ones(1, 1), compute="a" * 60_000_000), 0
    yield "slopes for many heads", attention, {}, request(ones(1, 4096, 1, 1), alibi=True), 4096
    yield "rope of many positions", attention, {}, request(ones(5_000, 2), rope={"layout": "half"}, **{"return": ["q"]}), 0
    yield "empty rows", attention, {}, {**request(ones(10_000, 1), **{"return": ["lse"]}), "masks": {"key_lengths": [0]}}, 0
    yield "a mask that is broadcast", attention, {}, {
        **request(ones(1, 16, 1000, 1), **{"return": ["mask"]}), "masks": {"attend": [[True]]}}, 16 * 1000 * 1000
    tensor = {"name": "QUERY", "datatype": "FP32", "shape": [1, 1, 1, 1], "data": [0]}
    yield "an id of 60 MB", infer, {}, {"id": "a" * 60_000_000, "inputs": [tensor]}, 0
    yield "an id of 900 KB", infer, {}, {"id": "a" * 900_000, "inputs": [tensor]}, 0
    yield "a tensor of a long name", infer, {}, {"inputs": [{**tensor, "name": "a" * 900_000}]}, 0
    yield "an output many times", infer, {}, {"inputs": [tensor], "outputs": [{"name": "OUTPUT"}] * 30_000}, 0
    yield "texts where numbers belong", infer, {}, {"inputs": [{**tensor, "datatype": "BYTES", "data": ["a" * 900_000]}]}, 0
    weights = {name: {"weight": ones(1000, 1000)} for name in ("query", "key", "value")}
    yield "weights that come back", layer, {}, {
        "inputs": {"query": ones(1, 1000)}, "options": {"return": ["q", "k", "v"]}, "weights": weights}, 10**6


@test
def small_requests_make_no_large_answers_that_they_do_not_compute(program):
    sent = []
    with Server(program) as server:
        for name, path, headers, body, operations in itertools.islice(requests(), None, None, one_in(7)):
            text = gzip.compress(json.dumps(body).encode(), 9)
            wire = {"Content-Type": "application/json", "Content-Encoding": "gzip", **headers}
            reply = server.client().send("POST", path, text, wire)
            size = len(reply.body)
            sent.append(size)
            if len(text) > WIRE_MAX:
                print(f"    {name}: {len(text)} bytes on the wire, not counted")
            assert reply.status in (200, 400, 413), f"{name}: {reply.status} {reply.body[:300]}"
            assert len(text) > WIRE_MAX or size <= max(ANSWER_MAX, 32 * operations), \
                f"{name} ({headers}): {len(text)} bytes make an answer of {size} by {operations} operations"
    print(f"    {len(sent)} requests, the largest answer {max(sent) / 1e6:.1f} MB")
