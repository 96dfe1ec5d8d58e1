"""turned.py: the part of exact.py for norms, rotation, caches and gates: values, and their error bounds."""

import math

from exact import Array


def turn(reference, q, k, v):
    """Adds q_rotated, k_rotated, present_key and present_value to the steps; gives what the heads attend with."""
    spec = reference.spec
    if spec.qk_norm:
        q, k = norm_heads(reference, q, "query"), norm_heads(reference, k, "key")
    if spec.rope:
        q, k = rotate(reference, q, "query"), rotate(reference, k, "key")
    if spec.past:
        k, v = behind(spec.past[0], k), behind(spec.past[1], v)
    reference.steps.update(q_rotated=q, k_rotated=k, present_key=k, present_value=v)
    return q, k, v


def norm_heads(reference, x, role):
    """Each head of a token alone, or all of them as one row, as the gain has it."""
    spec = reference.spec
    batch, heads, length, d = x.shape
    gain, shift = (spec.qk_gains[role][name] if spec.qk_gains else None for name in ("gain", "shift"))
    wide = len(gain or shift or ())
    whole = wide == heads * d and wide != d and spec.qk_gains[role]["rank"] == 1
    values, errors = [0.0] * len(x.values), [0.0] * len(x.values)
    for token in range(batch * length * (1 if whole else heads)):
        if whole:
            b, i = divmod(token, length)
            places = [((b * heads + h) * length + i) * d + f for h in range(heads) for f in range(d)]
        else:
            places = range(token * d, (token + 1) * d)
        first = token // length % heads * d if wide > d and not whole else 0
        row, wrong = normed_row(reference, [x.values[p] for p in places], [x.errors[p] for p in places])
        for at, (place, value, error) in enumerate(zip(places, row, wrong)):
            g, own = gain[first + at] if gain else 1.0, shift[first + at] if shift else 0.0
            values[place] = value * g + own
            errors[place] = error * abs(g) + reference.eps * (abs(value * g) + abs(own)) + reference.tiny
    return Array(x.shape, values, errors)


def normed_row(reference, row, wrong):
    norm, eps, d = reference.spec.qk_norm, reference.eps, len(row)
    mean = math.fsum(row) / d if norm["type"] == "layer" else 0.0
    off = [item - mean for item in row]
    rounded = eps * (1 + d / 8) * math.fsum(map(abs, row)) / d  # of the sum, taken number by number
    spread = math.fsum(wrong) / d + rounded if norm["type"] == "layer" else 0.0
    wrong = [e + spread + eps * (abs(o) + abs(mean)) for e, o in zip(wrong, off)]
    squares = math.fsum(o * o for o in off)
    size = max(math.sqrt(squares), norm["eps"]) if norm["type"] == "l2" else math.sqrt(squares / d + norm["eps"])
    scale = size if norm["type"] == "l2" else size * math.sqrt(d)
    relative = math.sqrt(math.fsum(e * e for e in wrong)) / scale + (8 + d / 8) * eps
    return ([o / size for o in off],
            [e / size * (1 + relative) + abs(o) / size * relative + reference.tiny for o, e in zip(off, wrong)])


def frequencies(rope, longest):
    """(the angle of each pair per position, the factor of cosines and sines), by the type of scaling."""
    given, dim, theta = rope.get("scaling") or {}, rope["dim"], rope["theta"]
    kind = given.get("rope_type", given.get("type", "default"))
    trained = given.get("original_max_position_embeddings") or given.get("max_position_embeddings")
    most = given.get("max_position_embeddings") or trained
    factor = given.get("factor") or (most / trained if trained else 1.0)
    if kind == "dynamic":
        theta *= (factor * max(longest, most) / most - factor + 1) ** (dim / (dim - 2))
    plain = [theta ** (-2 * i / dim) for i in range(dim // 2)]
    if kind == "linear":
        return [w / factor for w in plain], 1.0
    if kind == "yarn":
        return yarn(given, plain, rope, trained, factor)
    if kind == "longrope":
        usual = math.sqrt(1 + math.log(factor) / math.log(trained)) if factor > 1 else 1.0
        by = given["long_factor" if longest > trained else "short_factor"]
        return [w / f for w, f in zip(plain, by)], given.get("attention_factor") or usual
    if kind == "llama3":
        low, high = given["low_freq_factor"], given["high_freq_factor"]
        shares = [min(1.0, max(0.0, (trained * w / (2 * math.pi) - low) / (high - low))) for w in plain]
        return [w * (share + (1 - share) / factor) for w, share in zip(plain, shares)], 1.0
    if kind == "proportional":
        turning = int((given.get("partial_rotary_factor") or 1.0) * (dim // 2))
        return [w / factor if i < turning else 0.0 for i, w in enumerate(plain)], 1.0
    return plain, 1.0


def yarn(given, plain, rope, trained, factor):
    def pair_that_turns(times):
        return rope["dim"] * math.log(trained / (times * 2 * math.pi)) / (2 * math.log(rope["theta"]))

    def mscale(by):
        return 0.1 * by * math.log(factor) + 1 if factor > 1 else 1.0

    low, high = pair_that_turns(given.get("beta_fast") or 32), pair_that_turns(given.get("beta_slow") or 1)
    if given.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, rope["dim"] - 1)
    high += 0.001 if low == high else 0
    shares = [min(1.0, max(0.0, (i - low) / (high - low))) for i in range(len(plain))]
    usual = mscale(1)
    if given.get("mscale") and given.get("mscale_all_dim"):
        usual = mscale(given["mscale"]) / mscale(given["mscale_all_dim"])
    return ([w * (1 - share) + w / factor * share for w, share in zip(plain, shares)],
            given.get("attention_factor") or usual)


def rotate(reference, x, side):
    spec, eps = reference.spec, reference.eps
    rope, (batch, heads, length, d) = spec.rope, x.shape
    half, values, errors = rope["dim"] // 2, [], []
    if "tables" not in rope:
        longest = 1 + max(p for rows in rope["positions"].values() for row in rows for p in row)
        angles, gain = frequencies(rope, longest)
    for at in range(batch * heads * length):
        row, wrong = x.values[at * d:(at + 1) * d], x.errors[at * d:(at + 1) * d]
        b, token = at // length // heads, at % length
        first, second = [], []
        for i in range(half):
            one, two = (i, i + half) if rope["layout"] == "half" else (2 * i, 2 * i + 1)
            if "tables" in rope:
                c, s = (rope["tables"][name][side][rope["rows"][side][b][token] * half + i] for name in ("cos", "sin"))
                most = max(abs(c), abs(s), 1.0)
                loose = 4 * eps * most
            else:
                angle = rope["positions"][side][b][token] * angles[i]
                c, s, most = math.cos(angle) * gain, math.sin(angle) * gain, max(gain, 1.0)
                loose = (4 * eps + abs(angle) * 2.0 ** -46) * most
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
