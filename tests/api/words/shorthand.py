"""shorthand.py: short forms of members mean what their long forms mean, in answers and in kept layers."""

import json

from suite import registry
from tensors import Tensor, worst_excess

TESTS = []
test = registry(TESTS)

EYE, SWAP = [[1, 0], [0, 1]], [[0.5, -1], [2, 0.25]]
QUERY = {"query": [[1, 0], [0, 1], [1, 1]]}
WEIGHTS = {"query": {"weight": SWAP}, "key": {"weight": EYE}, "value": {"weight": EYE}}
NETWORK = {"up": {"weight": EYE}, "down": {"weight": SWAP}}
ATTENTION, LAYER = "/v1/attention", "/v1/multi-head-attention"


def options(short, long, **others):
    return tuple({"inputs": QUERY, "options": {**others, **form}} for form in (short, long))


def masks(short, long):
    return tuple({"inputs": QUERY, "masks": form} for form in (short, long))


def query(short, long):
    return tuple({"inputs": {"query": form}} for form in (short, long))


def layer(short, long, name="options", **others):
    return tuple({"inputs": QUERY, "weights": WEIGHTS, **others, name: form} for form in (short, long))


def latent(options):
    """A layer whose queries come of a latent that is the input."""
    return {"inputs": QUERY, "weights": {**WEIGHTS, "query_latent": SWAP}, "options": options}


ACTIVE = {"training": True, "return": ["dropped"]}
# (path, short, long)
PAIRS = [
    (ATTENTION, *options({"rope": True}, {"rope": {}})),
    (ATTENTION, *options({"rope": False}, {})),
    (ATTENTION, *options({"rope": "interleaved"}, {"rope": {"layout": "interleaved"}})),
    (ATTENTION, *options({"qk_norm": True}, {"qk_norm": {"type": "rms"}})),
    (ATTENTION, *options({"qk_norm": "l2"}, {"qk_norm": {"type": "l2"}})),
    (ATTENTION, *options({"qk_norm": False}, {})),
    (LAYER, *(latent({"latent_norm": form}) for form in ("l2", {"type": "l2"}))),
    (LAYER, *(latent({"latent_norm": form}) for form in (True, {"type": "rms"}))),
    (ATTENTION, *options({"dropout": 0.5}, {"dropout": {"p": 0.5}}, **ACTIVE)),
    (ATTENTION, *options({"dropout": 1}, {"dropout": {"p": 1}}, **ACTIVE)),
    (ATTENTION, *options({"return": "lse"}, {"return": ["lse"]})),
    (ATTENTION, *masks({"key_lengths": 2}, {"key_lengths": [2]})),
    (ATTENTION, *masks({"query_lengths": 2}, {"query_lengths": [2]})),
    (ATTENTION, *masks({"bias": [[0, None, None], [0, 0, None], [0, 0, 0]]},
                       {"bias": [[0, "-Infinity", "-Infinity"], [0, 0, "-Infinity"], [0, 0, 0]]})),
    (ATTENTION, *masks({"bias": [["-inf", 0, 0]]}, {"bias": [["-Infinity", 0, 0]]})),
    (ATTENTION, *query([["nan", 1], [1, 0]], [["NaN", 1], [1, 0]])),
    (ATTENTION, *query([[1, 1], ["inf", "-inf"]], [[1, 1], ["Infinity", "-Infinity"]])),
    (ATTENTION, *query({"shape": [1, 2], "dtype": "float32", "data": [1, 2]}, [[1, 2]])),
    (ATTENTION, {"inputs": {"scores": [[None, 1], [2, 3]]}}, {"inputs": {"scores": [["-Infinity", 1], [2, 3]]}}),
    (ATTENTION, {"inputs": QUERY, "tokens": ["a", "b", "nan"]}, {"inputs": QUERY, "tokens": {"query": ["a", "b", "nan"]}}),
    (ATTENTION, {"inputs": QUERY, "tokens": ["inf", "b", "c"]}, {"inputs": QUERY, "tokens": {"query": ["inf", "b", "c"]}}),
    (LAYER, *layer({**WEIGHTS, "query": SWAP}, WEIGHTS, "weights")),
    (LAYER, *layer({**WEIGHTS, "output": {"shape": [2, 2], "data": [1, 2, 3, 4]}},
                   {**WEIGHTS, "output": {"weight": [[1, 2], [3, 4]]}}, "weights")),
    (LAYER, *layer({"qkv": [[1, 0, 1, 0, 1, 0], [0, 1, 0, 1, 0, 1]]},
                   {"qkv": {"weight": [[1, 0, 1, 0, 1, 0], [0, 1, 0, 1, 0, 1]]}}, "weights")),
    (LAYER, *layer({**WEIGHTS, "norm": [1, 2]}, {**WEIGHTS, "norm": {"weight": [1, 2]}}, "weights", options={"norm": {}})),
    (LAYER, *layer({**WEIGHTS, "feed_forward": {"up": EYE, "down": SWAP, "norm": [2, 1]}},
                   {**WEIGHTS, "feed_forward": {**NETWORK, "norm": {"weight": [2, 1]}}}, "weights",
                   options={"feed_forward": {"activation": "relu"}})),
    (LAYER, *layer({"norm": "layer"}, {"norm": {"type": "layer"}})),
    (LAYER, *layer({"norm": "rms"}, {"norm": {"type": "rms"}})),
    (LAYER, *layer({"norm": True}, {"norm": {}})),
    (LAYER, *layer({"norm": False}, {})),
    (LAYER, *layer({"feed_forward": {"activation": "relu", "norm": "rms"}},
                   {"feed_forward": {"activation": "relu", "norm": {"type": "rms"}}},
                   weights={**WEIGHTS, "feed_forward": NETWORK})),
    (ATTENTION + "/gradients", *(
        {"inputs": {**QUERY, "grad_output": [[1, 1]] * 3}, "options": {"return": form}} for form in ("query", ["query"]))),
    (LAYER + "/gradients", *(
        {"inputs": {**QUERY, "grad_output": [[1, 1]] * 3}, "weights": {**WEIGHTS, "query": form}}
        for form in (SWAP, {"weight": SWAP}))),
    ("/v1/models/demo/attention", *({"inputs": {"text": "a"}, "options": {"return": form}} for form in ("hidden", ["hidden"]))),
]


def answer_of(client, path, request):
    reply = client.post(path, request)
    assert reply.status == 200, f"{path} {json.dumps(request)}: {reply.body[:400].decode()}"
    return reply.json()


@test
def a_short_form_has_the_answer_of_its_long_form(client):
    for path, short, long in PAIRS:
        assert answer_of(client, path, short) == answer_of(client, path, long), f"{path} {json.dumps(short)}"


def excess(got, wanted):
    """float32 keeps 24 bits, and a few operations on numbers near 1 lose two of them at most."""
    return worst_excess(Tensor.from_json(got["attention"]), Tensor.from_json(wanted["attention"]), 1e-6, 1e-7)


@test
def the_masked_scores_of_an_answer_can_be_sent_back(client):
    first = answer_of(client, ATTENTION, {"inputs": QUERY, "masks": {"causal": True},
                                          "options": {"return": ["masked", "attention"]}})["outputs"]
    again = answer_of(client, ATTENTION, {"inputs": {"scores": first["masked"]}})["outputs"]
    assert not excess(again, first), again
    biased = answer_of(client, ATTENTION, {"inputs": QUERY, "masks": {"bias": first["masked"]}, "options": {"scale": 0}})
    assert not excess(biased["outputs"], first), biased


@test
def a_kept_layer_has_the_long_form(client):
    path = "/v1/layers/words.short"
    body = {"weights": {"query": SWAP, "key": EYE, "value": EYE, "norm": [1, 2]},
            "options": {"norm": "rms", "rope": True, "qk_norm": False, "dropout": 0.25, "return": "output"}}
    reply = client.send("PUT", path, json.dumps(body), {"Content-Type": "application/json"})
    assert reply.status == 201, reply.body
    kept = client.get(path).json()
    own = kept["request"]["options"]
    assert own == {"norm": {"type": "rms"}, "rope": {}, "dropout": {"p": 0.25}, "return": ["output"]}, kept
    assert [tensor["name"] for tensor in kept["tensors"]] == [
        "weights.query.weight", "weights.key.weight", "weights.value.weight", "weights.norm.weight"], kept
    whole = {"inputs": QUERY, "weights": {**WEIGHTS, "norm": {"weight": [1, 2]}}, "options": dict(own)}
    ran = answer_of(client, path + "/attention", {"inputs": QUERY})
    assert ran["outputs"] == answer_of(client, LAYER, whole)["outputs"], ran
    del whole["options"]["rope"]
    plain = answer_of(client, path + "/attention", {"inputs": QUERY, "options": {"rope": False}})
    assert plain["outputs"] == answer_of(client, LAYER, whole)["outputs"] != ran["outputs"], plain
    client.send("DELETE", path)


@test
def an_error_points_at_the_short_form(client):
    for path, request, pointer in (
            (ATTENTION, {"inputs": QUERY, "options": {"rope": "x"}}, "/options/rope"),
            (ATTENTION, {"inputs": QUERY, "options": {"return": "x"}}, "/options/return"),
            (ATTENTION, {"inputs": QUERY, "options": {"dropout": 2}}, "/options/dropout"),
            (ATTENTION, {"inputs": QUERY, "tokens": ["a", 1]}, "/tokens/1"),
            (ATTENTION, {"inputs": QUERY, "tokens": ["a"]}, "/tokens"),
            (LAYER, {"inputs": QUERY, "weights": {**WEIGHTS, "key": [[1], [1, 2]]}}, "/weights/key/1")):
        reply = client.post(path, request)
        assert reply.status == 400 and reply.json()["pointer"] == pointer, f"{json.dumps(request)}: {reply.body.decode()}"
