"""
questions.py: what a request asks of a model beside its maps: given words, and interventions. The reference of words reads logits
alone, that of interventions is reference/models.py.
"""

import json
import math
import random

import tensor_file
import tokens
from asking import post, refusal
from reference import models as edited
from suite import one_in, registry

CHECKS = []
check = registry(CHECKS)
TEXT = "the animal did not cross the street"
RAGGED = {"ids": [[5, 6, 7, 8, 9], [11, 12], [13]]}


# ---- words ----

def scored(row, word):
    """(logit, log-probability, rank) of a word; the row is shifted by its largest number."""
    top = max(row)
    log_sum = math.log(math.fsum(math.exp(z - top) for z in row))
    rank = 1 + sum(z > row[word] or (z == row[word] and i < word) for i, z in enumerate(row))
    return row[word], row[word] - top - log_sum, rank


def near(got, wanted, tolerance):
    return got == wanted if isinstance(wanted, str) else abs(got - wanted) <= tolerance * (1 + abs(wanted))


def hold_scores(scores, item, row, logits, words, tolerance):
    """One row: words are ids, or None where there is no word."""
    for i, word in enumerate(words):
        wanted = ("NaN", "NaN", -1) if word is None else scored(logits, word)
        got = [scores[name][item][row][i] for name in ("logits", "log_probabilities", "ranks")]
        assert got[0] == wanted[0] and got[2] == wanted[2] and near(got[1], wanted[1], tolerance), (item, row, got, wanted)


def next_words(ids, is_decoder, label=None):
    return [*ids[1:], label] if is_decoder else ids


MODELS = {"bert": (RAGGED, False), "whole-gpt2": (RAGGED, True),
          "whole-t5": ({**RAGGED, "target_ids": [[0, 4, 9], [0], [0, 4, 9, 7]]}, True)}


@check
def words_are_scored_by_the_logits(client, _):
    for compute, tolerance in (("float32", 1e-6), ("float64", 1e-14)):
        for model, (inputs, _) in MODELS.items():
            words = [7, 3, 200, 7]
            told = post(client, model, inputs, words=words, compute=compute, queries=[0], **{"return": ["word_scores", "logits"]})
            scores, logits = told["outputs"]["word_scores"], told["outputs"]["logits"]
            assert set(scores) == {"logits", "log_probabilities", "ranks"} and told["shapes"]["word_scores"] == [3, 1, 4]
            assert told["effective"]["words"] == words
            for item in range(3):
                hold_scores(scores, item, 0, logits[item][0], words, tolerance)


@check
def the_next_word_is_that_of_the_text(client, _):
    for model, (inputs, is_decoder) in MODELS.items():
        told = post(client, model, inputs, words="next", **{"return": ["word_scores", "logits", "predictions"]})
        outputs, ids = told["outputs"], inputs.get("target_ids", inputs["ids"])
        assert told["shapes"]["word_scores.perplexity"] == [3] and told["effective"]["words"] == "next"
        for item, row_ids in enumerate(ids):
            words = next_words(row_ids, is_decoder)
            for row, word in enumerate(words):
                hold_scores(outputs["word_scores"], item, row, outputs["logits"][item][row], [word], 1e-6)
            logs = [scored(outputs["logits"][item][row], word)[1] for row, word in enumerate(words) if word is not None]
            perplexity = math.exp(-sum(logs) / len(logs)) if logs else "NaN"
            assert near(outputs["word_scores"]["perplexity"][item], perplexity, 1e-5), (model, item, perplexity)
            for row in range(len(words), len(outputs["logits"][item])):  # behind the end of a shorter item
                assert [outputs["word_scores"][name][item][row] for name in ("logits", "log_probabilities", "ranks")] == [[0], [0], [-1]]
        part = post(client, model, inputs, words="next", queries=[1, 0], **{"return": ["word_scores"]})["outputs"]["word_scores"]
        assert part["perplexity"] == outputs["word_scores"]["perplexity"], model
        assert [rows[:2][::-1] for rows in outputs["word_scores"]["logits"]] == part["logits"], model


@check
def the_rank_is_the_place_among_the_predictions(client, _):
    told = post(client, "demo", {"text": "Anna likes [MASK]"}, words=["tea", "milk"], queries=[3], predictions_k=700,
                **{"return": ["word_scores", "predictions"]})["outputs"]
    for at, word in enumerate(("tea", "milk")):
        place = told["predictions"]["tokens"][0][0].index(word)
        assert told["word_scores"]["ranks"][0][0][at] == place + 1
        probability = math.exp(told["word_scores"]["log_probabilities"][0][0][at])
        assert near(told["predictions"]["probabilities"][0][0][place], probability, 1e-5)


@check
def a_target_of_text_has_a_word_behind_its_last_token(client, _):
    told = post(client, "whole-t5", {"text": TEXT, "target": "the street"}, words="next", **{"return": ["word_scores", "logits"]})
    ids = told["tokens"]["decoder"]["ids"][0]
    for row, word in enumerate(next_words(ids, True, 1)):  # 1 is </s>
        hold_scores(told["outputs"]["word_scores"], 0, row, told["outputs"]["logits"][0][row], [word], 1e-6)


@check
def the_lens_scores_words_too(client, _):
    for model, (inputs, _) in MODELS.items():
        for words in ("next", [9, 4]):
            told = post(client, model, inputs, words=words, **{"return": ["word_scores", "logit_lens"]})
            lens, last = told["outputs"]["logit_lens"], told["outputs"]["word_scores"]
            assert {"ids", "probabilities", "logits", "log_probabilities", "ranks"} <= set(lens)
            count = 1 if words == "next" else 2
            assert told["shapes"]["logit_lens.ranks"] == [len(lens["ids"]), *told["shapes"]["word_scores"]], told["shapes"]
            assert told["shapes"]["word_scores"][-1] == count and told["shapes"]["logit_lens"][-1] == 5
            for name in ("logits", "log_probabilities", "ranks"):
                assert lens[name][-1] == last[name], (model, name)
            one = post(client, model, inputs, words=words, layers=[1], queries=[0], **{"return": ["logit_lens"]})["outputs"]["logit_lens"]
            assert one["ranks"][0] == [rows[:1] for rows in lens["ranks"][1]]


@check
def a_file_of_tensors_has_the_scores(client, _):
    body = {"inputs": RAGGED, "options": {"return": ["word_scores"], "words": "next"}}
    reply = client.send("POST", "/v1/models/whole-gpt2/attention", json.dumps(body),
                        {"Content-Type": "application/json", "Accept": "application/vnd.attnd.safetensors"})
    found, texts = tensor_file.read(reply.body)
    assert found["word_scores.ranks"][:2] == ("I64", [3, 5, 1]) and found["word_scores.perplexity"][1] == [3], list(found)
    assert math.isnan(found["word_scores.logits"][2][4]) and json.loads(texts["effective"])["words"] == "next"


@check
def words_that_cannot_be_scored_are_refused(client, _):
    scores = {"return": ["word_scores"]}
    told = refusal(client, "bert", {"text": TEXT}, words=["the", "xylophone"], **scores)
    assert told["pointer"] == "/options/words/1" and "tokens, " in told["error"] and "give texts of one token" in told["error"], told
    for count in range(30, 60):  # some of so many tokens are told
        assert f"is {count} tokens, " in refusal(client, "bert", {"text": TEXT}, words=["a " * count], **scores)["error"]
    assert "has no tokenizer" in refusal(client, "bare", {"ids": [5]}, words=["a"], **scores)["error"]
    assert "are words, and " in refusal(client, "head-sentiment", {"text": TEXT}, words=[1], **scores)["error"]
    assert "give inputs.target" in refusal(client, "whole-t5", {"text": TEXT}, words=[1], **scores)["error"]


# ---- interventions ----

ARCHIVED = ("mistral", "llama-classes", "vit-nobias")  # of tests/others/models
# Parallel blocks, norms of branches, factors of branches, sinks, experts, shared layers, other norms and post-norms.
OTHERS = ("gptj", "falcon-7b", "falcon-40b", "gpt_neox", "phi", "cohere", "gemma2", "gemma3", "olmo2", "glm4", "granite", "minicpm", "gpt_oss",
          "mixtral", "qwen2_moe", "bloom", "opt", "modernbert", "qwen3-window", "exaone4", "albert", "distilbert-relu", "mpnet", "esm", "nomic_bert")
POST_NORMED = ("albert", "distilbert-relu", "mpnet", "nomic_bert")
WEIGHED = {"bert": tokens.OWN / "bert", "whole-gpt2": tokens.OWN / "gpt2", "whole-t5": tokens.OWN / "t5"}


def stage(folder):
    """Models of kinds.tar.xz and heads.tar.xz under their own names."""
    recorded = tokens.recorded_models()
    for name in ARCHIVED + OTHERS:
        recorded.prepare(recorded.folders()[name], folder / f"edited-{name}")
    WEIGHED.update({f"edited-{name}": folder / f"edited-{name}" for name in ARCHIVED})


def reference(model):
    config = json.loads((WEIGHED[model] / "config.json").read_text())
    return edited.Model(config, tensor_file.read((WEIGHED[model] / "model.safetensors").read_bytes())[0])


def inputs_of(model, chance):
    """Three items: (inputs of the request, inputs of the reference, targets)."""
    if "vit" in model:
        pixels = [[[[chance.uniform(-1, 1) for _ in range(12)] for _ in range(12)] for _ in range(3)] for _ in range(3)]
        return {"pixels": pixels}, pixels, None
    ids = [[chance.randrange(3, 50) for _ in range(length)] for length in (6, 4, 6)]
    targets = [[chance.randrange(3, 50) for _ in range(length)] for length in (3, 5, 3)] if "t5" in model else None
    return {"ids": ids, **({"target_ids": targets} if targets else {})}, ids, targets


SHAPES = {"bert": (3, 4, 32, 8), "whole-gpt2": (3, 4, 32, 8), "whole-t5": (3, 4, 32, 16), "edited-vit-nobias": (2, 4, 32, 8)}


def intervention(model, chance):
    """A random one, whose places are there. Items 0 and 2 have the same length, and the first four tokens are always there."""
    layers, heads, width, d_v = SHAPES.get(model, (2, 4, 32, 8))
    made = {"at": chance.choice(["hidden", "context", "attention", "attention_output", "feed_forward"])}
    if "t5" in model:
        made["part"] = chance.choice(["encoder", "decoder"] + (["cross"] if made["at"] not in ("hidden", "feed_forward") else []))
        layers = 2 if made["part"] == "encoder" else 3
    made["do"] = chance.choice(["zero", "mean", "scale", "add", "replace", "from"] + (["mask", "mask"] if made["at"] == "attention" else []))
    tokens_of_all = 2 if "t5" in model else 4
    if chance.random() < 0.8:
        made["layers"] = sorted(chance.sample(range(layers), chance.randint(1, 2)))
    if made["at"] in ("context", "attention") and chance.random() < 0.7:
        made["heads"] = chance.sample(range(heads), chance.randint(1, 3))
    if chance.random() < 0.7:
        made["queries"] = chance.choice([[-1], [0, -1], [1], [{"from": 0, "to": 1}], [1, 0]])
    if made["at"] == "attention" and (chance.random() < 0.6 or made["do"] in ("add", "replace", "from")):
        made["keys"] = chance.sample(range(tokens_of_all), 2)
    if chance.random() < 0.6:
        made["items"] = chance.sample(range(3), chance.randint(1, 2))
    count = 2 if made["at"] == "attention" else d_v if made["at"] == "context" else width
    if made["do"] in ("add", "replace"):
        made["value"] = [chance.uniform(-1, 1) for _ in range(count)]
    if made["do"] == "scale" or (made["do"] == "add" and chance.random() < 0.5):
        made["factor"] = chance.choice([0.5, -1, 2.25])
    if made["do"] == "from":
        made.update({"do": "replace", "from": 0, "items": [2]})
        if "queries" in made and chance.random() < 0.4:
            made["from_queries"] = [1, 0][:len(edited.chosen(made["queries"], 3))]
    return made


PARTS = {None: "", "encoder": "encoder_", "decoder": "decoder_", "cross": "cross_"}


def flat(nested):
    return [x for one in nested for x in flat(one)] if isinstance(nested, list) else [nested]


def hold_near(what, got, wanted, tolerance):
    """wanted has the length of its item; got, that of the longest."""
    for i, (here, there) in enumerate(zip(got, wanted)):
        if isinstance(there, list):
            hold_near(f"{what}[{i}]", here, there, tolerance)
        else:
            assert abs(here - there) <= tolerance * (1 + abs(there)), f"{what}[{i}] is {here}, expected {there}"


def hold_edited(client, model, oracle, chance, interventions, compute, tolerance):
    inputs, own, targets = inputs_of(model, chance)
    outputs = post(client, model, inputs, interventions=interventions, compute=compute, **{"return": ["attention", "hidden", "output"]})["outputs"]
    for item, (run, output) in enumerate(oracle.run(own, targets, interventions)):
        where = f"{model} {json.dumps(interventions)}: item {item}"
        for part, maps in run.maps.items():
            for layer, wanted in enumerate(maps):
                hold_near(f"{where}: {part} map {layer}", outputs[f"{PARTS[part]}attention"][layer][item], wanted, tolerance)
        for part, states in run.hidden.items():
            for layer, wanted in enumerate(states[:-1]):
                hold_near(f"{where}: {part} hidden {layer}", outputs[f"{PARTS[part]}hidden"][layer][item], wanted, tolerance)
        hold_near(f"{where}: output", outputs["output"][item], output, tolerance)


@check
def interventions_give_what_the_equations_give(client, _):
    chance = random.Random(35)
    for model in WEIGHED:
        oracle = reference(model)
        hold_edited(client, model, oracle, chance, [], "float64", 1e-10)
        for n in range(0, 12, one_in(2)):
            made = [intervention(model, chance) for _ in range(chance.randint(1, 3))]
            compute, tolerance = ("float32", 1e-4) if n % 4 == 2 else ("float64", 1e-10)
            hold_edited(client, model, oracle, chance, made, compute, tolerance)


@check
def what_no_intervention_names_keeps_its_bits(client, _):
    chance, wanted = random.Random(36), {"return": ["attention", "hidden", "output", "context", "entropy"]}
    for model in WEIGHED:
        inputs, _, _ = inputs_of(model, chance)
        before = post(client, model, inputs, **wanted)["outputs"]
        for _ in range(12):
            made = [{**intervention(model, chance), "items": [2]} for _ in range(2)]
            after = post(client, model, inputs, interventions=made, **wanted)["outputs"]
            for name, output in before.items():
                items = [[layer[item] for layer in output] for item in (0, 1)] if name != "output" else output[:2]
                others = [[layer[item] for layer in after[name]] for item in (0, 1)] if name != "output" else after[name][:2]
                assert items == others, (model, made, name)
            one = [{**made[0], "layers": [1], "heads": [1]}] if made[0]["at"] in ("context", "attention") and "from" not in made[0] else []
            maps = "decoder_attention" if "t5" in model else "attention"
            if one and one[0].get("part") in (None, "decoder"):
                after = post(client, model, inputs, interventions=one, **wanted)["outputs"][maps]
                assert after[0] == before[maps][0], (model, one)
                for head in (0, 2, 3):
                    assert after[1][2][head] == before[maps][1][2][head], (model, one, head)


@check
def the_short_form_is_an_intervention(client, _):
    inputs, wanted = {"ids": [[5, 6, 7, 8], [9, 10]]}, {"return": ["attention", "hidden", "output", "logits", "context"]}
    for model in ("bert", "whole-gpt2", "edited-mistral"):
        short = post(client, model, inputs, ablate=[[1, 2], [0, 1], [1, 0], [1, 2]], **wanted)
        long = post(client, model, inputs, **wanted, interventions=[{"at": "context", "layers": [0], "heads": [1], "do": "zero"},
                                                                   {"at": "context", "layers": [1], "heads": [2, 0], "do": "zero"}])
        assert short["outputs"] == long["outputs"] and short["effective"] == long["effective"], model
        assert short["effective"]["interventions"][1] == {"at": "context", "do": "zero", "layers": [1], "heads": [0, 2],
                                                          "queries": "all", "items": [0, 1]}
        assert set(flat(short["outputs"]["context"][1][0][2])) == {0}


@check
def a_factor_of_one_changes_no_bit(client, _):
    wanted = {"return": ["attention", "hidden", "output"]}
    for model in WEIGHED:
        inputs, _, _ = inputs_of(model, random.Random(37))
        for part in (("encoder", "decoder", "cross") if "t5" in model else (None,)):
            for at in ("hidden", "context", "attention_output", "feed_forward"):
                if part == "cross" and at in ("hidden", "feed_forward"):
                    continue
                one = {"at": at, "do": "scale", "factor": 1, **({"part": part} if part else {})}
                assert post(client, model, inputs, interventions=[one], **wanted)["outputs"] == post(client, model, inputs, **wanted)["outputs"], (model, one)


@check
def every_arrangement_of_a_block_can_be_edited(client, _):
    """A factor of 1 changes no bit, and a residual to which nothing is added stays what it is."""
    wanted, inputs = {"return": ["hidden", "attention"]}, {"ids": [[5, 6, 7, 8, 9], [11, 12]]}
    for name in OTHERS:
        before = post(client, f"edited-{name}", inputs, **wanted)["outputs"]
        for at in ("hidden", "context", "attention_output", "feed_forward"):
            after = post(client, f"edited-{name}", inputs, interventions=[{"at": at, "do": "scale", "factor": 1}], **wanted)["outputs"]
            assert before == after, (name, at)
        nothing = [{"at": at, "do": "zero"} for at in ("attention_output", "feed_forward")]
        hidden = post(client, f"edited-{name}", inputs, interventions=nothing, **wanted)["outputs"]["hidden"]
        assert name in POST_NORMED or hidden[:-1] == [hidden[0]] * (len(hidden) - 1), name
        maps = post(client, f"edited-{name}", inputs, **wanted, interventions=[
            {"at": "attention", "do": "mask", "layers": [1], "heads": [0], "queries": [-1], "keys": [-1]}])["outputs"]["attention"]
        assert maps[0] == before["attention"][0] and maps[1][0][0][4][4] == 0 and maps[1][0][0][3] == before["attention"][1][0][0][3], name
        assert maps[1][0][1:] == before["attention"][1][0][1:], name


@check
def pictures_views_and_analyses_show_the_maps_behind_them(client, _):
    text = {"text": SENTENCE}
    zero = [{"at": "attention", "layers": [1], "heads": [2], "queries": [3], "do": "mask", "keys": [0, 1, 2]}]
    view = post(client, "bert", text, view="rows", layers=[1], interventions=zero)
    assert view != post(client, "bert", text, view="rows", layers=[1])
    for accept in ("image/png", "image/svg+xml"):
        pictures = [client.send("POST", "/v1/models/bert/attention?layer=1&head=2", json.dumps({"inputs": text, "options": options}),
                                {"Content-Type": "application/json", "Accept": accept}).body
                    for options in ({"interventions": zero}, {}, {"interventions": zero[:0]})]
        assert pictures[0] != pictures[1] == pictures[2], accept
    maps = post(client, "bert", text, interventions=zero)["outputs"]["attention"]
    part = post(client, "bert", text, interventions=[{**zero[0], "do": "scale", "factor": 0.5}], heads=[2, 1], queries=[3, 0], keys=[4, 1],
                **{"return": ["attention", "attention_mean", "rollout", "head_scores"]})["outputs"]
    assert maps[1][0][2][3][:3] == [0, 0, 0] and abs(sum(maps[1][0][2][3]) - 1) < 1e-6
    whole = post(client, "bert", text, interventions=[{**zero[0], "do": "scale", "factor": 0.5}],
                 **{"return": ["attention", "attention_mean", "rollout", "head_scores"]})["outputs"]
    assert part["rollout"] == whole["rollout"] and part["head_scores"] == whole["head_scores"]
    assert part["attention"] == [[[[[rows[h][i][j] for j in (4, 1)] for i in (3, 0)] for h in (2, 1)] for rows in layer] for layer in whole["attention"]]


SENTENCE = "the animal did not cross"
IDS = {"ids": [[5, 6, 7], [8, 9, 10], [4]]}
REFUSED = (
    ("whole-gpt2", {"at": "context", "do": "zero", "layers": [3]}, "/layers", "/options/interventions/0/layers has 3; they are numbered 0 to 2"),
    ("whole-gpt2", {"at": "hidden", "do": "zero", "layers": [4]}, "/layers", "/options/interventions/0/layers has 4; they are numbered 0 to 3"),
    ("whole-gpt2", {"at": "context", "do": "zero", "heads": [4]}, "/heads", "/options/interventions/0/heads has 4; they are numbered 0 to 3"),
    ("whole-gpt2", {"at": "context", "do": "zero", "heads": [1, 1]}, "/heads", "/options/interventions/0/heads has 1 twice"),
    ("whole-gpt2", {"at": "context", "do": "zero", "heads": [{"from": -1, "to": 0}]}, "/heads", "/options/interventions/0/heads has a range"),
    ("whole-gpt2", {"at": "hidden", "do": "zero", "items": [3]}, "/items", "/options/interventions/0/items has 3; they are numbered 0 to 2"),
    ("whole-gpt2", {"at": "hidden", "do": "zero", "queries": [1]}, "/queries", "(item 2)"),
    ("whole-gpt2", {"at": "attention", "do": "zero", "keys": [1]}, "/keys", "(item 2)"),
    ("whole-gpt2", {"at": "hidden", "do": "zero", "heads": [0]}, "/heads", "heads are of"),
    ("whole-gpt2", {"at": "context", "do": "zero", "keys": [0]}, "/keys", "keys are of"),
    ("whole-gpt2", {"at": "hidden", "do": "mask"}, "", "edges of"),
    ("whole-gpt2", {"at": "hidden", "do": "add"}, "", 'without "value"'),
    ("whole-gpt2", {"at": "hidden", "do": "scale"}, "", 'without "factor"'),
    ("whole-gpt2", {"at": "hidden", "do": "zero", "factor": 2}, "/factor", "a factor is of"),
    ("whole-gpt2", {"at": "hidden", "do": "add", "value": [[1]]}, "/value", "must be a vector"),
    ("whole-gpt2", {"at": "hidden", "do": "add", "value": [1]}, "/value", 'has 1 numbers, and "hidden" has 32'),
    ("whole-gpt2", {"at": "context", "do": "add", "value": [1]}, "/value", 'has 1 numbers, and "context" has 8'),
    ("whole-gpt2", {"at": "attention", "do": "add", "value": [1]}, "/value", "has 1 numbers, and item 0 has 3 keys there"),
    ("whole-gpt2", {"at": "hidden", "do": "replace"}, "", "has none of them"),
    ("whole-gpt2", {"at": "hidden", "do": "replace", "value": [1], "from": 0}, "", "has both"),
    ("whole-gpt2", {"at": "hidden", "do": "replace", "from": 3}, "/from", "they are numbered 0 to 2"),
    ("whole-gpt2", {"at": "hidden", "do": "replace", "from": 0, "items": [0]}, "/from", "which is changed itself"),
    ("whole-gpt2", {"at": "hidden", "do": "replace", "from": 0}, "", "replaces 1 queries of item 2 by 3 of item 0"),
    ("whole-gpt2", {"at": "hidden", "do": "replace", "from": 0, "items": [1], "queries": [0], "from_queries": [0, 1]}, "", "replaces 1 queries"),
    ("whole-gpt2", {"at": "hidden", "do": "replace", "from": 2, "items": [1], "queries": [1]}, "/queries", "(item 1)"),
    ("whole-gpt2", {"at": "attention", "do": "replace", "from": 0, "items": [2], "queries": [0], "keys": [{"from": 0, "to": -1}]}, "",
     "with 1 and 3 numbers each"),
    ("whole-gpt2", {"at": "hidden", "do": "replace", "value": [1], "from_queries": [0]}, "/from_queries", "which is not given"),
    ("whole-gpt2", {"at": "hidden", "do": "zero", "part": "encoder"}, "/part", "has one stack"),
    ("whole-t5", {"at": "hidden", "do": "zero"}, "", 'has no "part"'),
    ("whole-t5", {"at": "hidden", "do": "zero", "part": "cross"}, "/part", "of the encoder or the decoder"),
    ("whole-t5", {"at": "context", "do": "zero", "part": "cross"}, "/part", "does not run"),
    ("whole-gpt2", {"do": "zero"}, "", 'has no "at"'),
    ("whole-gpt2", {"at": "hidden"}, "", 'has no "do"'),
    ("whole-gpt2", {"at": "mlp", "do": "zero"}, "/at", '"feed_forward"'),
    ("whole-gpt2", {"at": "hidden", "do": "noise"}, "/do", '"replace"'),
    ("whole-gpt2", 7, "", "an object"),
)


@check
def bad_places_are_refused_by_name(client, _):
    for model, made, member, part in REFUSED:
        told = refusal(client, model, IDS, interventions=[made])
        assert told["pointer"] == f"/options/interventions/0{member}" and part in told["error"], (made, told["pointer"], told["error"])
    circle = [{"at": "hidden", "do": "replace", "from": a, "items": [b], "queries": [0]} for a, b in ((0, 1), (1, 2), (2, 0))]
    assert "each other" in refusal(client, "whole-gpt2", IDS, interventions=circle)["error"]
    assert "at most 64 are possible" in client.post("/v1/models/whole-gpt2/attention", {"inputs": IDS, "options": {
        "interventions": [{"at": "hidden", "do": "zero"}] * 65}}).json()["error"]
