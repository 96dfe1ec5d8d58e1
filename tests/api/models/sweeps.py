"""sweeps.py: an intervention at each place in turn. The reference is the request with this intervention, one place after another."""

import json
import xml.etree.ElementTree

from asking import post, refusal
from questions import RAGGED, near
from suite import one_in, registry

CHECKS = []
check = registry(CHECKS)
PAIR = {"ids": [[5, 6, 7, 8], [5, 9, 7, 8], [11, 12]]}
TWO_SIDED = {**PAIR, "target_ids": [[0, 4, 9], [0], [0, 4, 9, 7]]}
DIFFERENCE, ONE = {"words": [7, 3]}, {"words": [7], "query": 0}


def measured(client, model, inputs, metric, compute, interventions):
    """The metric of each item, by word_scores."""
    scores = post(client, model, inputs, words=metric["words"], compute=compute, interventions=interventions,
                  **{"return": ["word_scores"]})["outputs"]["word_scores"]
    lengths = [len(ids) for ids in inputs.get("target_ids", inputs["ids"])]
    rows = [metric.get("query", -1) % length for length in lengths]
    if len(metric["words"]) == 1:
        return [scores["log_probabilities"][item][row][0] for item, row in enumerate(rows)]
    return [scores["logits"][item][row][0] - scores["logits"][item][row][1] for item, row in enumerate(rows)]


def places_of(sweep, inputs, item, told):
    if sweep["over"][1] == "head":
        return told["effective"]["sweep"]["heads"]
    length = len(inputs["ids" if sweep.get("part", "encoder") == "encoder" else "target_ids"][item])
    return [query % length for query in sweep.get("queries", range(length))]


def hold_sweep(client, model, inputs, sweep, metric, compute, interventions=()):
    tolerance = 1e-5 if compute == "float32" else 1e-10
    told = post(client, model, inputs, sweep=sweep, metric=metric, compute=compute, interventions=list(interventions),
                **{"return": ["sweep", "logits"]})
    plain = post(client, model, inputs, compute=compute, interventions=list(interventions), **{"return": ["logits"]})
    assert told["outputs"]["logits"] == plain["outputs"]["logits"], (model, sweep)
    values, layers = told["outputs"]["sweep"]["values"], told["effective"]["sweep"]["layers"]
    before = measured(client, model, inputs, metric, compute, list(interventions))
    for item, length in enumerate(map(len, inputs["ids"])):
        assert near(told["outputs"]["sweep"]["unchanged"][item], before[item], tolerance), (model, item)
        swept = item in told["effective"]["sweep"]["items"]
        for at, layer in enumerate(layers):
            for k, place in enumerate(places_of(sweep, inputs, item, told) if swept else ()):
                if (at + k) % one_in(2) != 0:
                    continue
                one = {name: value for name, value in sweep.items() if name not in ("over", "from_queries")}
                one = {**one, "layers": [layer], "items": [item], "heads" if sweep["over"][1] == "head" else "queries": [place]}
                if "from_queries" in sweep:
                    one["from_queries"] = sweep["from_queries"] if sweep["over"][1] == "head" else [sweep["from_queries"][k]]
                wanted = measured(client, model, inputs, metric, compute, [*interventions, one])[item]
                assert near(values[item][at][k], wanted, tolerance), (model, sweep, item, layer, place, values[item][at][k], wanted)
            rest = values[item][at][len(places_of(sweep, inputs, item, told)) if swept else 0:]
            assert set(rest) <= {0}, (model, item, rest)
    return told


SWEEPS = ({"at": "hidden", "over": ["layer", "query"], "do": "replace", "from": 1, "items": [0]},
          {"at": "hidden", "over": ["layer", "query"], "do": "zero"},
          {"at": "feed_forward", "over": ["layer", "query"], "do": "mean", "layers": [1, 0], "queries": [-1, 0]},
          {"at": "attention_output", "over": ["layer", "query"], "do": "replace", "from": 0, "items": [1], "queries": [2, 0], "from_queries": [1, 3]},
          {"at": "context", "over": ["layer", "head"], "do": "zero", "queries": [-1]},
          {"at": "context", "over": ["layer", "head"], "do": "replace", "from": 1, "items": [0], "heads": [2, 0], "queries": [1, 3]},
          {"at": "context", "over": ["layer", "query"], "do": "replace", "from": 1, "items": [0], "heads": [2, 0]},
          {"at": "attention", "over": ["layer", "head"], "do": "mask", "queries": [1], "keys": [0]})


@check
def a_sweep_is_the_intervention_at_each_place(client, _):
    for model in ("bert", "whole-gpt2", "edited-mistral"):
        for number, sweep in enumerate(SWEEPS):
            compute = "float32" if number % 2 else "float64"
            hold_sweep(client, model, PAIR, sweep, DIFFERENCE if number % 3 else ONE, compute)


@check
def a_sweep_of_an_encoder_decoder_names_a_part(client, _):
    of_decoder = ({"at": "hidden", "over": ["layer", "query"], "do": "replace", "from": 2, "items": [0], "queries": [0, -1], "from_queries": [2, 0]},
                  {"at": "attention_output", "over": ["layer", "query"], "do": "mean"},
                  {"at": "context", "over": ["layer", "head"], "do": "replace", "from": 2, "items": [0], "queries": [0, 1], "from_queries": [1, 3]})
    of_cross = ({"at": "attention", "over": ["layer", "head"], "do": "mask", "keys": [0]},
                {"at": "attention_output", "over": ["layer", "query"], "do": "zero"},
                {"at": "context", "over": ["layer", "head"], "do": "replace", "from": 2, "items": [0], "queries": [0, -1], "from_queries": [2, 0]})
    number = 0
    for model in ("whole-t5", "generating-bart-scaled", "generating-marian"):
        for part, sweeps in (("encoder", SWEEPS), ("decoder", of_decoder), ("cross", of_cross)):
            for sweep in sweeps:
                number += 1
                if number % one_in(2) == 0 and ("heads" not in sweep or model == "whole-t5"):
                    made = [{"at": "context", "part": "decoder", "do": "scale", "factor": 0.5}] if number % 3 == 1 else []
                    hold_sweep(client, model, TWO_SIDED, {**sweep, "part": part}, DIFFERENCE if number % 3 else ONE,
                               "float32" if number % 4 < 2 else "float64", made)


@check
def places_without_an_effect_have_the_unchanged_number(client, _):
    for model, length in (("whole-gpt2", 4), ("whole-gpt2", 40), ("bert", 20)):
        inputs = {"ids": [[5 + n % 40 for n in range(length)]]}
        for compute in ("float64", "float32"):
            sweep = {"at": "hidden", "over": ["layer", "query"], "do": "scale", "factor": 1, "layers": [1]}
            swept = post(client, model, inputs, sweep=sweep, metric=DIFFERENCE, compute=compute, **{"return": ["sweep"]})["outputs"]["sweep"]
            assert set(swept["values"][0][0]) == set(swept["unchanged"]), (model, length, compute)


@check
def other_interventions_stay(client, _):
    made = [{"at": "hidden", "do": "scale", "factor": 1.5, "layers": [0, 1]}, {"at": "context", "do": "zero", "layers": [0], "heads": [1]}]
    for model in ("bert", "whole-gpt2"):
        told = hold_sweep(client, model, PAIR, SWEEPS[0], DIFFERENCE, "float64", made)
        assert len(told["effective"]["interventions"]) == 2 and told["effective"]["metric"] == {"words": [7, 3], "query": -1}
        assert told["effective"]["sweep"]["over"] == ["layer", "query"], told["effective"]
        assert told["shapes"]["sweep"] == [3, 4, 4] and told["shapes"]["sweep.unchanged"] == [3], told["shapes"]


@check
def what_else_is_asked_for_stays_what_it_is(client, _):
    wanted = {"return": ["attention", "hidden", "word_scores", "attribution", "rollout", "head_scores", "logit_lens"], "words": [7]}
    for model in ("bert", "whole-gpt2"):
        plain = post(client, model, RAGGED, **wanted)["outputs"]
        wanted_too = {**wanted, "return": [*wanted["return"], "sweep"]}
        swept = post(client, model, RAGGED, sweep=SWEEPS[1], metric=ONE, **wanted_too)["outputs"]
        alone = post(client, model, RAGGED, sweep=SWEEPS[1], metric=ONE, **{"return": ["sweep"]})["outputs"]
        assert swept.pop("sweep") == alone["sweep"] and swept == plain, model


@check
def what_others_read_of_a_swept_item_stays_what_it_is(client, _):
    made = {"interventions": [{"at": "hidden", "layers": [1], "do": "replace", "from": 0, "items": [1]}]}
    inputs = {"ids": [[5, 6, 7, 8], [9, 4, 3, 2]]}
    plain = post(client, "whole-gpt2", inputs, **made, **{"return": ["logits"]})["outputs"]
    of_reader = post(client, "whole-gpt2", inputs, **made, sweep={**SWEEPS[1], "items": [1]}, metric=ONE, **{"return": ["sweep"]})["outputs"]["sweep"]
    swept = post(client, "whole-gpt2", inputs, **made, sweep={"at": "hidden", "over": ["layer", "query"], "do": "zero"}, metric=ONE,
                 **{"return": ["logits", "sweep"]})["outputs"]
    assert swept["logits"] == plain["logits"]
    assert swept["sweep"]["unchanged"][1] == of_reader["unchanged"][1]


def draw(client, model, inputs, query, accept, **options):
    return client.send("POST", f"/v1/models/{model}/attention{query}", json.dumps({"inputs": inputs, "options": options}),
                       {"Content-Type": "application/json", "Accept": accept})


@check
def a_picture_has_the_numbers_of_the_answer(client, _):
    text = {"text": ["Anna likes tea, and Tom likes [MASK] too.", "Anna likes milk, and Tom [MASK] too."]}
    words = ["[CLS]", "Anna", "likes", "milk", ",", "and", "Tom", "[MASK]", "too", ".", "[SEP]"]
    for sweep, metric, title, rows, columns in (
            ({"at": "hidden", "over": ["layer", "query"], "do": "replace", "from": 0, "items": [1], "queries": [-1, 3, 0], "from_queries": [1, 2, 3]},
             ["tea", "milk"], "logit(tea) − logit(milk)", ["embeddings", *(f"layer {n}" for n in range(1, 5))], [words[at] for at in (-1, 3, 0)]),
            ({"at": "context", "over": ["layer", "head"], "do": "zero", "heads": [3, 1]}, ["tea"], "log p(tea)",
             [f"layer {n}" for n in range(4)], ["head 1", "head 3"]),
            ({"at": "attention_output", "over": ["layer", "query"], "do": "mean", "layers": [-1]}, ["tea"], "log p(tea)", ["layer 3"], words)):
        asked = {"sweep": sweep, "metric": {"words": metric, "query": 7}, "return": ["sweep"]}
        values = post(client, "demo", text, digits=4, **asked)["outputs"]["sweep"]["values"][1]
        reply = draw(client, "demo", text, "?batch=1", "image/svg+xml", **asked)
        assert reply.status == 200, reply.body[:300]
        drawing = xml.etree.ElementTree.fromstring(reply.body)
        svg = "{http://www.w3.org/2000/svg}"
        told = [rectangle.find(svg + "title").text for rectangle in drawing.iter(svg + "rect") if rectangle.find(svg + "title") is not None]
        assert told == [f"{row}, {column}: {float(f'{values[i][k]:.4g}'):.4g}" for i, row in enumerate(rows) for k, column in enumerate(columns)], told
        assert drawing.find(svg + "title").text == title
        written = [text.text for text in drawing.iter(svg + "text")]
        assert {*rows, *columns, title, "unchanged"} <= {*written}, written
        assert draw(client, "demo", text, "?batch=1&colormap=viridis", "image/png", **asked).body.startswith(b"\x89PNG")


@check
def a_picture_of_an_encoder_decoder_has_the_tokens_of_the_swept_part(client, _):
    text = {"text": "the cat", "target": "a street"}
    metric = {"words": [3]}
    tokens = post(client, "whole-t5", text, **{"return": ["output"]})["tokens"]
    for part, stack, at in (("encoder", "encoder", "hidden"), ("decoder", "decoder", "feed_forward"), ("cross", "decoder", "context")):
        asked = {"sweep": {"at": at, "over": ["layer", "query"], "do": "zero", "part": part}, "metric": metric, "return": ["sweep"]}
        reply = draw(client, "whole-t5", text, "?batch=0", "image/svg+xml", **asked)
        assert reply.status == 200, reply.body[:300]
        written = [element.text for element in xml.etree.ElementTree.fromstring(reply.body).iter("{http://www.w3.org/2000/svg}text")]
        assert {word.strip() for word in tokens[stack]["shown"][0]} <= {(line or "").strip() for line in written}, (part, written)
        assert any(f"the metric with {part} {at}" in (line or "") for line in written), written


@check
def pictures_that_a_sweep_has_not_are_refused_by_name(client, _):
    asked = {"sweep": {**SWEEPS[1], "items": [1]}, "metric": ONE, "return": ["sweep"]}
    for query, more, pointer, part in (("", {}, "?batch", "options.sweep changes"), ("?batch=3", {}, "?batch", "batch is 3"),
                                       ("?batch=1&layer=1", {}, "?layer", "options.sweep"), ("?batch=1&head=1", {}, "?head", "options.sweep"),
                                       ("?batch=1", {"return": ["attention"]}, "/options/return", "name it in options.return"),
                                       ("?batch=1", {"metric": None}, "/options/return", "needs options.metric")):
        reply = draw(client, "whole-gpt2", PAIR, query, "image/png", **{**asked, **more})
        told = reply.json()
        assert reply.status == 400 and part in told["error"], (query, more, told)


REFUSED = (
    ({"sweep": SWEEPS[1]}, "/options/return", "needs options.metric"),
    ({"metric": ONE}, "/options/return", "needs options.sweep"),
    ({"sweep": {"at": "hidden", "do": "zero"}, "metric": ONE}, "/options/sweep", 'has no "over"'),
    ({"sweep": {"at": "hidden", "do": "zero", "over": ["layer", "head"]}, "metric": ONE}, "/options/sweep/over", "heads are of"),
    ({"sweep": {"at": "hidden", "do": "zero", "over": ["query", "layer"]}, "metric": ONE}, "/options/sweep/over", '["layer", "query"]'),
    ({"sweep": {"at": "hidden", "do": "zero", "over": ["layer", "key"]}, "metric": ONE}, "/options/sweep/over/1", '"head"'),
    ({"sweep": {**SWEEPS[1], "queries": [4]}, "metric": ONE}, "/options/sweep/queries", "has 4"),
    ({"sweep": {**SWEEPS[1], "layers": [4]}, "metric": ONE}, "/options/sweep/layers", "has 4"),
    ({"sweep": SWEEPS[1], "metric": {"words": []}}, "/options/metric/words", "is empty"),
    ({"sweep": SWEEPS[1], "metric": {"query": 0}}, "/options/metric", 'has no "words"'),
    ({"sweep": SWEEPS[1], "metric": {"words": [1], "query": 2}}, "/options/metric/query", "is 2"),
    ({"sweep": SWEEPS[1], "metric": {"words": [100000]}}, "/options/metric/words/0", "has the id 100000"),
    ({"interventions": [{"at": "hidden", "do": "zero", "over": ["layer", "query"]}]}, "/options/interventions/0/over", "options.sweep alone"),
)


@check
def bad_sweeps_are_refused_by_name(client, _):
    for options, pointer, part in REFUSED:
        wanted = {} if "interventions" in options else {"return": ["sweep"]}
        told = refusal(client, "whole-gpt2", PAIR, **options, **wanted)
        assert told["pointer"] == pointer and part in told["error"], (options, told["pointer"], told["error"])
    assert "name it in options.return" in refusal(client, "whole-gpt2", PAIR, sweep=SWEEPS[1])["error"]
    asked = {"sweep": SWEEPS[1], "metric": ONE, "return": ["sweep"]}
    assert 'has no "part"' in refusal(client, "whole-t5", TWO_SIDED, **asked)["error"]
    assert "comes from the decoder" in refusal(client, "whole-t5", PAIR, **{**asked, "sweep": {**SWEEPS[1], "part": "encoder"}})["error"]
    assert "are words, and " in refusal(client, "head-sentiment", PAIR, **asked)["error"]
