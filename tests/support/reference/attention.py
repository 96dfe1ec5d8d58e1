"""
attention.py: attention by its equations, in plain Python: the reference of the cases and of the random requests.

It is written from the description of the interface alone, and shares nothing with the server. The numbers are floats in
double, or numbers with error bounds (bounded.py).
"""

import itertools
import math

import network
import recurrence
import relative
import starts
import turning
from bounded import dot, dots, exp, hypot, log, near, parts, sqrt, tanh, times_log, total
from tensors import Tensor

MAPS = ("scores", "scaled", "masked", "attention", "dropped", "mask")
SELECTED = (*MAPS, "contribution")
LINES = ("lse", "lse_keys", "entropy", "sink")
RECURRENT = ("decay", "beta", "past_state")


def plain_values(value):
    """A request without its null members, which mean that a member is not given. 2.0 is the integer 2."""
    if isinstance(value, dict):
        return {name: plain_values(inner) for name, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [plain_values(inner) for inner in value]
    if not isinstance(value, float) or not value.is_integer() or abs(value) >= 2 ** 53:
        return value
    is_negative_zero = value == 0 and math.copysign(1, value) < 0
    return value if is_negative_zero else int(value)


def answer(endpoint, request, number=None):
    """
    outputs (name to Tensor) of a request that is well formed, and all steps. number makes a number of the reference
    from one of the inputs; by default they stay floats.
    """
    request = with_profile(request)
    options, weights = request.get("options", {}), request.get("weights", {})
    if "norm" in options:
        options = {**options, "norm": {"position": "post", **options["norm"]}}
    x = Inputs(request["inputs"], number)
    steps = Layer(x, weights, options).steps() if endpoint == "multi-head-attention" else heads_as_given(x, options)
    if "relative_position" in options:
        steps["relative"] = relative.RelativePosition(
            options["relative_position"], weights, number,
            lambda rows, linear: project(rows, linear, weights.get("layout") == "out_in"))
    steps["position"] = first_position(options.get("profile"), request["inputs"])
    if x.start != "query":
        starts.begin(steps, x)
    else:
        turning.turn(steps, x.past, weights, options)
        steps.update(x.recurrent)
    if x.start == "attention":
        starts.attend(steps, options, Dropout(options), weighted_sum)
    else:
        attend(steps, request.get("masks", {}), options)
    finish(steps, x, weights, options, endpoint == "multi-head-attention")
    wanted = options.get("return", ["output", "attention"] if x.value else ["attention"])
    return {name: select(name, steps[name], options) for name in wanted}, steps


# What stands for causal.align, layout, norm.eps (layer, rms) when the request does not say it.
PROFILES = {"torch_sdpa": ("top_left", "in_out", 1e-5, None), "torch_mha": ("top_left", "out_in", 1e-5, None),
            "onnx": ("past", "in_out", 1e-5, 1e-5), "jax": ("top_left", "in_out", 1e-6, 1e-6),
            "keras": ("top_left", "in_out", 1e-3, 1e-6), "flash": ("bottom_right", "in_out", 1e-5, 1e-5),
            "hf": ("bottom_right", "out_in", 1e-12, 1e-6)}


def with_profile(request):
    """The request with the settings of its profile written out, except the alignment."""
    options = dict(request.get("options", {}))
    if "profile" not in options:
        return request
    _, layout, layer_eps, rms_eps = PROFILES[options["profile"]]
    epsilon = 2.0 ** -23 if options.get("compute", "float32") == "float32" else 2.0 ** -52
    eps = {"layer": layer_eps, "rms": rms_eps or epsilon, "l2": 1e-12}
    for name, kind in (("norm", "layer"), ("qk_norm", "rms"), ("latent_norm", "rms")):
        if name in options:
            options[name] = {"eps": eps[options[name].get("type", kind)], "type": kind, **options[name]}
    if "feed_forward" in options:
        settled = network.settled(options, request["weights"]["feed_forward"], eps["layer"], eps["rms"])
        options["feed_forward"] = {name: item for name, item in settled.items() if item is not None}
    weights = {"layout": layout, **request["weights"]} if "weights" in request else None
    return {**request, "options": options, **({"weights": weights} if weights else {})}


def first_position(profile, inputs):
    """The position of query 0 by default; None: bottom right."""
    align = PROFILES[profile][0] if profile else "bottom_right"
    past = Tensor.from_json(inputs["past_key"]).shape[-2] if "past_key" in inputs and align == "past" else 0
    return None if align == "bottom_right" else past


class Inputs:
    """query, key and value with a batch: (batch, len, dim) or (batch, heads, len, dim)."""

    def __init__(self, given, number):
        names = ("query", "key", "value", "past_key", "past_value", "scores", "attention", *RECURRENT)
        tensors = {name: Tensor.from_json(given[name]) for name in names if name in given}
        tensors = {name: tensor.map(number) if number else tensor for name, tensor in tensors.items()}
        past = [tensors.get(name) for name in ("past_key", "past_value")]
        past = [x if x and x.data else None for x in past]  # nested arrays without tokens do not say how many features
        self.past = [x.reshape(1, *x.shape) if x and len(x.shape) == 3 else x for x in past]
        self.recurrent = {name: self._with_batch(tensors[name]) if name in tensors else None for name in RECURRENT}
        self.start = next((name for name in ("scores", "attention") if name in tensors), "query")
        self.rank = len(tensors.get("value" if self.start != "query" else "query", tensors[self.start]).shape)
        self.has_key, self.has_value = "key" in tensors, "value" in tensors
        if self.start != "query":
            self.map = starts.whole(tensors[self.start])
            self.value = self._with_batch(tensors["value"]) if self.has_value else None
            return
        self.query = self._with_batch(tensors["query"])
        self.key = self._with_batch(tensors["key"]) if self.has_key else self.query
        self.value = self._with_batch(tensors["value"]) if self.has_value else self.key

    @staticmethod
    def _with_batch(x):
        return x if len(x.shape) > 2 else x.reshape(1, *x.shape)


def split(x, heads):
    """(batch, len, heads * d) to (batch, heads, len, d)."""
    batch, length, width = x.shape
    return x.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)


def heads_as_given(x, options):
    if x.start != "query":
        return starts.values(x, options, split)
    if len(x.query.shape) == 4:
        return {"q": x.query, "k": x.key, "v": x.value}
    heads = options.get("num_heads", 1)
    kv_heads = options.get("kv_num_heads", heads)
    v_heads = kv_heads // 2 if "differential" in options else kv_heads
    return {"q": split(x.query, heads), "k": split(x.key, kv_heads), "v": split(x.value, v_heads)}


class Layer:
    """The projections of a layer."""

    def __init__(self, x, weights, options):
        self.x, self.weights, self.latent_norm = x, weights, options.get("latent_norm")
        self.is_out_in = weights.get("layout") == "out_in"
        self.heads = options.get("num_heads", 0) or self._heads_of("query") or 1
        self.kv_heads = options.get("kv_num_heads", 0) or self._heads_of("key") or self.heads
        norm = options.get("norm", {})
        self.is_pre = norm.get("position", "post") == "pre"
        self.norm = norm

    def _heads_of(self, name):
        weight = self.weights.get(name, {}).get("weight")
        tensor = Tensor.from_json(weight) if weight is not None else None
        return tensor.shape[0] if tensor and len(tensor.shape) == 3 else 0

    def steps(self):
        steps = self._projected()
        if "gate" in self.weights:
            query = self.x.query
            if self.norm and self.is_pre:
                query = normalise(query, self.norm, self.weights.get("norm", {}))
            steps["gate"] = project(query, self.weights["gate"], self.is_out_in)
        return steps

    def _projected(self):
        query, key, value = self.x.query, self.x.key, self.x.value
        if self.norm and self.is_pre:
            normed = normalise(query, self.norm, self.weights.get("norm", {}))
            key = key if self.x.has_key else normed
            value = value if self.x.has_value or self.x.has_key else normed
            query = normed
        if "qkv" in self.weights:
            return self._fused(query, key, value)
        steps = {}
        for name, x in (("query_latent", query), ("key_latent", key)):
            if name in self.weights:
                steps[name] = self._latent(name, x)
        from_keys = steps.get("key_latent")
        steps.update(q=split(project(steps.get("query_latent", query), self.weights["query"], self.is_out_in), self.heads),
                     k=split(project(from_keys or key, self.weights["key"], self.is_out_in), self.kv_heads),
                     v=split(project(from_keys or value, self.weights["value"], self.is_out_in), self.kv_heads))
        if "key_shared" in self.weights:
            steps["own"] = steps["k"].shape[3]
            steps["k"] = with_shared(steps["k"], project(key, self.weights["key_shared"], self.is_out_in))
        return steps

    def _latent(self, name, x):
        """Of queries or keys, after its norm."""
        latent = project(x, self.weights[name], self.is_out_in)
        if self.latent_norm is None:
            return latent
        linear = self.weights.get(name + "_norm", {})
        gain, shift = (Tensor.from_json(linear[part]) if part in linear else None for part in ("weight", "bias"))
        rows = latent.rows(latent.shape[-1])
        return Tensor(latent.shape, [item for row in rows
                                     for item in turning.normed_row(row, self.latent_norm, gain, shift, 0)])

    def _fused(self, query, key, value):
        """Each of q, k and v is a choice of columns, head by head."""
        columns = self._columns()
        linear = self.weights["qkv"]
        parts = {}
        for name, x in (("q", query), ("k", key), ("v", value)):
            chosen = [column for head in columns[name] for column in head]
            parts[name] = split(pick(project(x, linear, self.is_out_in), chosen), len(columns[name]))
        return parts

    def _columns(self):
        weight = Tensor.from_json(self.weights["qkv"]["weight"])
        width = weight.shape[0 if self.is_out_in else 1]
        d = width // (self.heads + 2 * self.kv_heads)
        group = self.heads // self.kv_heads
        order = self.weights["qkv"].get("order", "stacked")
        if order == "stacked":
            names = ["q"] * self.heads + ["k"] * self.kv_heads + ["v"] * self.kv_heads
        else:
            names = (["q"] * group + ["k", "v"]) * self.kv_heads
        columns = {"q": [], "k": [], "v": []}
        for at, name in enumerate(names):
            columns[name].append(range(at * d, (at + 1) * d))
        return columns


def with_shared(k, shared):
    """(batch, heads, len, own), with the shared features (batch, len, d) of its token behind each row."""
    batch, heads, length, own = k.shape
    rows, behind = k.rows(own), shared.rows(shared.shape[2])
    data = [item for at, row in enumerate(rows)
            for item in row + behind[at // length // heads * length + at % length]]
    return Tensor((batch, heads, length, own + shared.shape[2]), data)


def pick(x, columns):
    rows = x.rows(x.shape[-1])
    return Tensor((*x.shape[:-1], len(columns)), [row[c] for row in rows for c in columns])


def project(x, linear, is_out_in):
    """y = x W + b; a weight of rank 3 (heads, in, out) is the heads side by side."""
    weight = Tensor.from_json(linear["weight"])
    if len(weight.shape) == 3:
        swap = (0, 1, 2) if not is_out_in else (0, 2, 1)
        heads = weight.transpose(*swap)
        matrix = heads.transpose(1, 0, 2).reshape(heads.shape[1], heads.shape[0] * heads.shape[2])
    else:
        matrix = weight.transpose(1, 0) if is_out_in else weight
    return by_columns(x, matrix.transpose(1, 0).rows(matrix.shape[0]), linear)


def by_columns(x, columns, linear):
    bias = Tensor.from_json(linear["bias"]).data if "bias" in linear else [0.0] * len(columns)
    data = [item + b for row in x.rows(x.shape[-1]) for item, b in zip(dots(row, columns), bias)]
    return Tensor((*x.shape[:-1], len(columns)), data)


def output_project(concat, linear, is_out_in):
    """W_O of rank 3 (heads, d_v, d_out) is the heads one below the other."""
    return by_columns(concat, output_columns(linear, is_out_in), linear)


def output_columns(linear, is_out_in):
    weight = Tensor.from_json(linear["weight"])
    if len(weight.shape) == 3:
        rows = weight.transpose(0, 2, 1) if is_out_in else weight
        matrix = rows.reshape(rows.shape[0] * rows.shape[1], rows.shape[2])
    else:
        matrix = weight.transpose(1, 0) if is_out_in else weight
    return matrix.transpose(1, 0).rows(matrix.shape[0])


def normalise(x, norm, linear):
    width = x.shape[-1]
    gain = Tensor.from_json(linear["weight"]).data if "weight" in linear else [1.0] * width
    shift = Tensor.from_json(linear["bias"]).data if "bias" in linear else [0.0] * width
    data = []
    for row in x.rows(width):
        mean = total(row) / width if norm.get("type", "layer") == "layer" else 0.0
        row = [item - mean for item in row]
        spread = sqrt(dot(row, row) / width + norm.get("eps", 1e-5))
        data += [item / spread * g + s for item, g, s in zip(row, gain, shift)]
    return Tensor(x.shape, data)


class Mask:
    """Whether query i of head h in item b may attend to key j, and the bias of its score."""

    def __init__(self, masks, shape, position=None):
        self.masks, self.shape, self.position = masks, shape, position
        self.tensors = {name: Tensor.from_json(masks[name]) for name in ("attend", "bias", "padding") if name in masks}
        documents = masks.get("documents")
        if documents is not None:
            both = documents if isinstance(documents, dict) and "query" in documents else {"query": documents,
                                                                                           "key": documents}
            tensors = [Tensor.from_json(both[side]) for side in ("query", "key")]
            self.documents = [x.rows(x.shape[-1]) for x in tensors]
        self.lengths = {name: Tensor.from_json(masks[name]).data for name in ("key_lengths", "query_lengths")
                        if name in masks}
        self.blocks = masks.get("blocks")
        if self.blocks and "attend" in self.blocks:
            self.tensors["blocks"] = Tensor.from_json(self.blocks["attend"])
        if "padding" in self.tensors and len(self.tensors["padding"].shape) == 1:
            self.tensors["padding"] = self.tensors["padding"].reshape(1, self.shape[3])

    def offset(self, b):
        causal, (_, _, q_len, kv_len) = self.masks.get("causal"), self.shape
        causal = causal if isinstance(causal, dict) else {}
        if self.position is not None and not causal.get("align") and "offset" not in causal:
            return self.position
        added = causal.get("offset", 0)
        added = added[b] if isinstance(added, list) else added
        align = causal.get("align", "top_left" if "offset" in causal else "bottom_right")
        return added + (kv_len - q_len if align == "bottom_right" else 0)

    def window(self):
        """The narrower of window and sliding_window on either side."""
        left, right = self.masks.get("window", [None, None])
        if "sliding_window" in self.masks:
            left = min(self.masks["sliding_window"] - 1, math.inf if left is None else left)
            right = 0
        return left, right

    def look_up(self, name, *index):
        """Broadcast from the right: missing dimensions and those of size 1 stand for all."""
        tensor = self.tensors[name]
        at = 0
        for size, i in zip(tensor.shape, index[4 - len(tensor.shape):]):
            at = at * size + (i if size > 1 else 0)
        return tensor.data[at]

    def bias(self, *index):
        return self.look_up("bias", *index) if "bias" in self.tensors else 0.0

    def in_one_document(self, b, i, j):
        if "documents" not in self.masks:
            return True
        of_i, of_j = (rows[b if len(rows) > 1 else 0] for rows in self.documents)
        return of_i[i] == of_j[j]

    def blocks_allow(self, b, h, i, j):
        """A matrix counts queries from 0; patterns count positions, in blocks of size."""
        rule, position = self.blocks, i + self.offset(b)
        if "attend" in rule:
            sizes = rule["size"] if isinstance(rule["size"], list) else [rule["size"]] * 2
            return self.look_up("blocks", b, h, i // sizes[0], j // sizes[1])
        if rule["pattern"] == "prefix":
            lengths = rule["length"]
            return j <= position or j < (lengths[b if len(lengths) > 1 else 0] if isinstance(lengths, list) else lengths)
        size = rule.get("size", 64 if rule["pattern"] == "bigbird" else 1)
        apart, count = position // size - j // size, -(-self.shape[3] // size)
        if rule["pattern"] == "chunked":
            return apart == 0
        if rule["pattern"] == "strided":
            return abs(apart) <= rule.get("window", rule["stride"] - 1) or apart % rule["stride"] == 0
        tokens = rule.get("global_tokens", [])
        if position in tokens or j in tokens or abs(apart) <= rule.get("window", 1):
            return True
        edge = rule.get("global_blocks", 1) if rule["pattern"] == "bigbird" else 0
        edges = set(range(edge)) | set(range(count - edge, count))
        if rule["pattern"] == "longformer":
            return False
        return (position // size in edges or j // size in edges or
                j // size in self.drawn(rule, h, position // size, count, edges))

    @staticmethod
    def drawn(rule, h, block, count, edges):
        """The blocks that bigbird draws among those that are neither near nor at an edge."""
        left = [n for n in range(count) if n not in edges and abs(n - block) > rule.get("window", 1)]
        draws, chosen = min(rule.get("random_blocks", 3), len(left)), []
        for n, last in enumerate(range(len(left) - draws, len(left))):
            word = philox(rule.get("seed", 0), 256 * block + n, h)[0]
            index = word * (last + 1) >> 32
            chosen.append(last if index in chosen else index)
        return {left[index] for index in chosen}

    def allows(self, b, h, i, j):
        masks, position = self.masks, i + self.offset(b)
        if not self.in_one_document(b, i, j) or self.blocks and not self.blocks_allow(b, h, i, j):
            return False
        left, right = self.window()
        padding = self.tensors.get("padding")
        return not (masks.get("causal", False) is not False and j > position
                    or left is not None and j < position - left
                    or right is not None and j > position + right
                    or "key_lengths" in masks and j >= self.lengths["key_lengths"][b]
                    or "query_lengths" in masks and i >= self.lengths["query_lengths"][b]
                    or padding and not padding.data[(b if padding.shape[0] > 1 else 0) * self.shape[3] + j]
                    or "attend" in self.tensors and not self.look_up("attend", b, h, i, j)
                    or self.bias(b, h, i, j) == -math.inf)


def philox(seed, counter, stream):
    """The four words of a block of Philox4x32-10 (Salmon et al., 2011)."""
    key = [seed & 0xFFFFFFFF, seed >> 32]
    x = [counter & 0xFFFFFFFF, counter >> 32 & 0xFFFFFFFF, stream & 0xFFFFFFFF, stream >> 32]
    for _ in range(10):
        low, high = x[0] * 0xD2511F53, x[2] * 0xCD9E8D57
        x = [high >> 32 ^ x[1] ^ key[0], high & 0xFFFFFFFF, low >> 32 ^ x[3] ^ key[1], low & 0xFFFFFFFF]
        key = [key[0] + 0x9E3779B9 & 0xFFFFFFFF, key[1] + 0xBB67AE85 & 0xFFFFFFFF]
    return x


class Dropout:
    """Weight n of all, counted row by row, is dropped when word n mod 4 of block n / 4 of stream 0 is below p 2^32."""

    def __init__(self, options):
        self.rule = options.get("dropout", {})
        is_active = options.get("training", False) and "attention" in self.rule.get("where", ["attention"])
        self.p = self.rule.get("p", 0) if is_active else 0

    def drop(self, first, weights):
        if self.p == 0:
            return weights
        return [0.0 if self.draws(first + n) else weight / (1 - self.p) for n, weight in enumerate(weights)]

    def draws(self, n):
        return philox(self.rule["seed"], n // 4, 0)[n % 4] < int(self.p * 2 ** 32)


class PositionBias:
    """The bias of a score by the distance of key and query: ALiBi, and T5's relative bias."""

    def __init__(self, options, heads):
        alibi, relative = options.get("alibi"), options.get("relative_bias")
        self.slopes = slopes(heads) if alibi is True else Tensor.from_json(alibi).data if alibi else None
        self.relative = relative
        self.table = Tensor.from_json(relative["table"]) if relative else None

    def at(self, h, distance):
        """distance: position of the key less that of the query."""
        bias = -self.slopes[h] * abs(distance) if self.slopes else 0.0
        if self.relative:
            bias += self.table.data[self.bucket(distance) * self.table.shape[1] + h]
        return bias

    def bucket(self, distance):
        count, first, away = self.table.shape[0], 0, max(-distance, 0)
        if self.relative.get("bidirectional", True):
            count, away = count // 2, abs(distance)
            first = count if distance > 0 else 0
        exact, longest = count // 2, self.relative.get("max_distance", 128)
        if away < exact:
            return first + away
        grown = math.log(away / exact) / math.log(longest / exact) * (count - exact)
        return first + min(exact + int(grown + 1e-6), count - 1)


def slopes(heads):
    """Press, Smith and Lewis (2022): a geometric series, and every other one of the next for what is left."""
    power = 2 ** (heads.bit_length() - 1)
    series = [2 ** (-8 * (h + 1) / power) for h in range(power)]
    return series + [2 ** (-4 * (2 * h + 1) / power) for h in range(heads - power)]


def attend(steps, masks, options):
    """Fills in everything from the scores to the context. Masked scores are -infinity."""
    scores = starts.GivenScores(steps) if "given" in steps else Products(steps)
    v = steps["present_value"]
    batch, heads, q_len, kv_len = shape = scores.shape
    mask = Mask(masks, shape, steps.get("position"))
    scale = options.get("scale", scores.scale)
    scaling = (1.0 if scale == "none" else scale, options.get("softcap"))
    steps["scale"], steps["offset"] = scaling[0], mask.offset(0)
    mechanism = options.get("mechanism", "softmax")
    if "update_rule" in mechanism:
        recurrence.attend(steps, Mask({**masks, "causal": True}, shape), scaling[0])
        return
    if mechanism not in ("softmax", {"type": "softmax"}):
        attend_by_features(steps, mask, turning.FeatureMap(mechanism, scaling[0], steps["q_rotated"].shape[3]))
        return
    group, v_rows = heads // v.shape[1], v.rows(v.shape[3]) if v.shape[3] else [[]] * math.prod(v.shape[:3])
    flat = {name: [] for name in (*MAPS, *LINES, "context")}
    position, dropout = PositionBias(options, heads), Dropout(options)
    steps["slopes"] = position.slopes
    sinks = Tensor.from_json(options["sinks"]).data if "sinks" in options else [-math.inf] * heads
    steps["rows_without_keys"] = []
    for b in range(batch):
        offset = mask.offset(b)
        for h in range(heads):
            first = (b * v.shape[1] + h // group) * kv_len
            values = v_rows[first:first + kv_len]
            rows = [[mask.allows(b, h, i, j) and not scores.hides(b, h, i, j) for j in range(kv_len)] for i in range(q_len)]
            seen = [any(row[j] for row in rows) for j in range(kv_len)]
            for i, allowed in enumerate(rows):
                row = scores.row(b, h, i, [is_seen and any(allowed) for is_seen in seen], offset)
                biases = [(position.at(h, j - i - offset), mask.bias(b, h, i, j)) for j in range(kv_len)]
                attend_row(flat, row, values, v.shape[3], allowed, biases, (*scaling, sinks[h], dropout))
                if not any(allowed):
                    steps["rows_without_keys"].append((b, h, i))
    for name in MAPS:
        steps[name] = Tensor(shape, flat[name])
    for name in LINES:
        steps[name] = Tensor(shape[:3], flat[name])
    steps["context"] = Tensor((*shape[:3], v.shape[3]), flat["context"])


class Products:
    """The scores of queries and keys. A key that is not read may be NaN."""

    def __init__(self, steps):
        q, k = steps["q_rotated"], steps["k_rotated"]
        self.shape, self.kv_heads = (*q.shape[:3], k.shape[2]), k.shape[1]
        self.relative = steps.get("relative")
        self.scale = 1 / math.sqrt(q.shape[3] * (1 + len(self.relative.tables) if self.relative else 1))
        self.q_rows, self.k_rows = q.rows(q.shape[3]), k.rows(k.shape[3])

    def hides(self, *_):
        return False

    def row(self, b, h, i, read, offset):
        _, heads, q_len, kv_len = self.shape
        kv_head = h * self.kv_heads // heads
        first = (b * self.kv_heads + kv_head) * kv_len
        keys, query = self.k_rows[first:first + kv_len], self.q_rows[(b * heads + h) * q_len + i]
        products = iter(dots(query, [key for key, is_read in zip(keys, read) if is_read]))
        row = [next(products) if is_read else -math.inf for is_read in read]
        if not self.relative:
            return row
        return [score + self.relative.at(query, keys[j], (h, kv_head), j - i - offset) if is_read else score
                for j, (score, is_read) in enumerate(zip(row, read))]


def attend_by_features(steps, mask, features):
    """The equivalent weights of a feature map, and the context."""
    q, k, v = steps["q_rotated"], steps["k_rotated"], steps["present_value"]
    (batch, heads, q_len, d_k), (kv_heads, kv_len), d_v = q.shape, k.shape[1:3], v.shape[3]
    q_rows, k_rows, v_rows = q.rows(d_k), k.rows(d_k), v.rows(d_v)
    weights, context, allowed, steps["rows_without_keys"] = [], [], [], []
    for b in range(batch):
        for h in range(heads):
            first = (b * kv_heads + h // (heads // kv_heads)) * kv_len
            keys, values = k_rows[first:first + kv_len], v_rows[first:first + kv_len]
            rows = [[mask.allows(b, h, i, j) for j in range(kv_len)] for i in range(q_len)]
            group = range(h - h % (heads // kv_heads), h - h % (heads // kv_heads) + heads // kv_heads)
            seen = [any(mask.allows(b, other, i, j) for other in group for i in range(q_len)) for j in range(kv_len)]
            of_keys = features.of_keys(keys, seen)
            for i, may in enumerate(rows):
                row = [0.0] * kv_len
                if any(may):
                    row = features.weights(q_rows[(b * heads + h) * q_len + i], of_keys, may)
                else:
                    steps["rows_without_keys"].append((b, h, i))
                weights += row
                allowed += may
                context += weighted_sum(row, values, may, d_v)
    steps["attention"] = Tensor((batch, heads, q_len, kv_len), weights)
    steps["mask"] = Tensor((batch, heads, q_len, kv_len), allowed)
    steps["context"] = Tensor((batch, heads, q_len, d_v), context)


def attend_row(flat, scores, values, d_v, allowed, biases, scaling):
    """One query. The score of a key that nobody may attend to is -infinity, and so are those of a query without keys."""
    scale, cap, sink, dropout = scaling
    scaled = [score * scale if score > -math.inf else score for score in scores]
    if cap:
        scaled = [cap * tanh(score / cap) if score > -math.inf else score for score in scaled]
    masked = [score + distance + bias if may else -math.inf for score, (distance, bias), may in zip(scaled, biases, allowed)]
    weights, lse, sink_weight = softmax(masked, sink)
    dropped = dropout.drop(len(flat["attention"]), weights)
    for name, row in zip(MAPS, (scores, scaled, masked, weights, dropped, allowed)):
        flat[name] += row
    flat["lse"].append(lse)
    flat["lse_keys"].append(softmax(masked, -math.inf)[1])
    flat["entropy"].append(-total(times_log(w) for w in (*weights, sink_weight) if w > 0))
    flat["sink"].append(sink_weight)
    flat["context"] += weighted_sum(dropped, values, allowed, d_v)


def weighted_sum(weights, values, allowed, d_v):
    """Values that are hidden, or whose weight is exactly 0, are never read: they may be NaN."""
    used = [(weight, value) for weight, value, may in zip(weights, values, allowed) if may and weight != 0]
    if not used:
        return [near(0.0, 0.0, item) for item in values[0]]
    return dots([weight for weight, _ in used], [[value[c] for _, value in used] for c in range(d_v)])


def softmax(row, sink):
    """Weights, log of the sum of exponentials, and weight of the sink; a row without keys and sink has none of it."""
    top, _ = parts(max((*row, sink)))  # a common shift changes nothing, so that the error of top matters to nobody
    if top == -math.inf:
        return [0.0] * len(row), -math.inf, 0.0
    exps = [exp(item - top) for item in (*row, sink)]
    whole = total(exps)
    weights = [item / whole for item in exps]
    return weights[:-1], top + log(whole), weights[-1]


def scale_heads(context, options):
    """The context times the factor of its head; a factor 0 gives 0."""
    if "head_scale" not in options:
        return context
    _, heads, q_len, d_v = context.shape
    factors = Tensor.from_json(options["head_scale"]).data
    each = (factors[at // (q_len * d_v) % heads] for at in range(len(context.data)))
    return Tensor(context.shape, [factor * item if factor else near(0.0, 0.0, item) for factor, item in zip(each, context.data)])


def differences(x, options):
    """Of each pair of heads the first less its factor times the second, after Ye et al. (2024), equation 1."""
    batch, heads, rows, columns = x.shape
    factors, parts_of = Tensor.from_json(options["differential"]).data, x.rows(rows * columns)
    pairs = zip(parts_of[::2], parts_of[1::2])
    data = [a - factors[at % len(factors)] * b for at, (first, second) in enumerate(pairs) for a, b in zip(first, second)]
    return Tensor((batch, heads // 2, rows, columns), data)


def finish(steps, x, weights, options, is_layer):
    batch, heads, q_len, d_v = steps["context"].shape
    scaled = scale_heads(steps["context"], options)
    if "differential" in options:
        scaled, steps["difference"] = differences(scaled, options), differences(steps["attention"], options)
    steps["concat"] = scaled.transpose(0, 2, 1, 3).reshape(batch, q_len, scaled.shape[1] * d_v)
    is_by_heads = x.start == "query" and len(x.query.shape) == 4 or x.start != "query" and x.rank == 4
    kv_len = steps["attention"].shape[3]
    across = steps["attention"].transpose(0, 2, 3, 1).rows(heads)
    steps["attention_mean"] = Tensor((batch, q_len, kv_len), [total(row) / heads for row in across])
    if not is_layer:
        steps["output"] = scaled if is_by_heads else steps["concat"]
    else:
        finish_layer(steps, x, weights, options)
    if x.rank == 2:
        for name in ("query_latent", "key_latent", "concat", "gated", "projected", "residual", "attention_output", "feed_forward", "output"):
            if name in steps:
                steps[name] = steps[name].reshape(*steps[name].shape[1:])


def contribution(steps, weights, options):
    """The norm of attention times the value behind W_O, for every key (Kobayashi et al., 2020, equation 5)."""
    v, maps = steps["present_value"], steps["attention"]
    (batch, kv_heads, kv_len, d_v), (_, heads, q_len, _) = v.shape, maps.shape
    columns = output_columns(weights["output"], weights.get("layout") == "out_in")
    factors = Tensor.from_json(options["head_scale"]).data if "head_scale" in options else [1.0] * heads
    values, norms = v.rows(d_v), {}
    for b, h, j in itertools.product(range(batch), range(heads), range(kv_len)):
        value = values[(b * kv_heads + h * kv_heads // heads) * kv_len + j]
        behind = dots(value, [column[h * d_v:(h + 1) * d_v] for column in columns])
        norms[b, h, j] = abs(factors[h]) * hypot(*behind)
    places = itertools.product(range(batch), range(heads), range(q_len), range(kv_len))
    return Tensor(maps.shape, [abs(weight) * norms[b, h, j] for weight, (b, h, _, j) in zip(maps.data, places)])


def finish_layer(steps, x, weights, options):
    output = steps["concat"]
    if "gate" in steps:
        output = steps["gated"] = turning.gated(output, steps["gate"])
    if "output" in weights and "gate" not in steps:
        steps["contribution"] = contribution(steps, weights, options)
    if "output" in weights:
        output = output_project(output, weights["output"], weights.get("layout") == "out_in")
    steps["projected"] = output
    if options.get("residual"):
        output = Tensor(output.shape, [a + b for a, b in zip(x.query.data, output.data)])
        steps["residual"] = output
    norm = options.get("norm", {})
    if norm and norm.get("position", "post") == "post":
        output = normalise(output, norm, weights.get("norm", {}))
    steps["output"] = output
    if "feed_forward" in weights:
        is_out_in, is_pre = weights.get("layout") == "out_in", norm.get("position", "post") == "pre"
        read_by_heads = normalise(x.query, norm, weights.get("norm", {})) if norm and is_pre else x.query
        network.finish_block(steps, x.query, read_by_heads, weights, options,
                             lambda tokens, linear: project(tokens, linear, is_out_in), normalise)


def select(name, tensor, options):
    """The selected heads, queries and keys of a map; the other steps as they are."""
    if name not in (*SELECTED, "attention_mean", "difference"):
        return tensor
    parts_of = {"attention_mean": ("queries", "keys"), "difference": ("pairs", "queries", "keys")}
    picks = [range(tensor.shape[0])] + [expanded(options.get(part), size) for part, size in
                                        zip(parts_of.get(name, ("heads", "queries", "keys")), tensor.shape[1:])]
    data = [tensor.data[sum(map(int.__mul__, index, tensor.strides()))] for index in itertools.product(*picks)]
    return Tensor([len(part) for part in picks], data)


def expanded(selection, size):
    """The indices of a list, whose items may be ranges, or of one range. Negative ones count from the end."""
    if selection is None:
        return range(size)
    indices = []
    for item in selection if isinstance(selection, list) else [selection]:
        first, last = ends(item)
        indices += range(first + size * (first < 0), last + size * (last < 0) + 1)
    return indices


def ends(item):
    """Of an index, [from, to], {"from", "to"} or "from-to"."""
    if isinstance(item, str):
        return [int(end) for end in item.split("-")]
    if isinstance(item, dict):
        return item["from"], item["to"]
    return item if isinstance(item, list) else (int(item), int(item))
