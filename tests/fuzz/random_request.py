"""
random_request.py: random valid requests that cover the whole interface, each as the text to post and as the request
for the reference.
"""

import base64
import copy
import json
import math
import struct

from attention import PROFILES, Mask, first_position, plain_values
from tensors import Tensor

PACKED = {"float64": "d", "float32": "f", "float16": "e", "int64": "q", "int32": "i", "uint8": "B", "bool": "?"}
MAPS = ("scores", "scaled", "masked", "attention", "dropped", "contribution", "mask")
STEPS = ("query_latent", "key_latent", "q", "k", "v", "q_rotated", "k_rotated", "scores", "scaled", "masked", "attention", "dropped",
         "difference", "lse", "lse_keys", "entropy", "sink", "context", "concat", "gated", "projected", "contribution", "residual",
         "attention_output", "feed_forward", "output", "present_key", "present_value", "present_state",
         "attention_mean", "mask")

# The steps that a start in the middle lacks, and those that it lacks without values.
WITHOUT_KEYS = ("q", "k", "q_rotated", "k_rotated", "present_key", "present_value")
BEFORE_WEIGHTS = ("scores", "scaled", "masked", "lse", "lse_keys", "sink")
OF_VALUES = ("v", "context", "concat", "output")
PRESENT = ("present_key", "present_value")
SOFTMAX_ALONE = ("scores", "scaled", "masked", "lse", "lse_keys", "entropy", "sink", "dropped")
CACHE = "fuzz"
POOLED = ([("rows", "queries")], [("cols", "keys")], [("rows", "queries"), ("cols", "keys")])


class Spec:
    """What later choices and the comparison need of a request. The builder fills it in."""

    def __init__(self):
        self.output_width, self.norm, self.residual, self.dropout, self.training = None, None, False, None, False
        self.window, self.sliding, self.layout, self.past_len, self.mechanism = None, None, "in_out", 0, None
        self.has_gate = self.has_network = self.has_sinks = self.turns = self.is_recurrent = False
        self.is_differential, self.d_shared = False, 0
        self.start, self.has_value = "query", True

    def lacks(self, step):
        """Whether a start in the middle does not have the step."""
        return self.start != "query" and (step in WITHOUT_KEYS or self.start == "attention" and step in BEFORE_WEIGHTS or
                                          not self.has_value and step in OF_VALUES)

    def turnable(self):
        """The features of a head that rope may turn."""
        return self.d_shared or self.d_k

    def v_heads(self):
        return self.kv_heads // 2 if self.is_differential else self.kv_heads

    def drops_weights(self):
        return bool(self.training and self.dropout and self.dropout["p"] > 0 and "attention" in self.dropout["where"])

    def drops_residual(self):
        return bool(self.training and self.dropout and self.dropout["p"] > 0 and "residual" in self.dropout["where"])


def to_type(value, dtype):
    """value as dtype holds it, back as a double."""
    if dtype == "bfloat16":
        bits = struct.unpack("<I", struct.pack("<f", value))[0]
        bits = bits + 0x7FFF + (bits >> 16 & 1) & 0xFFFF0000
        return struct.unpack("<f", struct.pack("<I", bits))[0]
    return value if dtype == "float64" else float(struct.unpack("<" + PACKED[dtype], struct.pack("<" + PACKED[dtype],
                                                                                                value))[0])


def pack(values, dtype):
    if dtype == "bfloat16":
        return b"".join(struct.pack("<f", v)[2:] for v in values)
    kind = float if dtype.startswith("float") else bool if dtype == "bool" else int
    return struct.pack(f"<{len(values)}{PACKED[dtype]}", *map(kind, values))


class Builder:
    """
    One random request: body (a tree of plain Python), spec, path. largest bounds lengths and features; longest, when
    given, the lengths alone, with one of them short.
    """

    def __init__(self, random, largest, longest=None):
        self.random, self.largest, self.longest, self.spec = random, largest, longest, Spec()
        self.body, self.options, self.masks = {"inputs": {}}, {}, {}
        self.build()

    # ---- small choices ----

    def chance(self, p):
        return self.random.random() < p

    def size(self, largest):
        return 1 if self.chance(0.1) else self.random.randint(1, largest)

    def pick(self, *items):
        return self.random.choice(items)

    # ---- tensors ----

    def numbers(self, count, spread):
        """Numbers as some storage type holds them, and that type; small integers for the integer types."""
        r, dtype = self.random, self.pick("float64", "float32", "float16", "bfloat16", "float32", "int32", "uint8",
                                          "int64", "bool", "decimal", "decimal", "decimal")
        if dtype in ("int32", "int64"):
            return [float(r.randint(-3, 3)) for _ in range(count)], dtype
        if dtype in ("uint8", "bool"):
            return [float(r.randint(0, 3 if dtype == "uint8" else 1)) for _ in range(count)], dtype
        values = [r.gauss(0, spread) for _ in range(count)]
        if self.chance(0.1):
            values = [r.choice((0.0, -0.0, v, 1e-40, -1e-44, 2.0 ** -149)) for v in values]
        if dtype == "float16":
            values = [to_type(v, dtype) for v in values]
        return [to_type(v, dtype) for v in values] if dtype != "decimal" else values, dtype

    def tensor(self, shape, spread=1.0):
        """(the form to send, the values as computed with)"""
        values, dtype = self.numbers(math.prod(shape), spread)
        return self.written(shape, values, dtype), [to_type(v, self.spec.compute) for v in values]

    def written(self, shape, values, dtype):
        if dtype != "decimal" and not self.chance(0.3):
            return {"shape": list(shape), "dtype": dtype, "base64": base64.b64encode(pack(values, dtype)).decode()}
        values = [int(v) if self.chance(0.5) and v.is_integer() and str(v) != "-0.0" else v for v in map(float, values)]
        if self.chance(0.3):
            return {"shape": list(shape), "data": values}
        return nested(shape, values)

    def flags(self, shape, p):
        values = [self.chance(p) for _ in range(math.prod(shape))]
        if self.chance(0.1):
            return {"shape": list(shape), "data": values}
        return self.written(shape, values, self.pick("bool", "uint8", "int32", "int64")) if self.chance(0.3) else \
            nested(shape, [int(v) if self.chance(0.2) else v for v in values])

    def integers(self, values):
        """A list of them in one of the three forms."""
        small = [*(["uint8"] if 0 <= min(values) and max(values) < 256 else []),
                 *(["bool"] if set(values) <= {0, 1} else [])]
        return self.written((len(values),), values, self.pick("int32", "int64", *small)) if self.chance(0.4) else values

    # ---- the request ----

    def build(self):
        spec = self.spec
        spec.is_layer = self.chance(0.5)
        spec.compute = self.pick("float32", "float32", "float64")
        if spec.compute == "float64" or self.chance(0.2):
            self.options["compute"] = spec.compute
        spec.rank = self.pick(2, 3) if spec.is_layer else self.pick(2, 3, 4)
        spec.batch = 1 if spec.rank == 2 else self.size(3)
        spec.kv_heads = self.size(3)
        spec.heads = spec.kv_heads * self.pick(1, 1, 1, 2, 3)
        spec.q_len, spec.kv_len = self.size(self.largest), self.size(self.largest)
        if self.longest:
            spec.q_len, spec.kv_len = self.pick((spec.q_len, self.size(self.longest)),
                                                (self.size(self.longest), spec.kv_len))
        spec.d_k, spec.d_v = self.size(self.largest), self.size(self.largest)
        if self.chance(0.15):
            self.choose_profile()
        self.form = self.pick("own", "own", "key", *([] if self.longest else ["self"]))
        if self.form == "self":
            spec.kv_len = spec.q_len
        spec.new_len = spec.kv_len
        if spec.is_layer:
            self.build_layer()
        elif self.chance(0.2):
            self.build_start()
        else:
            self.build_attention()
        if spec.start == "query" and self.chance(0.15):
            self.build_past()
        if spec.start == "query" and not spec.is_differential and self.chance(0.15):
            self.choose_mechanism()
        if spec.start != "attention":
            self.choose_masks()
        self.choose_options()
        self.choose_return()
        clean = copy.deepcopy(self.body["inputs"])
        self.hide_nan()
        self.put_parts()
        self.meant = rounded(plain_values({**self.body, "inputs": clean}), spec.compute)
        self.choose_shown()

    def put_parts(self):
        """Masks, options and tokens into the body."""
        spec = self.spec
        for name, value in (("options", self.options), ("masks", self.masks)):
            if value or self.chance(0.2):
                self.body[name] = value
        if self.chance(0.2):
            self.body["tokens"] = {"query": [f"t{i}\u00e9" for i in range(spec.q_len)]}
        if self.chance(0.1):
            self.body.setdefault("tokens", {})["key"] = [["k"] * spec.kv_len] * spec.batch  # of the cache too
        self.path = "/v1/multi-head-attention" if spec.is_layer else "/v1/attention"

    def bodies(self):
        """All that is posted of this request."""
        return [self.body, *self.shown.values()]

    def choose_shown(self):
        """The same computation shown otherwise, which differential.py compares with the answer to body: name = body."""
        spec, kind = self.spec, self.pick("pool", "top_k", "dtype", "view", "cache")
        options, more = dict(self.options), {}
        self.shown = {}
        if kind == "pool" and set(self.wanted) & set(MAPS):
            more = {name: self.random.randint(1, len(self.kept[side])) for name, side in self.pick(*POOLED)}
            if self.chance(0.7):
                more["op"] = self.pick("max", "mean")
            more = {"pool": more}
        elif kind == "top_k" and "attention" in self.wanted:
            more = {"top_k": self.pick(1, 2, 3, 100)}
        elif kind == "dtype" and set(self.wanted) & {"attention", "mask"}:
            weights = [] if spec.mechanism else ["float16", "uint8"]  # what feature maps give may be beyond them
            dtype = self.pick("float32", "float64", "bfloat16", *weights)
            more = {"format": "base64", "dtype": dtype, "return": [x for x in self.wanted if x in ("attention", "mask")]}
        elif kind == "view" and not self.has_nan and not spec.drops_weights():
            views = ["rows"] + (["bertviz", "inspectus"] if spec.batch == 1 else [])
            views += ["circuitsvis"] if spec.batch == 1 and spec.q_len == spec.kv_len else []
            more = {"view": self.pick(*views), "return": ["attention"]}
            for name in ("format", "digits", "heads", "queries", "keys"):
                options.pop(name, None)
        elif kind == "cache" and spec.batch == 1 and not spec.past_len and spec.start == "query" and not spec.is_recurrent:
            more = {"cache": self.pick(CACHE, {"name": CACHE}, {"name": CACHE, "length": 0})}
        if more:
            self.shown[kind] = {**self.body, "options": {**options, **more}}

    def choose_mechanism(self):
        """Into spec.mechanism what the later choices need; None for the softmax."""
        spec, kind = self.spec, self.pick("softmax", "linear", "linear", "performer", "performer")
        sent = {"type": kind}
        if spec.q_len == spec.kv_len and not spec.past_len and not self.longest and self.chance(0.5):
            kind, sent = "linear", self.choose_update_rule()
        elif kind == "linear":
            choices = {"feature_map": self.pick("elu", "identity"), "normalize": self.pick(True, False),
                       "eps": self.pick(0, 1e-3, 1)}
            usual = self.pick(0, 0.7, 0.7)
            sent.update((name, value) for name, value in choices.items() if self.chance(usual))
            if sent.get("feature_map") == "identity":
                sent["normalize"] = False  # its denominator may be 0
            if not sent.get("normalize", True):
                sent.pop("eps", None)
        elif kind == "performer" and not self.chance(0.2):  # else by its name alone
            features = self.random.randint(1, 9)
            if self.chance(0.7):
                sent["projection"], _ = self.tensor((features, spec.d_k))
            elif self.chance(0.7):
                sent["features"] = features
            if "projection" not in sent and self.chance(0.7):
                sent["seed"] = self.random.randint(0, 2 ** 63 - 1)
            if self.chance(0.5):
                sent["eps"] = self.pick(0, 1e-6, 0.1)
        self.options["mechanism"] = kind if len(sent) == 1 and self.chance(0.7) else sent
        normalises = kind == "linear" and not spec.is_recurrent
        spec.mechanism = {"normalize": normalises, **sent} if kind != "softmax" else None

    def choose_update_rule(self):
        """The mechanism, and its inputs."""
        spec, rule = self.spec, self.pick("linear", "gated", "delta", "gated_delta")
        heads, length = spec.kv_heads, spec.kv_len
        if rule.startswith("gated"):
            width = self.pick(1, spec.d_k)
            values = [-abs(self.random.gauss(0, 0.5)) for _ in range(spec.batch * length * heads * width)]
            self.body["inputs"]["decay"] = self.written(self.shape_of(heads, length, width), values, "decimal")
        if rule.endswith("delta"):
            many = self.pick(1, heads)
            values = [self.random.random() for _ in range(spec.batch * length * many)]
            self.body["inputs"]["beta"] = self.written(self.shape_of(many, length, 1), values, "decimal")
        if self.chance(0.4):
            shape = (spec.batch, heads, spec.d_k, spec.d_v)
            self.body["inputs"]["past_state"], _ = self.tensor(shape[1:] if spec.rank == 2 and self.chance(0.5) else shape)
        sent = {"type": "linear", "update_rule": rule}
        sent.update((name, value) for name, value in (("feature_map", "identity"), ("normalize", False)) if self.chance(0.2))
        spec.is_recurrent = True
        return sent

    def choose_profile(self):
        self.options["profile"] = name = self.pick(*PROFILES)
        self.spec.layout = PROFILES[name][1]

    def give(self, name, shape, spread=1.0):
        form, values = self.tensor(shape, spread)
        self.body["inputs"][name] = form
        shape = (1, *shape) if len(shape) == 2 else shape
        return Tensor(shape, values)

    def shape_of(self, heads, length, d):
        spec = self.spec
        if spec.rank == 4:
            return (spec.batch, heads, length, d)
        return (spec.batch, length, heads * d) if spec.rank == 3 else (length, heads * d)

    def build_attention(self):
        spec = self.spec
        spec.is_differential = (self.form == "own" or spec.rank < 4) and self.chance(0.15)
        if spec.is_differential and spec.kv_heads % 2:
            spec.heads, spec.kv_heads = 2 * spec.heads, 2 * spec.kv_heads
        if self.form == "self":
            spec.kv_heads = spec.heads
        if self.form != "own":
            spec.d_v = spec.d_k * (1 + spec.is_differential)
        spec.query = self.give("query", self.shape_of(spec.heads, spec.q_len, spec.d_k))
        spec.key = spec.value = spec.query
        if self.form != "self":
            spec.key = spec.value = self.give("key", self.shape_of(spec.kv_heads, spec.new_len, spec.d_k))
        if self.form == "own":
            spec.value = self.give("value", self.shape_of(spec.v_heads(), spec.new_len, spec.d_v))
        if spec.rank < 4 and spec.heads > 1 or self.chance(0.2):
            self.options["num_heads"] = spec.heads
        if spec.heads != spec.kv_heads and spec.rank < 4 or self.chance(0.2):
            self.options["kv_num_heads"] = spec.kv_heads

    def build_start(self):
        """Scores or weights instead of queries and keys."""
        spec = self.spec
        spec.start, self.form, spec.d_k = self.pick("scores", "attention"), "own", 0
        spec.has_value = spec.start == "attention" or self.chance(0.8)
        if not spec.has_value:
            spec.kv_heads, spec.d_v = spec.heads, 0
        shape = (spec.batch, spec.heads, spec.q_len, spec.kv_len)
        least = 0 if spec.batch > 1 else 1 if spec.heads > 1 else 2
        shape = shape[self.random.randint(0, least):]
        if spec.start == "scores":
            values, dtype = self.numbers(math.prod(shape), 2.0)
            if dtype not in ("int32", "int64", "uint8", "bool") and self.chance(0.4):
                values = [-math.inf if self.chance(0.2) else value for value in values]
        else:
            values = [self.random.random() * self.chance(0.9) for _ in range(math.prod(shape))]
            dtype = self.pick("float32", "float64", "decimal")
            values = values if dtype == "decimal" else [to_type(value, dtype) for value in values]
        self.body["inputs"][spec.start] = self.written(shape, values, dtype)
        if spec.has_value:
            spec.value = self.give("value", self.shape_of(spec.kv_heads, spec.kv_len, spec.d_v))
        if self.chance(0.2):
            self.options["num_heads"] = spec.heads
        if spec.has_value and (spec.heads != spec.kv_heads and spec.rank < 4 or self.chance(0.2)):
            self.options["kv_num_heads"] = spec.kv_heads

    def build_past(self):
        """A cache in front of the keys; kv_len grows by it."""
        spec = self.spec
        spec.past_len = self.size(4)
        spec.kv_len += spec.past_len
        for name, heads, d in (("past_key", spec.kv_heads, spec.d_k), ("past_value", spec.v_heads(), spec.d_v)):
            shape = (spec.batch, heads, spec.past_len, d)
            self.body["inputs"][name], _ = self.tensor(shape[1:] if spec.rank == 2 and self.chance(0.5) else shape)

    def choose_turn(self):
        if self.chance(0.2):
            self.choose_qk_norm()
        if self.spec.turnable() >= 2 and self.chance(0.35):
            self.choose_rope()

    def choose_qk_norm(self):
        spec = self.spec
        choices = (("type", self.pick("rms", "layer", "l2")), ("eps", self.pick(1e-5, 1e-3, 1)))
        sent = {name: value for name, value in choices if self.chance(0.8)}
        self.options["qk_norm"], spec.turns = sent, True
        if not spec.is_layer or self.chance(0.4):
            return
        for role, heads in (("query", spec.heads), ("key", spec.kv_heads)):
            shape = self.pick((spec.d_k,), (heads, spec.d_k), (heads * spec.d_k,))
            given = {name: self.tensor(shape)[0] for name in ("weight", "bias") if self.chance(0.6)}
            if given:
                self.weights[f"{role}_norm"] = given

    def choose_rope(self):
        spec = self.spec
        lengths = {"query": spec.q_len, "key": spec.new_len}
        dim, theta = 2 * self.random.randint(1, spec.turnable() // 2), self.pick(10000.0, 500.0, 1e6)
        sent = {"layout": self.pick("half", "interleaved", "interleaved_to_half"), "theta": theta, "dim": dim}
        sent = {name: value for name, value in sent.items() if name == "dim" or self.chance(0.7)}
        spec.turns = True
        if self.chance(0.3):
            self.options["rope"] = self.with_tables(sent, lengths, dim // 2)
            return
        if self.chance(0.6):
            self.choose_scaling(sent, dim)
        if self.chance(0.3):
            sent["positions"] = self.choose_positions(lengths, 1000)
        self.options["rope"] = sent

    def choose_positions(self, lengths, most):
        form = {}
        is_one = lengths["query"] == lengths["key"] and self.chance(0.5)
        for side, length in lengths.items():
            items = self.pick(1, self.spec.batch)
            drawn = [[self.random.randint(0, most) for _ in range(length)] for _ in range(items)]
            form[side] = drawn[0] if items == 1 and self.chance(0.5) else drawn
        return form["query"] if is_one else form

    def with_tables(self, sent, lengths, half):
        """The rotation as tables of cos and sin, whose numbers need not be of any angle."""
        spec = self.spec
        sent = {name: value for name, value in sent.items() if name in ("layout", "dim")}
        kind, tables = self.pick("tokens", "items", "rows"), {"cos": {}, "sin": {}}
        is_one = kind == "rows" or lengths["query"] == lengths["key"] and self.chance(0.5)
        if kind == "rows":
            sent["positions"] = self.choose_positions(lengths, 5)
        for name, sides in tables.items():
            for side, length in lengths.items():
                shape = {"tokens": (length, half), "items": (spec.batch, length, half), "rows": (6, half)}[kind]
                sides[side], _ = self.tensor(shape)
            sent[name] = sides["query"] if is_one else sides
        return sent

    def choose_scaling(self, sent, dim):
        """Into sent, with what its type takes; dim and theta may move into it."""
        spec = self.spec
        kind = self.pick("default", "linear", "dynamic", "yarn", "longrope", "llama3", "proportional")
        if kind == "dynamic" and dim == 2:
            return
        scaling = {self.pick("rope_type", "type"): kind}
        if "theta" in sent and self.chance(0.5):
            scaling["rope_theta"] = sent["theta"]
            if self.chance(0.7):
                del sent["theta"]
        share = dim / spec.turnable()
        if kind == "proportional" and self.chance(0.8):
            scaling["partial_rotary_factor"] = self.pick(0.25, 0.5, 1)
        elif kind != "proportional" and int(spec.turnable() * share) == dim and self.chance(0.3):
            scaling["partial_rotary_factor"] = share
            del sent["dim"]
        trained, factor = self.pick(2, 7, 20, 4096), self.pick(2.0, 4, 7.3)
        if kind in ("dynamic", "yarn", "longrope", "llama3"):
            scaling["original_max_position_embeddings"] = trained
            if self.chance(0.4):
                scaling["max_position_embeddings"] = trained * self.pick(1, 3)
        has_both = "max_position_embeddings" in scaling and kind in ("yarn", "longrope")
        if kind not in ("default", "proportional") and not (has_both and self.chance(0.5)) or \
                kind == "proportional" and self.chance(0.5):
            scaling["factor"] = factor
        optional = {"yarn": {"beta_fast": (32, 4), "beta_slow": (1, 0.5), "attention_factor": (1.5, None),
                             "mscale": (0.707, 1), "mscale_all_dim": (1, 0.5), "truncate": (True, False)},
                    "longrope": {"attention_factor": (1.25, None)}}
        for name, values in optional.get(kind, {}).items():
            if self.chance(0.4):
                scaling[name] = self.pick(*values)
        if kind == "longrope":
            for name in ("short_factor", "long_factor"):
                scaling[name] = [self.pick(1.0, 1.5, 3, 40.0) for _ in range(dim // 2)]
        if kind == "llama3":
            low, high = self.pick((1.0, 4.0), (0.5, 2))
            scaling.update({"low_freq_factor": low, "high_freq_factor": high})
        sent["scaling"] = scaling

    # ---- a layer ----

    def build_layer(self):
        spec = self.spec
        self.layout = self.pick("in_out", "out_in")
        self.weights = {"layout": self.layout} if self.layout != self.spec.layout or self.chance(0.2) else {}
        self.body["weights"] = self.weights
        spec.query = self.give("query", self.shape_of(1, spec.q_len, self.size(self.largest)))
        fused = self.chance(0.4)
        width = spec.query.shape[-1]
        key_width = width if fused or self.form == "self" else self.size(self.largest)
        value_width = key_width if fused or self.form != "own" else self.size(self.largest)
        spec.key = spec.value = spec.query
        if self.form != "self":
            spec.key = spec.value = self.give("key", self.shape_of(1, spec.new_len, key_width))
        if self.form == "own":
            spec.value = self.give("value", self.shape_of(1, spec.new_len, value_width))
        if fused:
            self.build_fused(width)
        else:
            widths = (width, key_width, value_width)
            self.build_separate(*(self.build_latents(*widths) if self.chance(0.3) else widths))
        if self.chance(0.6):
            self.build_output()
        if self.chance(0.2):
            gates = spec.heads * self.pick(1, spec.d_v)
            spec.has_gate, self.weights["gate"] = True, self.draw_layer(width, gates, spec.heads if self.chance(0.3) else 0)
            self.options["num_heads"], self.options["kv_num_heads"] = spec.heads, spec.kv_heads

    def weight_text(self, columns, inner):
        """Columns as a rank-2 weight in the layout."""
        out = len(columns)
        if self.layout == "out_in":
            return self.written((out, inner), [x for column in columns for x in column], self.stored)
        return self.written((inner, out), [columns[c][i] for i in range(inner) for c in range(out)], self.stored)

    def draw_layer(self, inner, out, heads):
        """The JSON of a linear layer; rank 3 (heads first) with heads."""
        values, self.stored = self.numbers(inner * out, 1 / math.sqrt(inner))
        columns = [values[c * inner:(c + 1) * inner] for c in range(out)]
        if heads:
            each, flat = out // heads, []
            for h in range(heads):
                mine = columns[h * each:(h + 1) * each]
                flat += ([x for column in mine for x in column] if self.layout == "out_in"
                         else [mine[c][i] for i in range(inner) for c in range(each)])
            shape = (heads, each, inner) if self.layout == "out_in" else (heads, inner, each)
            text = {"weight": self.written(shape, flat, self.stored)}
        else:
            text = {"weight": self.weight_text(columns, inner)}
        if self.chance(0.5):
            by_heads = heads and self.chance(0.5)
            text["bias"], _ = self.tensor((heads, out // heads) if by_heads else (out,))
        return text

    def build_latents(self, width, key_width, value_width):
        """Latents and shared features of keys. Returns the widths that the weights of queries, keys and values take."""
        spec, names, key_input = self.spec, [], key_width
        if self.chance(0.6):
            names.append("query_latent")
            latent = self.size(self.largest)
            self.weights["query_latent"], width = self.draw_layer(width, latent, 0), latent
        if self.form != "own" and self.chance(0.7):
            names.append("key_latent")
            latent = self.size(self.largest)
            self.weights["key_latent"], key_width, value_width = self.draw_layer(key_width, latent, 0), latent, latent
        if spec.d_k > 1 and self.chance(0.6):
            spec.d_shared = self.random.randint(1, spec.d_k - 1)
            self.weights["key_shared"] = self.draw_layer(key_input, spec.d_shared, 0)
        if names and self.chance(0.6):
            choices = (("type", self.pick("rms", "layer", "l2")), ("eps", self.pick(1e-5, 1e-3, 1)))
            self.options["latent_norm"] = {name: value for name, value in choices if self.chance(0.8)}
            for name, r in (("query_latent", width), ("key_latent", key_width)):
                given = {part: self.tensor((r,))[0] for part in ("weight", "bias") if self.chance(0.6)}
                if name in names and given:
                    self.weights[name + "_norm"] = given
        return width, key_width, value_width

    def build_separate(self, *widths):
        spec = self.spec
        all_by_heads = self.chance(0.3)
        for name, width, heads, d in zip(("query", "key", "value"), widths, (spec.heads, spec.kv_heads, spec.kv_heads),
                                         (spec.d_k, spec.d_k - spec.d_shared, spec.d_v)):
            by_heads = heads if all_by_heads or self.chance(0.1) else 0
            self.weights[name] = self.draw_layer(width, heads * d, by_heads)
        if not all_by_heads or self.chance(0.3):
            self.options["num_heads"], self.options["kv_num_heads"] = spec.heads, spec.kv_heads
            if spec.heads == spec.kv_heads and self.chance(0.7):
                del self.options["kv_num_heads"]

    def build_fused(self, width):
        spec = self.spec
        spec.d_v = spec.d_k
        d, group = spec.d_k, spec.heads // spec.kv_heads
        order = self.pick("stacked", "per_group", "per_head" if group == 1 else "stacked")
        text = self.draw_layer(width, (spec.heads + 2 * spec.kv_heads) * d, 0)
        if order != "stacked" or self.chance(0.3):
            text["order"] = order
        self.weights["qkv"] = text
        self.options["num_heads"], self.options["kv_num_heads"] = spec.heads, spec.kv_heads

    def build_output(self):
        spec = self.spec
        inner = spec.heads * spec.d_v
        out = spec.query.shape[-1] if self.chance(0.6) else self.size(self.largest)
        values, self.stored = self.numbers(inner * out, 1 / math.sqrt(inner))
        columns = [values[c * inner:(c + 1) * inner] for c in range(out)]
        if self.layout == "in_out" and self.chance(0.3):
            flat = [columns[c][i] for i in range(inner) for c in range(out)]
            text = {"weight": self.written((spec.heads, spec.d_v, out), flat, self.stored)}
        else:
            text = {"weight": self.weight_text(columns, inner)}
        spec.output_width = out
        if self.chance(0.5):
            text["bias"], _ = self.tensor((out,))
        self.weights["output"] = text

    # ---- masks ----

    def broadcast_shape(self):
        spec = self.spec
        shape = [size if self.chance(0.6) else 1 for size in (spec.batch, spec.heads, spec.q_len, spec.kv_len)]
        return tuple(shape[self.pick(0, 0, 1, 2, 2, 3):])

    def per_item(self, low, high):
        spec = self.spec
        return [self.random.randint(low, high) for _ in range(spec.batch)]

    def choose_masks(self):
        self.choose_padding()
        if not self.spec.is_recurrent:
            self.choose_pairs()
        elif self.chance(0.2):
            self.masks["causal"] = True

    def choose_padding(self):
        spec, masks = self.spec, self.masks
        if self.chance(0.2):
            shape = (spec.kv_len,) if spec.batch == 1 and self.chance(0.5) else (spec.batch, spec.kv_len)
            masks["padding"] = self.flags(shape, 0.75)
        if self.chance(0.2):
            masks["key_lengths"] = self.integers(self.per_item(0, spec.kv_len))

    def choose_pairs(self):
        """Masks that differ from query to query."""
        spec, masks = self.spec, self.masks
        if self.chance(0.35):
            self.choose_causal()
        if self.chance(0.2):
            shape = self.broadcast_shape()
            masks["attend"] = self.flags(shape, self.pick(0.5, 0.8, 0.95))
            if self.chance(0.1):
                value = self.chance(0.8)
                masks["attend"] = self.pick(value, int(value))
        if self.chance(0.2) and not spec.mechanism:
            shape = self.broadcast_shape()
            values, dtype = self.numbers(math.prod(shape), 1.0)
            if dtype in ("decimal", "float32", "float64", "float16", "bfloat16"):
                values = [-math.inf if self.chance(0.15) else v for v in values]
            masks["bias"] = self.written(shape, values, dtype)
            if self.chance(0.1):
                masks["bias"] = self.pick(0, 1.5, -3)
        if self.chance(0.15):
            masks["query_lengths"] = self.integers(self.per_item(0, spec.q_len))
        if self.chance(0.15):
            reach = [self.pick(None, 0, 1, 2, 5, 10 ** 15, 2 ** 63 - 1) for _ in range(2)]
            masks["window"] = spec.window = reach
        if self.chance(0.15):
            masks["sliding_window"] = spec.sliding = self.pick(1, 2, 3, 7, 2 ** 63 - 1)
        if self.chance(0.15):
            self.choose_documents()
        if self.chance(0.2):
            self.choose_blocks()

    def choose_documents(self):
        spec = self.spec

        def ids(length):
            rows = [sorted(self.random.choices(range(-1, 3), k=length)) for _ in range(spec.batch)]
            if self.chance(0.4):
                rows = [self.random.sample(row, len(row)) for row in rows]
            return rows[0] if self.chance(0.4) else rows

        if spec.q_len == spec.kv_len and self.chance(0.5):
            self.masks["documents"] = ids(spec.q_len)
            return
        self.masks["documents"] = {"query": ids(spec.q_len), "key": ids(spec.kv_len)}

    def choose_blocks(self):
        spec = self.spec
        kind = self.pick("matrix", "matrix", "strided", "longformer", "bigbird", "chunked", "prefix")
        if kind == "matrix":
            self.choose_matrix()
            return
        sent = {"pattern": kind}
        choices = {"size": (1, 2, 3, 64), "window": (0, 1, 2, 40), "stride": (1, 2, 5, 30), "seed": (0, 9, 2 ** 40),
                   "global_tokens": (sorted(self.random.sample(range(spec.kv_len), self.random.randint(
                       0, min(3, spec.kv_len)))),), "global_blocks": (0, 1, 2), "random_blocks": (0, 1, 5)}
        needed = {"strided": ("stride",), "longformer": ("window",), "bigbird": (), "chunked": ("size",), "prefix": ()}
        known = {"strided": ("size", "stride", "window"), "longformer": ("size", "window", "global_tokens"),
                 "bigbird": ("size", "window", "seed", "global_tokens", "global_blocks", "random_blocks"),
                 "chunked": ("size",), "prefix": ()}
        for name in known[kind]:
            if name in needed[kind] or self.chance(0.6):
                sent[name] = self.pick(*choices[name])
        if kind == "prefix":
            lengths = self.per_item(0, spec.kv_len)
            sent["length"] = lengths[0] if spec.batch == 1 and self.chance(0.5) else lengths
        self.masks["blocks"] = sent

    def choose_matrix(self):
        spec = self.spec
        size = [self.pick(1, 2, 3, 17), self.pick(1, 2, 4, 64)]
        shape = (spec.batch if self.chance(0.5) else 1, spec.heads if self.chance(0.5) else 1,
                 -(-spec.q_len // size[0]), -(-spec.kv_len // size[1]))[self.pick(0, 0, 1, 2):]
        self.masks["blocks"] = {"size": size[0] if size[0] == size[1] else size,
                                "attend": self.flags(shape, self.pick(0.3, 0.7))}

    def choose_causal(self):
        self.masks["causal"] = causal = self.pick(True, True, False, {})
        if causal == {}:
            if self.chance(0.6):
                causal["align"] = self.pick("bottom_right", "top_left")
            if self.chance(0.6):
                causal["offset"] = self.pick(self.random.randint(-4, 4), self.per_item(-4, 4))

    # ---- options ----

    def choose_options(self):
        spec, options = self.spec, self.options
        cancels = spec.mechanism and spec.mechanism.get("normalize")
        spec.scale = 1.0 if cancels or spec.start != "query" else 1 / math.sqrt(spec.d_k)
        if self.chance(0.3) and spec.start != "attention":
            options["scale"] = self.pick("none", 0, -0.5, 0.25, 1, -1e-3, 0.0)
            if spec.mechanism and spec.mechanism["type"] == "performer":
                options["scale"] = self.pick("none", 0.25, 1)
            if cancels:
                del options["scale"]  # which would cancel
            else:
                spec.scale = 1.0 if options["scale"] == "none" else float(options["scale"])
        if self.chance(0.2) and not spec.mechanism and spec.start != "attention":
            options["softcap"] = self.pick(0.5, 3, 50.0)
        if spec.start == "query":
            self.choose_turn()
            if not spec.mechanism and self.chance(0.1):
                self.choose_relative_position()
        if not spec.mechanism and spec.start != "attention":
            self.choose_biases()
        if not spec.mechanism and spec.has_value and self.chance(0.15):
            options["head_scale"], _ = self.tensor((spec.heads,), 2.0)
        if spec.is_differential:
            options["differential"], _ = self.tensor((spec.heads // 2,))
        if spec.is_layer:
            self.choose_layer_options()
        if self.chance(0.2) and (spec.is_layer or not spec.mechanism):
            self.choose_dropout()
        if spec.is_layer and not spec.drops_residual() and self.chance(0.3):
            self.choose_network()
        if self.chance(0.3):
            options["format"] = self.pick("nested", "flat", "base64")
        if self.chance(0.3):
            options["digits"] = self.random.randint(1, 17)

    def choose_biases(self):
        spec, options = self.spec, self.options
        if self.chance(0.15):
            options["alibi"] = self.tensor((spec.heads,), 0.3)[0] if self.chance(0.5) else True
        if self.chance(0.15):
            sent = {name: value for name, value in (("bidirectional", self.pick(True, False)),
                                                    ("max_distance", self.pick(20, 1000))) if self.chance(0.7)}
            buckets = self.pick(4, 6, 9, 32)
            sent["table"], _ = self.tensor((buckets, spec.heads))
            options["relative_bias"] = sent
        if self.chance(0.2):
            options["sinks"], spec.has_sinks = self.tensor((spec.heads,), 2.0)[0], True

    def choose_relative_position(self):
        """Terms of the score from tables, or of a layer from an embedding and its weights."""
        spec, sent = self.spec, {}
        half = self.pick(2, 3, 8, 17)
        if self.chance(0.5):
            sent.update(buckets=half, max_distance=half // 2 + self.pick(2, 5, 40))
        elif self.chance(0.5):
            sent["max_distance"] = half
        chosen = self.pick(("key",), ("query",), ("key", "query"))
        width, is_made = self.size(self.largest), spec.is_layer and self.chance(0.7)
        if is_made:
            sent["embedding"], _ = self.tensor((2 * half, width))
        for name in chosen:
            heads = spec.kv_heads if name == "key" else spec.heads
            if is_made:
                self.weights["relative_" + name] = self.draw_layer(width, heads * spec.d_k, self.pick(0, heads))
            else:
                sent[name], _ = self.tensor((2 * half, heads * spec.d_k))
        if "scale" not in self.options:
            spec.scale = 1 / math.sqrt(spec.d_k * (1 + len(chosen)))
        self.options["relative_position"] = sent

    def choose_layer_options(self):
        spec, options = self.spec, self.options
        out = spec.output_width or spec.heads * spec.d_v
        if out == spec.query.shape[-1] and self.chance(0.6):
            options["residual"] = spec.residual = True
        if not self.chance(0.4):
            return
        norm = {}
        known = {"type": ("layer", "rms"), "position": ("post", "pre"), "eps": (1e-5, 1e-6, 1, 1e-3)}
        for name, choices in known.items():
            if self.chance(0.7):
                norm[name] = self.pick(*choices)
        options["norm"] = norm
        spec.norm = {"position": "post", **norm}
        width = spec.query.shape[-1] if spec.norm["position"] == "pre" else out
        given = {name: self.tensor((width,))[0] for name in ("weight", "bias") if self.chance(0.4)}
        if given:
            self.weights["norm"] = given

    def choose_network(self):
        """The feed-forward network of a block."""
        spec = self.spec
        is_parallel = bool((not spec.norm or spec.norm["position"] == "pre") and self.chance(0.4))
        out = spec.output_width or spec.heads * spec.d_v
        width, d_ff = spec.query.shape[-1] if is_parallel else out, self.size(self.largest)
        sent = {"activation": self.pick("relu", "gelu", "gelu_tanh", "quick_gelu", "silu")}
        if self.chance(0.5):
            sent["residual"] = is_parallel or self.chance(0.5)
        if not sent.get("residual", True) and self.chance(0.5):
            out = self.size(self.largest)
        weights = {}
        for name, inner, outputs in (("up", width, d_ff), ("gate", width, d_ff), ("down", d_ff, out)):
            if name != "gate" or self.chance(0.4):
                weights[name] = self.draw_layer(inner, outputs, 0)
        if is_parallel or self.chance(0.2):
            sent["parallel"] = is_parallel
        if self.chance(0.5):
            sent["position"] = "pre" if is_parallel else self.pick("pre", "post")
        outer = "pre" if is_parallel else spec.norm["position"] if spec.norm else "post"
        self.choose_norm_of_network(sent, weights, out if sent.get("position", outer) == "post" else width)
        spec.has_network = True
        self.weights["feed_forward"], self.options["feed_forward"] = weights, sent

    def choose_norm_of_network(self, sent, weights, width):
        """width: that of the rows which the norm reads."""
        own = {}
        for name, choices in (("type", ("layer", "rms")), ("eps", (1e-5, 1, 1e-3))):
            if self.chance(0.5):
                own[name] = self.pick(*choices)
        given = {name: self.tensor((width,))[0] for name in ("weight", "bias") if self.chance(0.4)}
        if self.chance(0.5):
            sent["norm"] = own
        if given:
            weights["norm"] = given

    def choose_dropout(self):
        spec = self.spec
        spec.dropout = {"p": self.pick(0, 0.1, 0.5, 0.9, 1), "seed": self.random.randint(0, 2 ** 63 - 1),
                        "where": self.pick(["attention"], ["residual"], ["attention", "residual"], [])}
        if not spec.is_layer:
            spec.dropout["where"] = ["attention"]
        if spec.mechanism:
            spec.dropout["where"] = ["residual"]
        sent = dict(spec.dropout)
        if sent["where"] == ["attention"] and self.chance(0.5):
            del sent["where"]
        if self.chance(0.3):
            del sent["seed"]
        self.options["dropout"] = sent
        spec.training = self.chance(0.7)
        if spec.training or self.chance(0.3):
            self.options["training"] = spec.training

    def choose_return(self):
        spec = self.spec
        possible = [step for step in STEPS if not (spec.mechanism and step in SOFTMAX_ALONE) and not spec.lacks(step) and
                    (step != "projected" or spec.output_width) and (step != "residual" or spec.residual) and
                    (step != "dropped" or spec.drops_weights()) and (step != "gated" or spec.has_gate) and
                    (step != "contribution" or spec.output_width and not spec.has_gate) and
                    (step not in PRESENT if spec.is_recurrent else step != "present_state") and
                    (step not in ("attention_output", "feed_forward") or spec.has_network) and
                    (step != "sink" or spec.has_sinks) and (step != "difference" or spec.is_differential) and
                    (step not in ("query_latent", "key_latent") or step in getattr(self, "weights", ())) and (step not in ("q_rotated", "k_rotated") or spec.turns)]
        some = self.random.sample(possible, self.random.randint(1, len(possible)))
        self.possible = possible
        self.wanted = possible if self.chance(0.5) else some
        if spec.drops_weights() and "dropped" not in self.wanted:
            self.wanted = [*self.wanted, "dropped"]
        self.options["return"] = self.wanted
        self.kept = {}
        for name, size in (("heads", spec.heads), ("queries", spec.q_len), ("keys", spec.kv_len)):
            self.kept[name] = list(range(size))
            if self.chance(0.15) and not spec.drops_weights():
                self.options[name], self.kept[name] = self.selection(size)

    def selection(self, size):
        if self.chance(0.4):
            first = self.random.randrange(size)
            last = self.random.randrange(first, size)
            sent = self.range_of(first, last, size)
            return [sent] if isinstance(sent, list) else sent, list(range(first, last + 1))
        items = self.random.sample(range(size), self.random.randint(1, size))
        sent = [self.range_of(item, item, size) if self.chance(0.2) else self.index(item, size) for item in items]
        return sent, items

    def index(self, index, size):
        return index - size if self.chance(0.2) else index

    def range_of(self, first, last, size):
        ends = [self.index(first, size), self.index(last, size)]
        return self.random.choice([f"{first}-{last}", {"from": ends[0], "to": ends[1]}, ends])

    def hide_nan(self):
        """NaN where the mask hides a key from every query of every head: it may reach nothing."""
        spec = self.spec
        self.has_nan = False
        if self.form == "self" or spec.past_len or self.chance(0.3) or \
                not {"padding", "key_lengths", "documents", "blocks"} & set(self.masks):
            return
        position = first_position(self.options.get("profile"), self.body["inputs"])
        mask = Mask(plain_values(self.masks), (spec.batch, spec.heads, spec.q_len, spec.kv_len), position)
        hidden = [(b, j) for b in range(spec.batch) for j in range(spec.kv_len)
                  if not any(mask.allows(b, h, i, j) for h in range(spec.heads) for i in range(spec.q_len))]
        for name in ("key", "value"):
            form = self.body["inputs"].get(name)
            if hidden and isinstance(form, list):
                self.has_nan = True
                for b, j in hidden:
                    batch = form if spec.rank == 2 else form[b]
                    if spec.rank == 4:
                        for rows in batch:
                            rows[j] = [self.pick(math.nan, math.inf, -math.inf) for _ in rows[j]]
                    else:
                        batch[j] = [self.pick(math.nan, math.inf, -math.inf) for _ in batch[j]]
        if self.has_nan:
            unread = ("key_latent", "k", "v", "k_rotated", "present_key", "present_value")
            self.possible = [step for step in self.possible if step not in unread]
            self.wanted = [step for step in self.wanted if step not in unread] or ["attention"]
            self.options["return"] = self.wanted


def rounded(tree, compute):
    """The request with the numbers of its tensors as the server computes with them."""
    if isinstance(tree, dict) and {"data", "base64"} & set(tree):
        return Tensor.from_json(tree).map(lambda item: to_type(item, compute) if isinstance(item, float) else item).flat()
    if isinstance(tree, dict):
        return {name: item if name == "scaling" else rounded(item, compute) for name, item in tree.items()}
    if isinstance(tree, list):
        return [to_type(item, compute) if isinstance(item, float) else rounded(item, compute) for item in tree]
    return tree


def nested(shape, values):
    if not shape:
        return values[0]
    step = len(values) // shape[0]
    return [nested(shape[1:], values[at * step:(at + 1) * step]) for at in range(shape[0])]


def text_of(tree):
    """JSON with the three words for what it cannot write."""
    if isinstance(tree, float):
        if math.isfinite(tree):
            return repr(tree)
        return '"NaN"' if math.isnan(tree) else '"Infinity"' if tree > 0 else '"-Infinity"'
    if isinstance(tree, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{text_of(value)}" for name, value in tree.items()) + "}"
    if isinstance(tree, list):
        return "[" + ",".join(map(text_of, tree)) + "]"
    return json.dumps(tree)
