"""
attribution.py: what each part of a model adds to the scores of words, against its equations in plain Python: parts go forward
through everything that follows them, with what multiplies held at the numbers of the run. The forward pass is reference/models.py.

Sources: those of reference/models.py, and Riviere et al., "Gemma 2" (2024).
"""

import copy
import json
import math
import random
import struct

import questions
import tensor_file
from asking import post, refusal
from questions import RAGGED, flat, near
from reference import models as edited
from reference.models import added, each, gelu, linear, rms_norm, rotated, softmax, split
from suite import registry

CHECKS = []
check = registry(CHECKS)


class Record(edited.Edits):
    """Keeps the rows of every place while a model runs."""

    def __init__(self, interventions):
        super().__init__(interventions)
        self.rows = {}

    def make(self, part, at, layer, layers, heads):
        super().make(part, at, layer, layers, heads)
        self.rows[at, part, layer] = copy.deepcopy(heads)


# ---- one more kind: norms of branches, and caps of scores ----

def gains(weight):
    """1 + w in float32, as transformers and attnd have them."""
    return struct.unpack(f"{len(weight)}f", struct.pack(f"{len(weight)}f", *(1 + w for w in weight)))


def gemma2(run, ids, _):
    config, layers = run.config, run.config["num_hidden_layers"]
    width, cap = config["head_dim"], config["attn_logit_softcapping"]
    def norm(rows, name):
        return rms_norm(rows, gains(run.weight(f"model.{name}.weight")), config["rms_norm_eps"])
    def attend(n, q, k, v, window):
        group = len(q) // len(k)
        def score(h, i, j):
            if j > i or (window and j <= i - window):
                return -math.inf
            z = sum(a * b for a, b in zip(q[h][i], k[h // group][j])) / math.sqrt(config["query_pre_attn_scalar"])
            return cap * math.tanh(z / cap)
        count = len(q[0])
        maps = [[softmax([score(h, i, j) for j in range(count)]) for i in range(count)] for h in range(len(q))]
        context = [[[sum(row[j] * v[h // group][j][f] for j in range(count)) for f in range(width)] for row in maps[h]] for h in range(len(q))]
        run.edits.make(None, "context", n, layers, context)
        return [[x for head in context for x in head[i]] for i in range(count)]
    scale = math.sqrt(config["hidden_size"])
    x = run.state(None, 0, layers, [[scale * number for number in run.weight("model.embed_tokens.weight")[token]] for token in ids])
    for n in range(layers):
        at = f"layers.{n}"
        y = norm(x, f"{at}.input_layernorm")
        q, k, v = (split(run.linear(y, f"model.{at}.self_attn.{role}_proj"), width) for role in "qkv")
        q, k = ([[rotated(row, i, config["rope_theta"]) for i, row in enumerate(head)] for head in heads] for heads in (q, k))
        window = config["sliding_window"] if config["layer_types"][n] == "sliding_attention" else None
        branch = norm(run.linear(attend(n, q, k, v, window), f"model.{at}.self_attn.o_proj"), f"{at}.post_attention_layernorm")
        x = added(x, run.edited(None, "attention_output", n, layers, branch))
        y = norm(x, f"{at}.pre_feedforward_layernorm")
        gate, up = (run.linear(y, f"model.{at}.mlp.{role}_proj") for role in ("gate", "up"))
        inner = [[a * b for a, b in zip(*pair)] for pair in zip(each(edited.gelu_tanh, gate), up)]
        branch = norm(run.linear(inner, f"model.{at}.mlp.down_proj"), f"{at}.post_feedforward_layernorm")
        x = run.state(None, n + 1, layers, added(x, run.edited(None, "feed_forward", n, layers, branch)))
    return norm(x, "norm")


edited.KINDS["gemma2"] = gemma2


# ---- parts ----

def held(part, row, gain, eps, centred):
    """A part of a row through a norm whose factor is that of the row."""
    mean, of_part = (sum(row) / len(row), sum(part) / len(part)) if centred else (0, 0)
    factor = 1 / math.sqrt(sum((x - mean) ** 2 for x in row) / len(row) + eps)
    return [(x - of_part) * factor * g for x, g in zip(part, gain)]


class Kind:
    """How the parts of a kind go on; of most, a branch is added as it is, and nothing follows it but the final norm."""

    def __init__(self, run):
        self.run, self.w, self.config, self.part, self.crosses = run, run.weight, run.config, None, []

    def branch(self, n, parts, row):
        return parts

    def behind(self, n, role, parts, row):
        """Behind the sum of attention or of the network; row is that sum."""
        return parts, row


class Bert(Kind):
    layers, heads = "num_hidden_layers", "num_attention_heads"

    def output(self, n, part):
        return self.w(f"bert.encoder.layer.{n}.attention.output.dense.weight")

    def behind(self, n, role, parts, row):
        at = f"bert.encoder.layer.{n}.{'attention.' if role == 'attention' else ''}output.LayerNorm"
        gain, shift = self.w(f"{at}.gamma"), self.w(f"{at}.beta")
        return {name: held(part, row, gain, 1e-12, True) for name, part in parts.items()}, edited.layer_norm([row], gain, shift, 1e-12)[0]

    def scores(self, parts, row, output):
        at = "cls.predictions.transform"
        inner = linear([output], self.w(f"{at}.dense.weight"), self.w(f"{at}.dense.bias"))[0]
        active = each(gelu, [inner])[0]
        gain, shift = self.w(f"{at}.LayerNorm.gamma"), self.w(f"{at}.LayerNorm.beta")
        normed = edited.layer_norm([active], gain, shift, 1e-12)
        passed = {}
        for name, part in parts.items():
            part = [x * a / z for x, a, z in zip(linear([part], self.w(f"{at}.dense.weight"))[0], active, inner)]
            passed[name] = held(part, active, gain, 1e-12, True)
        table = self.w("bert.embeddings.word_embeddings.weight")
        return passed, linear(normed, table, self.w("cls.predictions.bias"))[0], table, 1


class Gpt2(Kind):
    layers, heads = "n_layer", "n_head"

    def output(self, n, part):
        return list(zip(*self.w(f"h.{n}.attn.c_proj.weight")))

    def scores(self, parts, row, output):
        table = self.w("wte.weight")
        return {name: held(part, row, self.w("ln_f.weight"), 1e-5, True) for name, part in parts.items()}, linear([output], table)[0], table, 1


class Llama(Kind):
    layers, heads = "num_hidden_layers", "num_attention_heads"

    def output(self, n, part):
        return self.w(f"model.layers.{n}.self_attn.o_proj.weight")

    def gain(self, name):
        return self.w(f"model.{name}.weight")

    def scores(self, parts, row, output):
        table = self.w("lm_head.weight") or self.w("model.embed_tokens.weight")
        return {name: held(part, row, self.gain("norm"), 1e-6, False) for name, part in parts.items()}, linear([output], table)[0], table, 1


class Gemma2(Llama):
    def gain(self, name):
        return gains(self.w(f"model.{name}.weight"))

    def branch(self, n, parts, row):
        return {name: held(part, row, self.gain(f"layers.{n}.post_attention_layernorm"), 1e-6, False) for name, part in parts.items()}

    def scores(self, parts, row, output):
        parts, scores, table, _ = super().scores(parts, row, output)
        cap = self.config["final_logit_softcapping"]
        return parts, [cap * math.tanh(z / cap) for z in scores], table, lambda word: cap * math.tanh(scores[word] / cap) / scores[word]


class T5(Kind):
    layers, heads = "num_decoder_layers", "num_heads"

    def __init__(self, run):
        super().__init__(run)
        self.part, self.crosses = "decoder", ["cross"]

    def output(self, n, part):
        return self.w(f"decoder.block.{n}.layer.{'0.SelfAttention' if part == 'decoder' else '1.EncDecAttention'}.o.weight")

    def scores(self, parts, row, output):
        scale = self.config["d_model"] ** -0.5
        table = [[scale * x for x in word] for word in self.w("shared.weight")]
        gain = self.w("decoder.final_layer_norm.weight")
        return {name: held(part, row, gain, 1e-6, False) for name, part in parts.items()}, linear([output], table)[0], table, 1


KINDS = {"bert": Bert, "gpt2": Gpt2, "mistral": Llama, "gemma2": Gemma2, "t5": T5}


def explain(run, rows, i, output, words):
    """{part: what it adds to the score of each word}, of token i, and the scores."""
    kind = KINDS[run.config["model_type"]](run)
    layers, heads = run.config[kind.layers], run.config[kind.heads]
    row = rows["hidden", kind.part, 0][0][i]
    parts = {"embedding": row}
    for n in range(layers):
        for place in [kind.part, *kind.crosses]:
            weight, context = kind.output(n, place), rows["context", place, n]
            width = len(weight[0]) // heads
            own = {("heads", place, n, h): linear([context[h][i]], [line[h * width:(h + 1) * width] for line in weight])[0] for h in range(heads)}
            parts.update(kind.branch(n, own, [sum(numbers) for numbers in zip(*own.values())]))
            row = added([row], [rows["attention_output", place, n][0][i]])[0]
            parts, row = kind.behind(n, "attention", parts, row)
        parts["feed_forward", n] = rows["feed_forward", kind.part, n][0][i]
        row = added([row], [parts["feed_forward", n]])[0]
        parts, row = kind.behind(n, "feed_forward", parts, row)
    parts, scores, table, factor = kind.scores(parts, row, output)
    told = {name: [(factor(word) if callable(factor) else factor) * sum(a * b for a, b in zip(part, table[word])) for word in words]
            for name, part in parts.items()}
    return told, [scores[word] for word in words]


FOLDERS = {}


def stage(folder):
    """questions.py has put the models there. Not all of its interventions are in gemma2 above, so that it is not in its list."""
    FOLDERS["edited-gemma2"] = folder / "edited-gemma2"


def reference(model):
    folder = {**questions.WEIGHED, **FOLDERS}[model]
    config = json.loads((folder / "config.json").read_text())
    return edited.Model(config, tensor_file.read((folder / "model.safetensors").read_bytes())[0])


MODELS = {"bert": RAGGED, "whole-gpt2": RAGGED, "edited-mistral": RAGGED, "edited-gemma2": RAGGED,
          "whole-t5": {**RAGGED, "target_ids": [[0, 4, 9], [0], [0, 4, 9, 7]]}}
WANTED = {"return": ["attribution", "logits"]}


def hold(where, got, wanted, tolerance):
    assert all(near(a, b, tolerance) for a, b in zip(got, wanted, strict=True)), f"{where}: {got}, expected {wanted}"


def hold_parts(where, told, item, i, parts, scores, tolerance):
    for name, wanted in parts.items():
        if name == "embedding":
            got = told["embedding"][item][i]
        elif name[0] == "feed_forward":
            got = told["feed_forward"][name[1]][item][i]
        else:
            got = told["cross_heads" if name[1] == "cross" else "heads"][name[2]][item][name[3]][i]
        hold(f"{where}: {name}", got, wanted, tolerance)
    hold(f"{where}: bias", told["bias"][item][i], [score - sum(adds) for score, adds in zip(scores, zip(*parts.values()))], tolerance)


def explained(model, inputs, words, interventions=()):
    """{(item, token): (parts, scores)}"""
    oracle, told = reference(model), {}
    for item, ids in enumerate(inputs["ids"]):
        record = Record(list(interventions))
        run = edited.Run(oracle, record, item)
        output = edited.KINDS[oracle.config["model_type"]](run, ids, inputs["target_ids"][item] if "target_ids" in inputs else None)
        for i, row in enumerate(output):
            told[item, i] = explain(run, record.rows, i, row, words)
    return told


@check
def parts_are_those_of_the_equations(client, _):
    words = [7, 3, 41]
    for model, inputs in MODELS.items():
        wanted = explained(model, inputs, words)
        for compute, tolerance in (("float64", 1e-10), ("float32", 1e-4)):
            outputs = post(client, model, inputs, words=words, compute=compute, **WANTED)["outputs"]
            assert ("cross_heads" in outputs["attribution"]) == ("t5" in model)
            for (item, i), (parts, scores) in wanted.items():
                hold(f"{model} scores", [outputs["logits"][item][i][word] for word in words], scores, tolerance)
                hold_parts(f"{model} {compute} item {item} token {i}", outputs["attribution"], item, i, parts, scores, tolerance)


@check
def parts_follow_interventions(client, _):
    """Heads and networks as they are changed; what is changed behind them is part of the bias."""
    for model, inputs in MODELS.items():
        part = {"part": "decoder"} if "t5" in model else {}
        made = [{"at": "context", "do": "scale", "factor": 2, "layers": [1], "heads": [1], "queries": [0], **part},
                {"at": "feed_forward", "do": "scale", "factor": -1, "layers": [0], **part},
                {"at": "attention_output", "do": "scale", "factor": 0.5, "layers": [0], "queries": [-1], **part},
                {"at": "hidden", "do": "scale", "factor": 1.5, "layers": [0], **part}]
        outputs = post(client, model, inputs, words=[7], compute="float64", interventions=made, **WANTED)["outputs"]
        for (item, i), (parts, scores) in explained(model, inputs, [7], made).items():
            hold_parts(f"{model} item {item} token {i}", outputs["attribution"], item, i, parts, scores, 1e-10)


@check
def a_selection_shows_the_same_numbers(client, _):
    for model, inputs in MODELS.items():
        whole = post(client, model, inputs, words=[7, 3], **WANTED)
        part = post(client, model, inputs, words=[7, 3], layers=[1, 0], heads=[2, 0], queries=[1, 0], **WANTED)
        told, shown = whole["outputs"]["attribution"], part["outputs"]["attribution"]
        names = [name for name in ("heads", "cross_heads") if name in told]
        for name in names:
            assert shown[name] == [[[[rows[h][i] for i in (1, 0)] for h in (2, 0)] for rows in told[name][layer]] for layer in (1, 0)], (model, name)
        assert shown["feed_forward"] == [[[rows[i] for i in (1, 0)] for rows in told["feed_forward"][layer]] for layer in (1, 0)], model
        for name in ("embedding", "bias"):
            assert shown[name] == [[rows[i] for i in (1, 0)] for rows in told[name]], (model, name)
        batch, longest = 3, len(told["bias"][0])
        assert part["shapes"]["attribution"] == [2, batch, 2, 2, 2] and part["shapes"]["attribution.feed_forward"] == [2, batch, 2, 2], part["shapes"]
        assert whole["shapes"]["attribution.bias"] == [batch, longest, 2], whole["shapes"]
        plain = post(client, model, inputs, **{"return": ["logits"]})
        assert plain["outputs"]["logits"] == whole["outputs"]["logits"], model


@check
def the_next_word_has_parts_too(client, _):
    for model in ("bert", "whole-gpt2"):
        told = post(client, model, RAGGED, words="next", **{"return": ["attribution", "word_scores"]})["outputs"]
        for item, ids in enumerate(RAGGED["ids"]):
            for i, score in enumerate(told["word_scores"]["logits"][item][:len(ids)]):
                parts = told["attribution"]
                adds = [x for name in ("embedding", "bias") for x in parts[name][item][i]]
                adds += flat([[head[i] for head in layer[item]] for layer in parts["heads"]]) + [layer[item][i][0] for layer in parts["feed_forward"]]
                assert set(adds) == {"NaN"} if score == ["NaN"] else near(sum(adds), score[0], 1e-4), (model, item, i)
        assert set(flat([rows[2:] for rows in told["attribution"]["bias"][2:]])) == {0}


@check
def many_tokens_are_read_in_blocks(client, _):
    """The head scores 64 tokens at once; the order of queries jumps between the blocks."""
    model, chance = "whole-t5", random.Random(5)
    ids = [[chance.randrange(3, 50) for _ in range(130)]]
    inputs = {"ids": ids, "target_ids": ids}
    whole = post(client, model, inputs, words="next", **{"return": ["attribution"]})["outputs"]["attribution"]
    some = post(client, model, inputs, words="next", queries=[100, 3, 65, 64, 0], **{"return": ["attribution"]})["outputs"]["attribution"]
    assert some["bias"] == [[whole["bias"][0][i] for i in (100, 3, 65, 64, 0)]]
    assert some["heads"][1][0][2] == [whole["heads"][1][0][2][i] for i in (100, 3, 65, 64, 0)]


@check
def a_model_without_words_has_no_parts(client, _):
    asked = {"return": ["attribution"]}
    assert "needs options.words" in refusal(client, "bert", {"ids": [5]}, **asked)["error"]
    assert "are words, and " in refusal(client, "head-sentiment", {"ids": [5]}, words=[1], **asked)["error"]
    assert "give inputs.target" in refusal(client, "whole-t5", {"ids": [5]}, words=[1], **asked)["error"]
    told = refusal(client, "edited-vit-nobias", {"pixels": [[[[0.5] * 12] * 12] * 3]}, words=[1], **asked)
    assert told["pointer"] == "/options/return" and "head of classes" in told["error"] or "needs a prediction head" in told["error"], told
