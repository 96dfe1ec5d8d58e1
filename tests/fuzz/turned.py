"""turned.py: what exact.py needs for norms, rotation, caches and gates: values, and how far off they may be."""

import math

from exact import Array


def turn(reference, q, k, v):
    """Adds q_rotated, k_rotated, present_key and present_value to the steps; gives what the heads attend with."""
    spec = reference.spec
    if spec.qk_norm:
        q, k = norm_heads(reference, q), norm_heads(reference, k)
    if spec.rope:
        q, k = rotate(reference, q, "query"), rotate(reference, k, "key")
    if spec.past:
        k, v = behind(spec.past[0], k), behind(spec.past[1], v)
    reference.steps.update(q_rotated=q, k_rotated=k, present_key=k, present_value=v)
    return q, k, v


def norm_heads(reference, x):
    norm, eps, d = reference.spec.qk_norm, reference.eps, x.shape[-1]
    values, errors = [], []
    for at in range(0, len(x.values), d):
        row, wrong = x.values[at:at + d], x.errors[at:at + d]
        mean = math.fsum(row) / d if norm["type"] == "layer" else 0.0
        off = [item - mean for item in row]
        rounded = eps * (1 + d / 8) * math.fsum(map(abs, row)) / d  # of the sum, taken number by number
        spread = math.fsum(wrong) / d + rounded if norm["type"] == "layer" else 0.0
        wrong = [e + spread + eps * (abs(o) + abs(mean)) for e, o in zip(wrong, off)]
        squares = math.fsum(o * o for o in off)
        size = (max(math.sqrt(squares), norm["eps"]) if norm["type"] == "l2"
                else math.sqrt(squares / d + norm["eps"]))
        scale = size if norm["type"] == "l2" else size * math.sqrt(d)
        relative = math.sqrt(math.fsum(e * e for e in wrong)) / scale + (8 + d / 8) * eps
        values += [o / size for o in off]
        errors += [e / size * (1 + relative) + abs(o) / size * relative + reference.tiny for o, e in zip(off, wrong)]
    return Array(x.shape, values, errors)


def rotate(reference, x, side):
    spec, eps = reference.spec, reference.eps
    rope, (batch, heads, length, d) = spec.rope, x.shape
    half, values, errors = rope["dim"] // 2, [], []
    for at in range(batch * heads * length):
        row, wrong = x.values[at * d:(at + 1) * d], x.errors[at * d:(at + 1) * d]
        position = rope["positions"][side][at % length]
        first, second = [], []
        for i in range(half):
            one, two = (i, i + half) if rope["layout"] == "half" else (2 * i, 2 * i + 1)
            angle = position * rope["theta"] ** (-2 * i / rope["dim"]) / rope["factor"]
            c, s, loose, most = math.cos(angle), math.sin(angle), 4 * eps + abs(angle) * 2.0 ** -50, 1.0
            if "tables" in rope:
                c, s = (rope["tables"][name][side][at % length * half + i] for name in ("cos", "sin"))
                most = max(abs(c), abs(s), 1.0)
                loose = 4 * eps * most
            size, error = abs(row[one]) + abs(row[two]), (wrong[one] + wrong[two]) * most
            first.append((row[one] * c - row[two] * s, error + loose * size + reference.tiny))
            second.append((row[two] * c + row[one] * s, error + loose * size + reference.tiny))
        pairs = [item for pair in zip(first, second) for item in pair]
        turned = pairs if rope["layout"] == "interleaved" else first + second
        values += [value for value, _ in turned] + row[2 * half:]
        errors += [error for _, error in turned] + wrong[2 * half:]
    return Array(x.shape, values, errors)


def behind(past, x):
    batch, heads, length, d = x.shape
    past_len, values, errors = past.shape[2], [], []
    for head in range(batch * heads):
        values += past.values[head * past_len * d:(head + 1) * past_len * d]
        values += x.values[head * length * d:(head + 1) * length * d]
        errors += [0.0] * (past_len * d) + x.errors[head * length * d:(head + 1) * length * d]
    return Array((batch, heads, past_len + length, d), values, errors)


def gate(reference, concat, logits):
    """concat times the sigmoid of logits, of which there is one for each feature or for each head."""
    width, gates, eps = concat.shape[-1], logits.shape[-1], reference.eps
    values, errors = [], []
    for at, (value, error) in enumerate(zip(concat.values, concat.errors)):
        own = at // width * gates + at % width * gates // width
        x = logits.values[own]
        open_ = 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))
        off = open_ * math.expm1(min(50.0, logits.errors[own])) + 4 * eps * open_
        values.append(value * open_)
        errors.append(error * (open_ + off) + abs(value) * off + eps * abs(value * open_) + reference.tiny)
    return Array(concat.shape, values, errors)
