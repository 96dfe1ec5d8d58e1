"""
told.py: the reference for the rest of an answer, from the description of the interface: maps reduced for display, views,
the settings in use (effective), and diagnostics. tests/support/reference computes the steps.
"""

import base64
import math
import statistics
import struct

import network
from tensors import Tensor

FINFO_MIN_FROM = -10000  # biases of this and below are meant as masks
EPSILON = {"float32": 2.0 ** -23, "float64": 2.0 ** -52, "bfloat16": 2.0 ** -23}


# ---- maps reduced for display ----

def reduced(name, tensor, allowed, options):
    """The JSON of a map with the pool, the top_k or the dtype that the options ask for; None without any."""
    if "pool" in options:
        return pooled(name, tensor, allowed, pool_of(options, tensor.shape)).nested()
    if "top_k" in options and name != "mask":
        return largest(tensor, allowed, options["top_k"])
    if options.get("dtype") == "uint8":
        data = tensor.map(lambda weight: math.floor(weight * 255 + 0.5))
        return Tensor(data.shape, data.data, "uint8").packed()
    return None


def pool_of(options, shape):
    """Rows and columns of the reduced map, as many as there are at most."""
    pool = options["pool"]
    return {"rows": min(pool.get("rows", shape[2]), shape[2]), "cols": min(pool.get("cols", shape[3]), shape[3]),
            "op": pool.get("op", "max")}


def pooled(name, tensor, allowed, pool):
    """Cell (r, c) stands for the rows from floor(r n / R) to before floor((r + 1) n / R), columns likewise."""
    batch, heads, rows, cols = tensor.shape
    spans = [[range(at * size // count, (at + 1) * size // count) for at in range(count)]
             for size, count in ((rows, pool["rows"]), (cols, pool["cols"]))]
    cells = []
    for first in range(0, batch * heads * rows * cols, rows * cols):
        for rows_of_cell in spans[0]:
            for cols_of_cell in spans[1]:
                places = [first + i * cols + j for i in rows_of_cell for j in cols_of_cell]
                cells.append(pool_cell(name, [tensor.data[at] for at in places if allowed.data[at]], pool["op"]))
    return Tensor((batch, heads, pool["rows"], pool["cols"]), cells)


def pool_cell(name, seen, op):
    if name == "mask":
        return bool(seen)
    if not seen:
        return None if name in ("scores", "scaled", "masked") else 0.0
    return max(seen) if op == "max" else statistics.fmean(seen)


def largest(tensor, allowed, k):
    """The k largest weights of each row, in descending order, with the positions of their keys; -1 where no key is left."""
    k = min(k, tensor.shape[-1])
    indices, weights = [], []
    for row, keys in zip(tensor.rows(tensor.shape[-1]), allowed.rows(tensor.shape[-1])):
        order = sorted((j for j, may in enumerate(keys) if may), key=lambda j: -row[j])[:k]
        indices += order + [-1] * (k - len(order))
        weights += [row[j] for j in order] + [0.0] * (k - len(order))
    shape = (*tensor.shape[:-1], k)
    return {"indices": Tensor(shape, indices).nested(), "weights": Tensor(shape, weights).nested()}


# ---- views ----

def view(request, steps):
    """The answer as the front-end that options.view names reads it. Of one batch item."""
    attention, labels = steps["attention"], request["tokens"]
    queries, keys = labels["query"], labels.get("key", labels["query"])
    maps = attention.nested()[0]
    return {"bertviz": bertviz, "circuitsvis": circuitsvis, "inspectus": inspectus,
            "rows": rows_of}[request["options"]["view"]](maps, queries, keys, steps["mask"].nested()[0])


def bertviz(maps, queries, keys, _):
    heads = list(range(len(maps)))
    return {"attention": [{"name": None, "attn": [maps], "left_text": queries, "right_text": keys}],
            "default_filter": "0", "layer": 0, "heads": heads, "include_layers": [0], "include_heads": heads,
            "total_heads": len(maps), "display_mode": "dark"}


def circuitsvis(maps, queries, _, __):
    return {"tokens": queries, "attention": maps}


def inspectus(maps, queries, keys, _):
    charts = ["attention_matrix", "query_token_heatmap", "key_token_heatmap", "dimension_heatmap"]
    values = [struct.pack(f"<{len(queries) * len(keys)}f", *(weight for row in rows for weight in row)) for rows in maps]
    return {"attention": [{"values": base64.b64encode(value).decode(), "info": {"layer": 0, "head": head},
                           "shape": [len(queries), len(keys)]} for head, value in enumerate(values)],
            "src_tokens": queries, "tgt_tokens": keys, "chart_types": charts,
            "dimensions": [{"name": "layer"}, {"name": "head"}]}


def rows_of(maps, queries, keys, allowed):
    return [{"batch": 0, "head": head, "query": i, "key": j, "query_token": query, "key_token": key,
             "weight": maps[head][i][j], "allowed": allowed[head][i][j]}
            for head in range(len(maps)) for i, query in enumerate(queries) for j, key in enumerate(keys)]


# ---- what was computed with ----

def profile_of(row, options):
    """The row of the profile's defaults with the machine epsilon where it has none; None without a profile."""
    return row and (*row[:3], row[3] or EPSILON[options.get("compute", "float32")])


def effective(request, steps, profile):
    """profile: (causal align, layout, eps of layer norms, eps of rms norms) of the profile, or None."""
    options, masks = request.get("options", {}), request.get("masks", {})
    told = {"scale": steps["scale"], "causal_offset": steps.get("offset"), "compute": options.get("compute", "float32")}
    told["batch"], told["num_heads"], told["q_len"], told["d_v"] = steps["context"].shape
    _, told["kv_num_heads"], told["kv_len"], _ = steps["v"].shape if "given" in steps else steps["k_rotated"].shape
    told["d_k"] = 0 if "given" in steps else steps["k_rotated"].shape[3]
    weights = request.get("weights", {})
    told["layout"] = weights.get("layout", profile[1] if profile else "in_out")
    if options.get("alibi"):
        told["alibi"] = steps["slopes"]
    if "dropout" in options:
        told["dropout"] = {"where": ["attention"], **options["dropout"], "active": options.get("training", False)}
    if "window" in masks:
        told["window"] = masks["window"]
    if "pool" in options:
        told["pool"] = pool_of(options, steps["shown_shape"])
    for name in ("top_k", "dtype", "profile"):
        if name in options:
            told[name] = options[name]
    if profile:
        told["profile_defaults"] = {"causal_align": profile[0], "layout": profile[1],
                                    "norm_eps": {"layer": profile[2], "rms": profile[3]}}
    eps = {"layer": profile[2], "rms": profile[3]} if profile else {"layer": 1e-5, "rms": 1e-5}
    for name, defaults in (("norm", {"type": "layer", "position": "post"}), ("qk_norm", {"type": "rms"})):
        if name in options:
            told[name] = {**defaults, **options[name]}
            told[name].setdefault("eps", eps.get(told[name]["type"], 1e-12))
    if "feed_forward" in options:
        told["feed_forward"] = network.told(options, weights, eps)
    return told


# ---- diagnostics ----

def diagnostics(request, steps, outputs):
    told = {"rows_without_keys": [list(row) for row in steps["rows_without_keys"]], **of_bias(request)}
    if "attention" in outputs and "attention" not in request["inputs"]:
        told |= of_weights(steps)
    if "softcap" in request.get("options", {}):
        told["softcap"] = of_softcap(request["options"]["softcap"], steps)
    lost = {name: count for name, count in (("/outputs/output", not_finite(outputs.get("output"))),
                                            *((f"/inputs/{name}", not_finite(Tensor.from_json(given)))
                                              for name, given in request["inputs"].items())) if count}
    if not_finite(outputs.get("output")):
        told["not_finite"] = lost
    return told


def not_finite(tensor):
    return sum(not math.isfinite(item) for item in tensor.data) if tensor else 0


def of_bias(request):
    bias = request.get("masks", {}).get("bias")
    low = [item for item in Tensor.from_json(bias).data if -math.inf < item <= FINFO_MIN_FROM] if bias else []
    return {"bias_as_mask": {"count": len(low), "lowest": min(low)}} if low else {}


def of_weights(steps):
    """Of the rows with keys: the share of key 0, one key that has nearly all, and a key that may be seen and has 0."""
    attention, mask = steps["attention"], steps["mask"]
    width, (batch, heads, q_len, _) = attention.shape[-1], attention.shape
    rows = list(zip(attention.map(as_float32).rows(width), mask.rows(width)))
    shares = [[] for _ in range(heads)]
    for at, (weights, allowed) in enumerate(rows):
        if any(allowed):
            shares[at // q_len % heads].append(weights[0])
    return {"first_key_share_per_head": [statistics.fmean(share) if share else 0.0 for share in shares],
            "rows_on_one_key_count": sum(sum(weight > 0 for weight in weights) > 1 and max(weights) > 0.99
                                         for weights, _ in rows),
            "rows_underflowing_count": sum(any(may and weight == 0 for weight, may in zip(*row))
                                           for row in rows)}


def as_float32(weight):
    return struct.unpack("<f", struct.pack("<f", weight))[0]


def of_softcap(cap, steps):
    seen = [score for score, may in zip(steps["scaled"].data, steps["mask"].data) if may]
    return {"scores": len(seen), "saturated": sum(abs(score) >= cap * math.tanh(3) for score in seen)}
