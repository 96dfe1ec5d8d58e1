"""layer.py: layers to store, as JSON and as files, and the shared code of the tests of kept layers."""

import json
import pathlib
import random
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

import tensor_file  # noqa: E402

JSON, TENSORS = "application/json", "application/vnd.attnd.safetensors"


DEMO = [f"demo.bert.encoder.layer.{i}.attention" for i in range(4)]  # layers of the model that every server has


class Wrong(Exception):
    """A check that does not hold, as a sentence."""


def expect(holds, sentence):
    if not holds:
        raise Wrong(sentence)


def matrix(rows, columns, seed):
    source = random.Random(seed)
    return [[struct.unpack("<f", struct.pack("<f", source.uniform(-1, 1)))[0] for _ in range(columns)]
            for _ in range(rows)]


def layer(seed=1, width=4, heads=2):
    """Self-attention with biases, causal."""
    parts = {name: {"weight": matrix(width, width, f"{seed} {name}"), "bias": matrix(1, width, f"{seed} {name} b")[0]}
             for name in ("query", "key", "value", "output")}
    return {"weights": parts, "options": {"num_heads": heads}, "masks": {"causal": True}}


def as_file(body, dtype="F32"):
    """The same layer as a safetensors file."""
    tensors = {}
    for name, part in body["weights"].items():
        for kind, numbers in part.items():
            is_matrix = isinstance(numbers[0], list)
            shape = [len(numbers), len(numbers[0])] if is_matrix else [len(numbers)]
            flat = [x for row in numbers for x in row] if is_matrix else numbers
            tensors[f"weights.{name}.{kind}"] = (dtype, shape, flat)
    rest = {name: body[name] for name in ("options", "masks") if name in body}
    return tensor_file.write(tensors, {"request": json.dumps(rest)})


def send(client, method, path, body=None, **headers):
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    if isinstance(body, (dict, list)):
        body = json.dumps(body).encode()
    if body is not None:
        fields.setdefault("Content-Type", JSON)
    return client.send(method, path, body, fields)


def answered(reply, status=200):
    expect(reply.status == status, f"status {reply.status}, expected {status}: {reply.body[:300]}")
    return reply.json() if reply.body and reply.headers["Content-Type"] == JSON else None


def refused(reply, status, *words):
    expect(reply.status == status, f"status {reply.status}, expected {status}: {reply.body[:300]}")
    error = reply.json()["error"]
    for word in words:
        expect(word in error, f"{word!r} is not in {error!r}")


def put(client, name, body, **headers):
    if isinstance(body, bytes):
        headers.setdefault("Content_Type", TENSORS)
    return send(client, "PUT", f"/v1/layers/{name}", body, **headers)
