"""networked.py: the feed-forward network of a block, for exact.py, with a bound of the error of every number."""

import math

from exact import Array


def sigmoid(x):
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


ACTIVATIONS = {
    "relu": lambda x: max(x, 0.0),
    "gelu": lambda x: x * math.erfc(-x / math.sqrt(2)) / 2,
    "gelu_tanh": lambda x: x * sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)),
    "quick_gelu": lambda x: x * sigmoid(1.702 * x),
    "silu": lambda x: x * sigmoid(x),
}
STEEPEST = 1.13  # the largest slope of any of them


def finish(reference, y):
    """The output of the block, from that of its attention."""
    network, spec = reference.spec.network, reference.spec
    reference.steps["attention_output"] = y
    x = y
    if network["parallel"]:
        x = spec.query if network["norm"] else reference.gate_input
    if network["norm"] and network["position"] == "pre":
        x = reference.normalise(x, network["norm"])
    up = reference.linear(x, network["up"])
    if network["gate"]:
        gate = activate(reference, network["activation"], reference.linear(x, network["gate"]))
        hidden = multiply(reference, gate, up)
    else:
        hidden = activate(reference, network["activation"], up)
    total = reference.steps["feed_forward"] = reference.linear(hidden, network["down"])
    if network["residual"]:
        total = reference.add(y, total)
    if network["norm"] and network["position"] == "post":
        total = reference.normalise(total, network["norm"])
    return total


def activate(reference, name, x):
    """The rounding errors of an activation are a few units of its argument, because it is no larger."""
    values = [ACTIVATIONS[name](value) for value in x.values]
    errors = [STEEPEST * error + 8 * reference.eps * abs(value) + reference.tiny
              for value, error in zip(x.values, x.errors)]
    return Array(x.shape, values, errors)


def multiply(reference, a, b):
    values = [x * y for x, y in zip(a.values, b.values)]
    errors = [abs(x) * f + e * abs(y) + e * f + reference.eps * abs(x * y) + reference.tiny
              for x, e, y, f in zip(a.values, a.errors, b.values, b.errors)]
    return Array(a.shape, values, errors)
