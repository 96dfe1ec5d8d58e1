#!/usr/bin/env python3
"""
vectors.py: random requests, and every step of each as the reference computes it, for test_vectors.c.

    python3 tests/fuzz/vectors.py FILE

FILE is a sequence of records, little-endian: four uint32 (1 for a layer, bytes of the request, rows without keys, steps),
the request as JSON, and for each step its name in 24 bytes, its shape as uint64 (rank, then four dimensions), its numbers,
and by how much each may be off, both as float64.
"""

import itertools
import pathlib
import random
import struct
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "support" / "reference"), str(HERE.parent / "support")]

import attention  # noqa: E402
from bounded import Double, Single, parts  # noqa: E402
from random_request import Builder, text_of  # noqa: E402

REQUESTS, TRIES = 800, 10000
# A sum of random terms of either sign is off by less than 8 unit roundoffs, however long it is: see closeness.c.
ROUNDINGS = 4

ROPES = ("default", "linear", "dynamic", "yarn", "longrope", "llama3", "proportional")
MANY = 128  # tokens: of several tasks
# What combinations() and of_many_tokens() find in some request. What the first REQUESTS lack, later ones add.
NEEDED = {
    *itertools.product(["rope"], ("half", "interleaved", "interleaved_to_half"), ROPES),
    *itertools.product(["qk_norm"], ("layer", "rms", "l2"), (0, 1, 2)),
    *itertools.product(["norm"], ("layer", "rms"), ("pre", "post"), (False, True), (False, True)),
    *itertools.product(["residual"], ("layer", "rms"), ("pre", "post"), (False, True)),
    *itertools.product(["fused"], ("stacked", "per_group", "per_head"), (False, True), (False, True)),
    *itertools.product(["network"], ("relu", "gelu", "gelu_tanh", "quick_gelu", "silu"), (False, True)),
    *itertools.product(["parallel"], (False, True), ("layer", "rms", None)),
    *itertools.product(["pre-norm", "block"], ("self", "key", "own")),
    *itertools.product(["turn"], ("pairs", "tables"), (False, True), (False, True)),
    *itertools.product(["gate"], (False, True)),
    *itertools.product(["recurrence"], ("linear", "gated", "delta", "gated_delta"), (False, True)),
    *itertools.product(["many queries"], ("pre", "post", "gate", "turn", "network", "residual")),
    *itertools.product(["many keys"], ("turn", "contribution", "fused")),
}


class LikelySingle(Single):
    __slots__ = ()
    roundings = ROUNDINGS


class LikelyDouble(Double):
    __slots__ = ()
    roundings = ROUNDINGS


def random_request(number):
    """Small ones mostly; some have more features, or more keys or queries than a tile of the kernel."""
    chance = random.Random(number)
    if number % 50 == 3:
        return Builder(chance, 24)
    if number % 50 == 6:
        return Builder(chance, 3, longest=600)
    return Builder(chance, 2, longest=2 * MANY) if number >= REQUESTS and number % 2 == 0 else Builder(chance, 5)


def combinations(request):
    """What stands in the request beside what."""
    options, weights, spec = request.options, request.body.get("weights", {}), request.spec
    if "rope" in options:
        scaling = options["rope"].get("scaling", {})
        yield "turn", "tables" if "cos" in options["rope"] else "pairs", "positions" in options["rope"], bool(spec.past_len)
        yield "rope", options["rope"].get("layout", "half"), scaling.get("rope_type", scaling.get("type", "default"))
    if "qk_norm" in options:
        gain = weights.get("query_norm", {}).get("weight")
        yield "qk_norm", options["qk_norm"].get("type", "rms"), len(attention.Tensor.from_json(gain).shape) if gain else 0
    if "norm" in options:
        kind, position, affine = options["norm"].get("type", "layer"), spec.norm["position"], weights.get("norm", {})
        yield "norm", kind, position, "weight" in affine, "bias" in affine
        yield "residual", kind, position, bool(options.get("residual"))
        if position == "pre":
            yield "pre-norm", request.form
    if "qkv" in weights:
        yield "fused", weights["qkv"].get("order", "stacked"), spec.turns, bool(spec.past_len)
    if "feed_forward" in options:
        own, network = options["feed_forward"], weights["feed_forward"]
        yield "block", request.form
        yield "network", own["activation"], "gate" in network
        yield "parallel", bool(own.get("parallel")), own["norm"].get("type", "layer") if "norm" in own else None
    if "gate" in weights:
        yield "gate", is_gate_of_heads(request)
    if spec.is_recurrent:
        yield "recurrence", options["mechanism"]["update_rule"], "past_state" in request.body["inputs"]


def of_many_tokens(request):
    """What a request of many queries, or of many keys, has of that which is computed token by token."""
    options, weights, spec = request.options, request.body.get("weights", {}), request.spec
    if spec.batch * spec.q_len > MANY:
        has = {"gate": "gate" in weights, "turn": spec.turns, "network": spec.has_network, "residual": spec.residual}
        if "norm" in options:
            has[spec.norm["position"]] = True
        yield from (("many queries", name) for name, is_there in has.items() if is_there)
    if spec.batch * spec.kv_len > MANY:
        has = {"turn": spec.turns, "fused": "qkv" in weights,
               "contribution": "contribution" in request.possible and not request.masks and not spec.mechanism}
        yield from (("many keys", name) for name, is_there in has.items() if is_there)


def is_gate_of_heads(request):
    """Whether a gate is one number a head."""
    shape = attention.Tensor.from_json(request.body["weights"]["gate"]["weight"]).shape
    width = shape[-1 if request.layout == "in_out" else -2] * (shape[0] if len(shape) == 3 else 1)
    return width == request.spec.heads


def want_everything(request):
    """Wants all steps that the request has, and fixes the seed of its dropout. Dropout of the residual is left out."""
    dropped = ("residual", "output") if request.spec.drops_residual() else ()
    wanted = [step for step in request.possible if step not in dropped]
    for options in (request.options, request.meant["options"]):
        options["return"] = wanted
        if request.spec.dropout:
            options["dropout"].setdefault("seed", 7)
    request.body["options"] = request.options
    return wanted


def record(request):
    wanted = want_everything(request)
    kind = LikelySingle if request.spec.compute == "float32" else LikelyDouble
    outputs, steps = attention.answer(request.path.removeprefix("/v1/"), request.meant, kind)
    text = text_of(request.body).encode()
    yield struct.pack("<4I", request.spec.is_layer, len(text), len(steps["rows_without_keys"]), len(wanted)) + text
    for name in wanted:
        numbers, shape = list(map(parts, outputs[name].data)), outputs[name].shape
        yield struct.pack("<24s5Q", name.encode(), len(shape), *shape, *[1] * (4 - len(shape)))
        yield struct.pack(f"<{2 * len(numbers)}d", *(value for value, _ in numbers), *(error for _, error in numbers))


def choose():
    """The first REQUESTS, and those of later ones that have something needed which all before them lack."""
    requests, missing = [], set(NEEDED)
    for number in range(TRIES):
        if number >= REQUESTS and not missing:
            return requests
        request = random_request(number)
        found = {*combinations(request), *of_many_tokens(request)}
        if number < REQUESTS or found & missing:
            requests.append(request)
        missing -= found
    sys.exit(f"vectors: no request of {TRIES} has {sorted(missing, key=str)}")


def main():
    pathlib.Path(sys.argv[1]).write_bytes(b"".join(part for request in choose() for part in record(request)))


if __name__ == "__main__":
    main()
