"""network.py: the feed-forward network of a block, for attention.py, written from the description of the interface."""

import math

from bounded import erf, largest, sigmoid, tanh
from tensors import Tensor


def relu(x):
    return largest((x, 0.0))


def gelu(x):
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def gelu_tanh(x):
    return 0.5 * x * (1 + tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def quick_gelu(x):
    return x * sigmoid(1.702 * x)


def silu(x):
    return x * sigmoid(x)


ACTIVATIONS = {"relu": relu, "gelu": gelu, "gelu_tanh": gelu_tanh, "quick_gelu": quick_gelu, "silu": silu}


def settled(options, weights, layer_eps=1e-5, rms_eps=1e-5):
    """options.feed_forward with its defaults: norm is None, or has type and eps."""
    own, outer = options["feed_forward"], options.get("norm")
    settled_outer = {"type": "layer", "position": "post", **outer} if outer is not None else {}
    position = "pre" if own.get("parallel") else settled_outer.get("position", "post")
    result = {"position": position, "parallel": False, "residual": True, **own, "norm": None}
    if "norm" not in own and not weights.get("norm"):
        return result
    norm = dict(own.get("norm", {}))
    norm.setdefault("type", settled_outer.get("type", "layer"))
    default = {"layer": layer_eps, "rms": rms_eps}[norm["type"]]
    if norm["type"] == settled_outer.get("type"):
        default = settled_outer.get("eps", default)
    norm.setdefault("eps", default)
    return {**result, "norm": norm}


def told(options, weights, eps):
    """effective.feed_forward."""
    own = settled(options, weights["feed_forward"], eps["layer"], eps["rms"])
    up = Tensor.from_json(weights["feed_forward"]["up"]["weight"])
    d_ff = up.shape[0 if weights.get("layout") == "out_in" else 1]
    result = {"activation": own["activation"], "d_ff": d_ff, "parallel": own["parallel"], "residual": own["residual"]}
    return {**result, "position": own["position"], "norm": own["norm"]} if own["norm"] else result


def finish_block(steps, query, attention_input, weights, options, project, normalise):
    """Makes output, which is that of the attention, the output of the block."""
    network = weights["feed_forward"]
    own = settled(options, network)
    y = steps["attention_output"] = steps["output"]
    gain = network.get("norm", {})
    x = y
    if own["parallel"]:
        x = query if own["norm"] else attention_input
    if own["norm"] and own["position"] == "pre":
        x = normalise(x, own["norm"], gain)
    act = ACTIVATIONS[own["activation"]]
    up = project(x, network["up"])
    if "gate" in network:
        gate = project(x, network["gate"])
        hidden = Tensor(up.shape, [act(g) * u for g, u in zip(gate.data, up.data)])
    else:
        hidden = Tensor(up.shape, [act(u) for u in up.data])
    output = steps["feed_forward"] = project(hidden, network["down"])
    if own["residual"]:
        output = Tensor(y.shape, [a + b for a, b in zip(y.data, output.data)])
    if own["norm"] and own["position"] == "post":
        output = normalise(output, own["norm"], gain)
    steps["output"] = output
