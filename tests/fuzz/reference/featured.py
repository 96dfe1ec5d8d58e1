"""featured.py: the part of exact.py for the mechanisms linear and performer: weights by feature maps, and their error bounds."""

import math

from exact import Array

UNKNOWN = 1e15  # the error of what only the server's own projection decides


def attend(reference, q, k, v):
    """Fills in mask, attention, attention_mean and context."""
    spec = reference.spec
    group, shape = spec.heads // spec.kv_heads, (spec.batch, spec.heads, spec.q_len, spec.kv_len)
    weights, context, mask = ([], []), ([], []), []
    for b in range(spec.batch):
        allowed = [[[spec.allows(b, h, i, j) for j in range(spec.kv_len)] for i in range(spec.q_len)]
                   for h in range(spec.heads)]
        for h in range(spec.heads):
            g = h // group
            seen = [any(row[j] for other in allowed[g * group:(g + 1) * group] for row in other)
                    for j in range(spec.kv_len)]
            keys = features_of_keys(reference, [k.row(b, g, j) if seen[j] else None for j in range(spec.kv_len)])
            for i, may in enumerate(allowed[h]):
                mask.extend(may)
                if not any(may):
                    reference.empty_rows.append([b, h, i])
                row = weights_of(reference, q.row(b, h, i), keys, may)
                weights[0].extend(value for value, _ in row), weights[1].extend(error for _, error in row)
                use = [j for j in range(spec.kv_len) if may[j]]
                values = [v.row(b, g, j) for j in use]
                for f in range(v.shape[3]):
                    value, error = reference.dot([row[j][0] for j in use], [row[j][1] for j in use],
                                                 [x[0][f] for x in values], [x[1][f] for x in values])
                    context[0].append(value), context[1].append(error)
    reference.steps.update(mask=Array(shape, mask), attention=Array(shape, *weights),
                           context=Array((*shape[:3], v.shape[3]), *context))
    reference.steps["attention_mean"] = reference.mean_over_heads(reference.steps["attention"])


def is_known(mechanism):
    return mechanism["type"] == "linear" or mechanism.get("projection") is not None


def projected(reference, row):
    """P s, |s|^2 / 2 and how far off an exponent may be."""
    mechanism, root = reference.spec.mechanism, math.sqrt(reference.spec.scale)
    values, errors = ([root * item for item in part] for part in row)
    d, none = len(values), [0.0] * len(values)
    pairs = [reference.dot(values, errors, mechanism["projection"][m * d:(m + 1) * d], none)
             for m in range(mechanism["features"])]
    half, wrong = reference.dot(values, errors, values, errors)
    return [value for value, _ in pairs], half / 2, max(error for _, error in pairs) + wrong


def features(reference, row, found, top):
    """(values, errors) of phi; found: what projected gave, top: the stabiliser and its error."""
    mechanism, eps = reference.spec.mechanism, reference.eps
    if mechanism["type"] == "linear":
        if mechanism["feature_map"] == "identity":
            return row
        phi = [x + 1 if x > 0 else math.exp(x) for x in row[0]]
        return phi, [e * max(1.0, math.exp(min(e, 50.0))) + 4 * eps * p for p, e in zip(phi, row[1])]
    dots, half, wrong = found
    wrong += top[1] + 8 * eps * (half + abs(top[0]) + 1)
    root = math.sqrt(len(dots))
    powers = [math.exp(x - half - top[0]) for x in dots]
    return ([(p + mechanism["eps"]) / root for p in powers],
            [(p * math.expm1(min(50.0, wrong + eps * abs(x))) + 4 * eps * (p + mechanism["eps"])) / root
             for p, x in zip(powers, dots)])


def features_of_keys(reference, rows):
    mechanism = reference.spec.mechanism
    if not is_known(mechanism):
        return rows
    found, top = [None] * len(rows), (0.0, 0.0)
    if mechanism["type"] == "performer":
        found = [row and projected(reference, row) for row in rows]
        highest = [(max(item[0]), item[2]) for item in found if item]
        top = (max(x for x, _ in highest), max(e for _, e in highest)) if highest else top
    return [row and features(reference, row, item, top) for row, item in zip(rows, found)]


def weights_of(reference, row, keys, may):
    spec, mechanism, eps = reference.spec, reference.spec.mechanism, reference.eps
    if not any(may):
        return [(0.0, 0.0)] * len(keys)
    if not is_known(mechanism):
        return [(0.0, UNKNOWN if ok else 0.0) for ok in may]
    found = projected(reference, row) if mechanism["type"] == "performer" else None
    phi = features(reference, row, found, (max(found[0]), found[2]) if found else None)
    raw = []
    for key, ok in zip(keys, may):
        value, error = reference.dot(*phi, *key) if ok else (0.0, 0.0)
        size = math.fsum(abs(a * b) for a, b in zip(phi[0], key[0])) if ok else 0.0
        raw.append((value, error + eps * (len(keys) + 8) * size))
    if mechanism["type"] == "linear" and not mechanism["normalize"]:
        return [(spec.scale * x, abs(spec.scale) * (e + 2 * eps * abs(x)) + reference.tiny) for x, e in raw]
    total = math.fsum(x for x, _ in raw) + (mechanism["eps"] if mechanism["type"] == "linear" else 0.0)
    wrong = math.fsum(e for _, e in raw) + 4 * eps * abs(total)
    if abs(total) <= wrong:
        return [(0.0, UNKNOWN if ok else 0.0) for ok in may]
    return [(x / total, (e + abs(x / total) * wrong) / (abs(total) - wrong) + 4 * eps * abs(x / total) + reference.tiny)
            if ok else (0.0, 0.0) for (x, e), ok in zip(raw, may)]
