"""
models.py: five kinds of models by their equations in plain Python, with interventions: the reference of tests/api/models/questions.py. Rows are
lists of numbers; a place has one list of rows for each head, and one where there are no heads.

Sources: Devlin et al. 2019 (bert), Radford et al. 2019 (gpt2), Touvron et al. 2023 and Jiang et al. 2023 (llama, mistral), Raffel et
al. 2020 (t5), Dosovitskiy et al. 2021 (vit).
"""

import copy
import math
import operator


# ---- interventions ----

def chosen(selection, count):
    """The indices that a selection names; a negative one counts from the end."""
    if selection is None:
        return list(range(count))
    found = []
    for piece in selection:
        first, last = (piece["from"], piece["to"]) if isinstance(piece, dict) else (piece, piece)
        found += range(first % count if first < 0 else first, (last % count if last < 0 else last) + 1)
    return found


class Edits:
    """The interventions of a request, while one item after another runs."""

    def __init__(self, interventions):
        self.list, self.kept, self.item = interventions, {}, None

    def are_of(self, part, at, layer, layers):
        for number, edit in enumerate(self.list):
            if edit.get("part") == part and edit["at"] == at and layer in chosen(edit.get("layers"), layers):
                yield number, edit

    def changes(self, edit):
        """Whether the item is changed; those behind "from" are all others by default."""
        if "items" in edit:
            return self.item in edit["items"]
        return self.item != edit.get("from")

    def make(self, part, at, layer, layers, heads):
        """Changes the rows of heads in place. Numbers for other items are kept at the end."""
        for number, edit in self.are_of(part, at, layer, layers):
            if self.changes(edit) and edit["do"] != "mask":
                for head in chosen(edit.get("heads"), len(heads)):
                    self.change(edit, heads[head], self.kept.get((number, layer, head)))
        for number, edit in self.are_of(part, at, layer, layers):
            if edit.get("from") == self.item:
                for head, rows in enumerate(heads):
                    self.kept[number, layer, head] = copy.deepcopy(rows)

    @staticmethod
    def change(edit, rows, source):
        queries = chosen(edit.get("queries"), len(rows))
        columns = chosen(edit.get("keys"), len(rows[0]))
        if edit["do"] == "mean":
            mean = [sum(row[c] for row in rows) / len(rows) for c in range(len(rows[0]))]
        if "from" in edit:
            there = chosen(edit.get("from_queries", edit.get("queries")), len(source))
        for i, query in enumerate(queries):
            for c, column in enumerate(columns):
                old, value, factor = rows[query][column], edit.get("value"), edit.get("factor", 1)
                rows[query][column] = {
                    "zero": lambda: 0, "mean": lambda: mean[column], "scale": lambda: factor * old,
                    "add": lambda: old + factor * value[c],
                    "replace": lambda: value[c] if value else source[there[i]][column]}[edit["do"]]()

    def hidden_edges(self, part, layer, layers, heads, queries, keys):
        """{(head, query, key)} that a mask takes out."""
        return {(h, i, j) for _, edit in self.are_of(part, "attention", layer, layers)
                if edit["do"] == "mask" and self.changes(edit) for h in chosen(edit.get("heads"), heads)
                for i in chosen(edit.get("queries"), queries) for j in chosen(edit.get("keys"), keys)}


# ---- pieces ----

def linear(rows, weight, bias=None):
    return [[sum(map(operator.mul, row, column)) + (bias[i] if bias else 0) for i, column in enumerate(weight)] for row in rows]


def added(a, b):
    return [[x + y for x, y in zip(p, q)] for p, q in zip(a, b)]


def layer_norm(rows, gain, shift, eps):
    done = []
    for row in rows:
        mean = sum(row) / len(row)
        spread = math.sqrt(sum((x - mean) ** 2 for x in row) / len(row) + eps)
        done.append([(x - mean) / spread * g + s for x, g, s in zip(row, gain, shift)])
    return done


def rms_norm(rows, gain, eps):
    return [[x / math.sqrt(sum(y * y for y in row) / len(row) + eps) * g for x, g in zip(row, gain)] for row in rows]


def gelu(x):
    return x * (1 + math.erf(x / math.sqrt(2))) / 2


def gelu_tanh(x):
    return x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))) / 2


def each(function, rows):
    return [[function(x) for x in row] for row in rows]


def rotated(row, position, theta):
    half = len(row) // 2
    turns = [position * theta ** (-2 * i / len(row)) for i in range(half)]
    return [row[i] * math.cos(turns[i % half]) + (-row[i + half] if i < half else row[i - half]) * math.sin(turns[i % half])
            for i in range(len(row))]


def softmax(row):
    top = max(row)
    if top == -math.inf:
        return [0.0] * len(row)
    powers = [math.exp(x - top) for x in row]
    return [power / sum(powers) for power in powers]


def split(rows, width):
    return [[row[at:at + width] for row in rows] for at in range(0, len(rows[0]), width)]


class Run:
    """One item: what the model of the kind gives."""

    def __init__(self, model, edits, item):
        self.model, self.edits, self.config = model, edits, model.config
        self.maps, self.hidden = {}, {}
        edits.item = item

    def weight(self, name):
        return self.model.weights.get(name)

    def linear(self, rows, name):
        return linear(rows, self.weight(f"{name}.weight"), self.weight(f"{name}.bias"))

    def edited(self, part, at, layer, layers, rows):
        """Rows of tokens."""
        heads = [rows]
        self.edits.make(part, at, layer, layers, heads)
        return heads[0]

    def state(self, part, layer, layers, rows):
        rows = self.edited(part, "hidden", layer, layers + 1, rows)
        self.hidden.setdefault(part, []).append(copy.deepcopy(rows))
        return rows

    def attend(self, part, layer, layers, q, k, v, scale, allows=None, bias=None):
        """Heads of queries, keys and values to the rows that the output projection reads."""
        heads, keys, group = len(q), len(k[0]), len(q) // len(k)
        hidden = self.edits.hidden_edges(part, layer, layers, heads, len(q[0]), keys)
        maps = [[softmax([-math.inf if (allows and not allows(i, j)) or (h, i, j) in hidden else
                          scale * sum(map(operator.mul, query, k[h // group][j])) + (bias(h, i, j) if bias else 0)
                          for j in range(keys)]) for i, query in enumerate(q[h])] for h in range(heads)]
        self.edits.make(part, "attention", layer, layers, maps)
        self.maps.setdefault(part, []).append(maps)
        context = [[[sum(w * v[h // group][j][f] for j, w in enumerate(row) if w != 0) for f in range(len(v[0][0]))] for row in maps[h]]
                   for h in range(heads)]
        self.edits.make(part, "context", layer, layers, context)
        return [[x + 0.0 for h in range(heads) for x in context[h][i]] for i in range(len(q[0]))]


# ---- kinds ----

def bert(run, ids, _):
    layers, heads = run.config["num_hidden_layers"], run.config["num_attention_heads"]
    def norm(rows, name):
        return layer_norm(rows, run.weight(f"{name}.gamma"), run.weight(f"{name}.beta"), 1e-12)
    place, at = "bert.embeddings", "bert.encoder.layer"
    words, positions = run.weight(f"{place}.word_embeddings.weight"), run.weight(f"{place}.position_embeddings.weight")
    kinds = run.weight(f"{place}.token_type_embeddings.weight")
    x = norm([[a + b + c for a, b, c in zip(words[token], positions[i], kinds[0])] for i, token in enumerate(ids)], f"{place}.LayerNorm")
    x = run.state(None, 0, layers, x)
    for n in range(layers):
        q, k, v = (split(run.linear(x, f"{at}.{n}.attention.self.{role}"), len(x[0]) // heads) for role in ("query", "key", "value"))
        rows = run.attend(None, n, layers, q, k, v, 1 / math.sqrt(len(q[0][0])))
        branch = run.edited(None, "attention_output", n, layers, run.linear(rows, f"{at}.{n}.attention.output.dense"))
        x = norm(added(x, branch), f"{at}.{n}.attention.output.LayerNorm")
        branch = run.linear(each(gelu, run.linear(x, f"{at}.{n}.intermediate.dense")), f"{at}.{n}.output.dense")
        x = norm(added(x, run.edited(None, "feed_forward", n, layers, branch)), f"{at}.{n}.output.LayerNorm")
        x = run.state(None, n + 1, layers, x)
    return x


def gpt2(run, ids, _):
    layers, heads = run.config["n_layer"], run.config["n_head"]
    def norm(rows, name):
        return layer_norm(rows, run.weight(f"{name}.weight"), run.weight(f"{name}.bias"), 1e-5)
    def conv(rows, name):
        return linear(rows, list(zip(*run.weight(f"{name}.weight"))), run.weight(f"{name}.bias"))
    x = [[a + b for a, b in zip(run.weight("wte.weight")[token], run.weight("wpe.weight")[i])] for i, token in enumerate(ids)]
    x = run.state(None, 0, layers, x)
    for n in range(layers):
        d = len(x[0])
        fused = conv(norm(x, f"h.{n}.ln_1"), f"h.{n}.attn.c_attn")
        q, k, v = (split([row[at * d:(at + 1) * d] for row in fused], d // heads) for at in range(3))
        rows = run.attend(None, n, layers, q, k, v, 1 / math.sqrt(d // heads), lambda i, j: j <= i)
        x = added(x, run.edited(None, "attention_output", n, layers, conv(rows, f"h.{n}.attn.c_proj")))
        branch = conv(each(gelu_tanh, conv(norm(x, f"h.{n}.ln_2"), f"h.{n}.mlp.c_fc")), f"h.{n}.mlp.c_proj")
        x = run.state(None, n + 1, layers, added(x, run.edited(None, "feed_forward", n, layers, branch)))
    return norm(x, "ln_f")


def llama(run, ids, _):
    config, layers = run.config, run.config["num_hidden_layers"]
    width, window = config["hidden_size"] // config["num_attention_heads"], config.get("sliding_window")
    def norm(rows, name):
        return rms_norm(rows, run.weight(f"model.{name}.weight"), 1e-6)
    x = run.state(None, 0, layers, [list(run.weight("model.embed_tokens.weight")[token]) for token in ids])
    for n in range(layers):
        at = f"model.layers.{n}"
        y = norm(x, f"layers.{n}.input_layernorm")
        q, k, v = (split(run.linear(y, f"{at}.self_attn.{role}_proj"), width) for role in "qkv")
        q, k = ([[rotated(row, i, 10000.0) for i, row in enumerate(head)] for head in heads] for heads in (q, k))
        rows = run.attend(None, n, layers, q, k, v, 1 / math.sqrt(width), lambda i, j: j <= i and (not window or j > i - window))
        x = added(x, run.edited(None, "attention_output", n, layers, run.linear(rows, f"{at}.self_attn.o_proj")))
        y = norm(x, f"layers.{n}.post_attention_layernorm")
        gate, up = (run.linear(y, f"{at}.mlp.{role}_proj") for role in ("gate", "up"))
        inner = [[g / (1 + math.exp(-g)) * u for g, u in zip(*pair)] for pair in zip(gate, up)]
        branch = run.edited(None, "feed_forward", n, layers, run.linear(inner, f"{at}.mlp.down_proj"))
        x = run.state(None, n + 1, layers, added(x, branch))
    return norm(x, "norm")


def t5_bucket(distance, buckets, furthest, both):
    """distance: the key's position less the query's."""
    if both:
        buckets //= 2
    shift, far = (buckets if both and distance > 0 else 0), abs(distance) if both else max(-distance, 0)
    if far < buckets // 2:
        return shift + far
    return shift + min(buckets - 1, buckets // 2 + int(math.log(far / (buckets // 2)) / math.log(furthest / (buckets // 2)) * (buckets - buckets // 2)))


def t5_stack(run, part, ids, encoded):
    config, is_decoder = run.config, encoded is not None
    layers = config["num_decoder_layers" if is_decoder else "num_layers"]
    table = run.weight(f"{part}.block.0.layer.0.SelfAttention.relative_attention_bias.weight")
    def norm(rows, name):
        return rms_norm(rows, run.weight(f"{name}.weight"), 1e-6)
    def bias(h, i, j):
        return table[t5_bucket(j - i, config["relative_attention_num_buckets"], config["relative_attention_max_distance"], not is_decoder)][h]
    def attended(x, n, name, place, memory=None):
        y = norm(x, f"{name}.layer_norm")
        kind, of = ("EncDecAttention", memory) if memory else ("SelfAttention", y)
        q = split(run.linear(y, f"{name}.{kind}.q"), config["d_kv"])
        k, v = (split(run.linear(of, f"{name}.{kind}.{role}"), config["d_kv"]) for role in "kv")
        rows = run.attend(place, n, layers, q, k, v, 1, (lambda i, j: j <= i) if is_decoder and not memory else None, None if memory else bias)
        return added(x, run.edited(place, "attention_output", n, layers, run.linear(rows, f"{name}.{kind}.o")))
    x = run.state(part, 0, layers, [list(run.weight("shared.weight")[token]) for token in ids])
    for n in range(layers):
        at = f"{part}.block.{n}.layer"
        x = attended(x, n, f"{at}.0", part)
        if is_decoder:
            x = attended(x, n, f"{at}.1", "cross", encoded)
        last = f"{at}.{2 if is_decoder else 1}"
        y = each(lambda z: max(z, 0.0), run.linear(norm(x, f"{last}.layer_norm"), f"{last}.DenseReluDense.wi"))
        branch = run.edited(part, "feed_forward", n, layers, run.linear(y, f"{last}.DenseReluDense.wo"))
        x = run.state(part, n + 1, layers, added(x, branch))
    return norm(x, f"{part}.final_layer_norm")


def t5(run, ids, target):
    return t5_stack(run, "decoder", target, t5_stack(run, "encoder", ids, None))


def vit(run, pixels, _):
    layers, heads, at = run.config["num_hidden_layers"], run.config["num_attention_heads"], "vit.embeddings"
    def norm(rows, name):
        return layer_norm(rows, run.weight(f"vit.{name}.weight"), run.weight(f"vit.{name}.bias"), 1e-12)
    size, side = run.config["patch_size"], run.config["image_size"] // run.config["patch_size"]
    patches = [[plane[size * r + y][size * c + x] for plane in pixels for y in range(size) for x in range(size)]
               for r in range(side) for c in range(side)]
    kernel = [[x for plane in one for row in plane for x in row] for one in run.weight(f"{at}.patch_embeddings.projection.weight")]
    x = [list(run.weight(f"{at}.cls_token")[0][0])] + linear(patches, kernel, run.weight(f"{at}.patch_embeddings.projection.bias"))
    x = run.state(None, 0, layers, added(x, run.weight(f"{at}.position_embeddings")[0]))
    for n in range(layers):
        at = f"vit.encoder.layer.{n}"
        y = norm(x, f"encoder.layer.{n}.layernorm_before")
        q, k, v = (split(run.linear(y, f"{at}.attention.attention.{role}"), len(x[0]) // heads) for role in ("query", "key", "value"))
        rows = run.attend(None, n, layers, q, k, v, 1 / math.sqrt(len(q[0][0])))
        x = added(x, run.edited(None, "attention_output", n, layers, run.linear(rows, f"{at}.attention.output.dense")))
        y = each(gelu, run.linear(norm(x, f"encoder.layer.{n}.layernorm_after"), f"{at}.intermediate.dense"))
        x = run.state(None, n + 1, layers, added(x, run.edited(None, "feed_forward", n, layers, run.linear(y, f"{at}.output.dense"))))
    return norm(x, "layernorm")


KINDS = {"bert": bert, "gpt2": gpt2, "llama": llama, "mistral": llama, "t5": t5, "vit": vit}


class Model:
    """weights: as tensor_file.read gives them."""

    def __init__(self, config, weights):
        def nested(shape, numbers):
            if len(shape) < 2:
                return [float(number) for number in numbers]
            step = len(numbers) // shape[0]
            return [nested(shape[1:], numbers[i * step:(i + 1) * step]) for i in range(shape[0])]
        self.config = config
        self.weights = {name: nested(shape, numbers) for name, (_, shape, numbers) in weights.items()}

    def run(self, inputs, targets, interventions):
        """[(run, output)] of the items, each behind those that it has numbers from."""
        edits, done = Edits(interventions), {}
        while len(done) < len(inputs):
            for item, one in enumerate(inputs):
                edits.item = item
                if item in done or any(edits.changes(edit) and edit.get("from", item) not in (item, *done) for edit in interventions):
                    continue
                run = Run(self, edits, item)
                done[item] = run, KINDS[self.config["model_type"]](run, one, targets[item] if targets else None)
        return [done[item] for item in range(len(inputs))]
