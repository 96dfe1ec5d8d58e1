"""turning.py: norms, rotation and caches of queries and keys, and feature maps, by their equations."""

import math

from bounded import UNKNOWN, dot, dots, exp, largest, near, sigmoid, sqrt, total
from tensors import Tensor


def turn(steps, past, weights, options):
    """Adds q_rotated, k_rotated, present_key and present_value to the steps q, k and v. past: keys and values, or two None."""
    q, k, v = steps["q"], steps["k"], steps["v"]
    if "qk_norm" in options:
        q = normed(q, options["qk_norm"], weights.get("query_norm", {}))
        k = normed(k, options["qk_norm"], weights.get("key_norm", {}))
    if "rope" in options:
        rope = Rope(options["rope"], q.shape, k.shape, past[0].shape[2] if past[0] else 0, steps.get("own", 0))
        q, k = rope.turned(q, "query"), rope.turned(k, "key")
    k, v = (before.concat(x, 2) if before else x for before, x in zip(past, (k, v)))
    steps.update(q_rotated=q, k_rotated=k, present_key=k, present_value=v)


def normed(x, norm, linear):
    """Of every head, or of all heads of a token together when the gain is that wide."""
    batch, heads, length, d = x.shape
    gain, shift = (Tensor.from_json(linear[name]) if name in linear else None for name in ("weight", "bias"))
    shaped = gain or shift
    if shaped and len(shaped.shape) == 1 and shaped.shape[0] != d:
        rows = x.transpose(0, 2, 1, 3).rows(heads * d)
        flat = [item for row in rows for item in normed_row(row, norm, gain, shift, 0)]
        return Tensor((batch, length, heads, d), flat).transpose(0, 2, 1, 3)
    own = d if shaped and len(shaped.shape) == 2 else 0
    flat = []
    for at, row in enumerate(x.rows(d)):
        flat += normed_row(row, norm, gain, shift, at // length % heads * own)
    return Tensor(x.shape, flat)


def normed_row(row, norm, gain, shift, first):
    kind = norm.get("type", "rms")
    eps = norm.get("eps", 1e-12 if kind == "l2" else 1e-5)
    mean = total(row) / len(row) if kind == "layer" else 0.0
    row = [item - mean for item in row]
    squares = dot(row, row)
    size = largest((sqrt(squares), eps)) if kind == "l2" else sqrt(squares / len(row) + eps)
    return [item / size * (gain.data[first + f] if gain else 1.0) + (shift.data[first + f] if shift else 0.0)
            for f, item in enumerate(row)]


class Rope:
    """Cosines and sines of every token, and the turn."""

    def __init__(self, given, q_shape, k_shape, past_len, first):
        self.given, self.past_len, self.first = given, past_len, first  # first: how many features come before those that turn
        self.lengths = {"query": q_shape[2], "key": k_shape[2]}
        self.batch, self.d_k = q_shape[0], q_shape[3] - first
        self.scaling = given.get("scaling", {})
        self.kind = self.scaling.get("rope_type", self.scaling.get("type", "default"))
        self.theta = given.get("theta", self.scaling.get("rope_theta", 10000.0))
        self.dim = self._dim()
        self.positions = {side: self._positions(side) for side in self.lengths}
        self.length = 1 + max((p for side in self.positions.values() for row in side for p in row), default=-1)
        self.gain = 1.0
        self.frequencies = self._frequencies() if "cos" not in given else None
        self.tables = {side: [self._side(name, side).rows(self.dim // 2) for name in ("cos", "sin")]
                       for side in self.lengths} if "cos" in given else None

    def _side(self, name, side):
        value = self.given.get(name)
        is_pair = isinstance(value, dict) and ("query" in value or "key" in value)
        value = value.get(side) if is_pair else value
        return None if value is None else Tensor.from_json(value)

    def _dim(self):
        if "dim" in self.given:
            return self.given["dim"]
        if "cos" in self.given:
            return 2 * self._side("cos", "query").shape[-1]
        part = self.scaling.get("partial_rotary_factor", 1.0)
        return self.d_k if self.kind == "proportional" else int(self.d_k * part)

    def _positions(self, side):
        given, length = self._side("positions", side), self.lengths[side]
        if given is None:
            return [[self.past_len + i for i in range(length)]] * self.batch
        rows = given.rows(length)
        return rows if len(rows) == self.batch else rows * self.batch

    def _frequencies(self):
        s, dim, pairs = self.scaling, self.dim, self.dim // 2
        original = s.get("original_max_position_embeddings") or s.get("max_position_embeddings")
        most = s.get("max_position_embeddings") or original
        factor = s.get("factor") or (most / original if original else 1.0)
        theta = self.theta
        if self.kind == "dynamic":
            theta *= (factor * max(self.length, most) / most - (factor - 1)) ** (dim / (dim - 2))
        plain = [theta ** (-2 * i / dim) for i in range(pairs)]
        if self.kind in ("default", "dynamic"):
            return plain
        if self.kind == "linear":
            return [w / factor for w in plain]
        if self.kind == "yarn":
            return self._yarn(plain, factor, original)
        if self.kind == "longrope":
            self.gain = s.get("attention_factor") or (
                math.sqrt(1 + math.log(factor) / math.log(original)) if factor > 1 else 1.0)
            return [w / f for w, f in zip(plain, s["long_factor" if self.length > original else "short_factor"])]
        if self.kind == "llama3":
            return [self._llama3(w, factor, original) for w in plain]
        turning = int(s.get("partial_rotary_factor", 1.0) * dim // 2)
        return [w / s.get("factor", 1.0) if i < turning else 0.0 for i, w in enumerate(plain)]

    def _yarn(self, plain, factor, original):
        s, dim = self.scaling, self.dim

        def pair(turns):
            return dim * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(self.theta))

        def mscale(by):
            return 0.1 * by * math.log(factor) + 1 if factor > 1 else 1.0

        low, high = pair(s.get("beta_fast") or 32), pair(s.get("beta_slow") or 1)
        if s.get("truncate", True):
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, dim - 1)
        high += 0.001 if low == high else 0
        both = s.get("mscale") and s.get("mscale_all_dim")
        self.gain = s.get("attention_factor") or (
            mscale(s["mscale"]) / mscale(s["mscale_all_dim"]) if both else mscale(1))
        ramps = [min(max((i - low) / (high - low), 0), 1) for i in range(dim // 2)]
        return [w / factor * ramp + w * (1 - ramp) for w, ramp in zip(plain, ramps)]

    def _llama3(self, w, factor, original):
        low, high = self.scaling["low_freq_factor"], self.scaling["high_freq_factor"]
        turns = original * w / (2 * math.pi)
        share = min(max((turns - low) / (high - low), 0), 1)
        return w * share + w / factor * (1 - share)

    def _cos_sin(self, side, b, token):
        if "cos" not in self.given:
            angles = [self.positions[side][b][token] * w for w in self.frequencies]
            return [[function(angle) * self.gain for angle in angles] for function in (math.cos, math.sin)]
        rows = self.tables[side]
        if "positions" in self.given:
            at = self.positions[side][b][token]
        else:
            at = token + (b * self.lengths[side] if len(rows[0]) > self.lengths[side] else 0)
        return rows[0][at], rows[1][at]

    def _error(self, side, b, token, pair):
        """Of a cosine and a sine, by the rounding of the angle in double."""
        if "cos" in self.given:
            return 0.0
        return abs(self.positions[side][b][token] * self.frequencies[pair]) * 2.0 ** -46 * max(self.gain, 1.0)

    def turned(self, x, side):
        batch, heads, length, d = x.shape
        layout, half = self.given.get("layout", "half"), self.dim // 2
        flat = []
        for at, whole in enumerate(x.rows(d)):
            row = whole[self.first:]
            cos, sin = self._cos_sin(side, at // length // heads, at % length)
            errors = [self._error(side, at // length // heads, at % length, pair) for pair in range(half)]
            cos, sin = ([near(item, error, row[0]) for item, error in zip(items, errors)] for items in (cos, sin))
            one = row[:half] if layout == "half" else row[:self.dim:2]
            two = row[half:self.dim] if layout == "half" else row[1:self.dim:2]
            first = [a * c - b * s for a, b, c, s in zip(one, two, cos, sin)]
            second = [b * c + a * s for a, b, c, s in zip(one, two, cos, sin)]
            pairs = [item for pair in zip(first, second) for item in pair]
            flat += whole[:self.first] + (pairs if layout == "interleaved" else first + second) + row[self.dim:]
        return Tensor((batch, heads, length, d), flat)


class FeatureMap:
    """Weights of mechanism linear or performer, instead of the softmax. Without a given projection they are unknown."""

    def __init__(self, mechanism, scale, d_k):
        given = mechanism if isinstance(mechanism, dict) else {"type": mechanism}
        self.kind = given["type"]
        self.is_identity = given.get("feature_map") == "identity"
        self.is_normalised = given.get("normalize", True)
        self.eps = given.get("eps", 1e-4 if self.kind == "performer" else 0.0)
        self.projection = Tensor.from_json(given["projection"]).rows(d_k) if "projection" in given else None
        self.scale = scale

    def is_known(self):
        """Whether the request says all that the weights depend on."""
        return self.kind == "linear" or self.projection is not None

    def of_keys(self, keys, seen):
        """The features of the keys that are seen; None for the others."""
        if not self.is_known():
            return keys
        highest = [largest(self._projected(key)) for key, is_seen in zip(keys, seen) if is_seen] if self.projection else []
        top = largest(highest) if highest else 0.0
        return [self._features(key, top) if is_seen else None for key, is_seen in zip(keys, seen)]

    def _projected(self, x):
        return dots([math.sqrt(self.scale) * item for item in x], self.projection)

    def _features(self, x, top):
        if self.kind == "linear":
            return list(x) if self.is_identity else [item + 1 if item > 0 else exp(item) for item in x]
        projected = self._projected(x)
        shift = self.scale * dot(x, x) / 2 + (largest(projected) if top is None else top)
        return [(exp(item - shift) + self.eps) / math.sqrt(len(projected)) for item in projected]

    def weights(self, query, features, allowed):
        """features: those of the keys."""
        if not self.is_known():
            return [near(0.0, UNKNOWN, query[0]) if may else 0.0 for may in allowed]
        phi = self._features(query, None)
        raw = [dot(phi, of_key) if may else 0.0 for of_key, may in zip(features, allowed)]
        if not self.is_normalised:
            return [self.scale * item for item in raw]
        whole = total(raw) + (self.eps if self.kind == "linear" else 0.0)
        return [item / whole if may else 0.0 for item, may in zip(raw, allowed)]


def gated(concat, gate):
    """concat times the sigmoid of the gate: a number for every feature, or one a head. gate: (batch, q_len, gates)."""
    width, gates = concat.shape[-1], gate.shape[-1]
    flat = [item * sigmoid(row[f * gates // width])
            for values, row in zip(concat.rows(width), gate.rows(gates)) for f, item in enumerate(values)]
    return Tensor(concat.shape, flat)
