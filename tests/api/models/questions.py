"""
questions.py: what a request asks of a model beside its maps: given words. The reference reads logits alone.
"""

import json
import math

import tensor_file
from suite import registry

CHECKS = []
check = registry(CHECKS)
TEXT = "the animal did not cross the street"
RAGGED = {"ids": [[5, 6, 7, 8, 9], [11, 12], [13]]}


def post(client, model, inputs, **options):
    reply = client.post(f"/v1/models/{model}/attention", {"inputs": inputs, "options": options})
    assert reply.status == 200, f"{model}: {reply.status} {reply.body[:300]}"
    return reply.json()


def refusal(client, model, inputs, **options):
    reply = client.post(f"/v1/models/{model}/attention", {"inputs": inputs, "options": options})
    assert reply.status == 400, f"{model}: {reply.status} {reply.body[:300]}"
    return reply.json()


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
    assert "has no tokenizer" in refusal(client, "bare", {"ids": [5]}, words=["a"], **scores)["error"]
    assert "are words, and " in refusal(client, "head-sentiment", {"text": TEXT}, words=[1], **scores)["error"]
    assert "give inputs.target" in refusal(client, "whole-t5", {"text": TEXT}, words=[1], **scores)["error"]
