"""formulas.py: attention modules as their papers and model codes define them, on lists of numbers, in double."""

import math


def linear(x, weight, bias=None):
    """y = x W^T + b, W as torch.nn.Linear keeps it: (out, in)."""
    return [[sum(a * b for a, b in zip(row, column)) + (bias[j] if bias else 0) for j, column in enumerate(weight)]
            for row in x]


def transposed(matrix):
    return [list(column) for column in zip(*matrix)]


def heads_of(x, count):
    width = len(x[0]) // count
    return [[row[h * width:(h + 1) * width] for row in x] for h in range(count)]


def joined(heads):
    return [sum((head[i] for head in heads), []) for i in range(len(heads[0]))]


def layer_norm(x, gain, shift, eps):
    rows = []
    for row in x:
        mean = sum(row) / len(row)
        variance = sum((value - mean) ** 2 for value in row) / len(row)
        rows.append([(value - mean) / math.sqrt(variance + eps) * g + s for value, g, s in zip(row, gain, shift)])
    return rows


def rms_norm(x, gain, eps):
    return [[value / math.sqrt(sum(v * v for v in row) / len(row) + eps) * g for value, g in zip(row, gain)]
            for row in x]


def frequencies(width, theta, scaling=None):
    found = [theta ** (-2 * i / width) for i in range(width // 2)]
    kind = (scaling or {}).get("rope_type", (scaling or {}).get("type"))
    if kind == "linear":
        return [f / scaling["factor"] for f in found]
    if kind == "llama3":
        return [llama3(f, scaling) for f in found]
    return found


def llama3(frequency, scaling):
    """Llama 3.1: long waves are stretched, short ones are not, those between in part."""
    length, wave = scaling["original_max_position_embeddings"], 2 * math.pi / frequency
    if wave < length / scaling["high_freq_factor"]:
        return frequency
    if wave > length / scaling["low_freq_factor"]:
        return frequency / scaling["factor"]
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    smooth = (length / wave - low) / (high - low)
    return (1 - smooth) * frequency / scaling["factor"] + smooth * frequency


def rotated(head, theta, width=None, scaling=None):
    """Pairs (i, i + width / 2), as GPT-NeoX and Llama turn them; what is behind width stays."""
    width = width or len(head[0])
    turned = []
    for position, row in enumerate(head):
        new = list(row)
        for i, f in enumerate(frequencies(width, theta, scaling)):
            a, b, c, s = row[i], row[i + width // 2], math.cos(position * f), math.sin(position * f)
            new[i], new[i + width // 2] = a * c - b * s, b * c + a * s
        turned.append(new)
    return turned


def alibi_slopes(count):
    """Press et al. (2022), for powers of two."""
    return [2 ** (-8 * (h + 1) / count) for h in range(count)]


def t5_bucket(distance, bidirectional, buckets, furthest):
    """distance: position of the key minus that of the query. Raffel et al. (2020), and the code of T5."""
    first = 0
    if bidirectional:
        buckets //= 2
        first = buckets if distance > 0 else 0
        distance = abs(distance)
    else:
        distance = -min(distance, 0)
    exact = buckets // 2
    if distance < exact:
        return first + distance
    far = exact + int(math.log(distance / exact) / math.log(furthest / exact) * (buckets - exact))
    return first + min(far, buckets - 1)


def attention(q, k, v, scale, sees=lambda i, j: True, bias=lambda h, i, j: 0.0, softcap=None):
    """All heads: q[h][i], k and v[g][j] with as many heads or a divisor of it."""
    shared, out = len(q) // len(k), []
    for h, queries in enumerate(q):
        keys, values, rows = k[h // shared], v[h // shared], []
        for i, query in enumerate(queries):
            scores = []
            for j, key in enumerate(keys):
                score = scale * sum(a * b for a, b in zip(query, key))
                score = softcap * math.tanh(score / softcap) if softcap else score
                scores.append(score + bias(h, i, j) if sees(i, j) else -math.inf)
            top = max(scores)
            powers = [math.exp(score - top) for score in scores]
            rows.append([sum(p * row[d] for p, row in zip(powers, values)) / sum(powers)
                         for d in range(len(values[0]))])
        out.append(rows)
    return joined(out)


def causal(i, j):
    return j <= i


def window(width):
    return lambda i, j: i - width < j <= i
