"""
gradients.py: gradients of a metric. References are central differences of the model's own scores: of vectors given as
inputs.embeddings, and of weights that an intervention adds to.
"""

import random

from questions import near
from suite import one_in, registry

CHECKS = []
check = registry(CHECKS)
DIFFERENCE, ONE = {"words": [7, 3]}, {"words": [7], "query": 1}
RAGGED = {"ids": [[5, 6, 7, 8], [9, 4], [11, 12, 3]]}
H, CLOSE = 1e-4, 1e-5


def ask(client, model, inputs, status=200, **options):
    reply = client.post(f"/v1/models/{model}/gradients", {"inputs": inputs, "options": {"compute": "float64", **options}})
    assert reply.status == status, f"{model}: {reply.status} {reply.body[:300]}"
    return reply.json()


def vectors_of(client, model, length=4):
    source, width = random.Random(model), client.get(f"/v1/models/{model}").json()["d_model"]
    return [[source.gauss(0, 0.5) for _ in range(width)] for _ in range(length)]


def moved(vectors, i, f, by):
    return [[number + by * (i == row and f == column) for column, number in enumerate(one)] for row, one in enumerate(vectors)]


@check
def the_gradient_of_an_embedding_is_that_of_differences(client, _):
    for model, target in (("bert", {}), ("whole-gpt2", {}), ("edited-mistral", {}), ("whole-t5", {"target_ids": [[0, 4, 9]]})):
        vectors, metric = vectors_of(client, model), DIFFERENCE if model == "bert" else ONE
        told = ask(client, model, {"embeddings": vectors, **target}, metric=metric, **{"return": ["embedding"]})
        gradient = told["outputs"]["encoder_embedding" if target else "embedding"][0]
        assert told["effective"]["metric"] == {"query": -1, **metric}, told["effective"]
        for at in range(0, 12, one_in(3)):
            i, f = at % len(vectors), (7 * at + 1) % len(vectors[0])
            ends = [ask(client, model, {"embeddings": moved(vectors, i, f, by), **target}, metric=metric,
                        **{"return": ["embedding"]})["outputs"]["metric"][0] for by in (H, -H)]
            assert near(gradient[i][f], (ends[0] - ends[1]) / (2 * H), CLOSE), (model, i, f, gradient[i][f], ends)


@check
def a_head_that_reads_the_mean_gives_all_tokens_their_gradients(client, _):
    vectors, metric = vectors_of(client, "head-mean"), {"words": [1]}
    gradient = ask(client, "head-mean", {"embeddings": vectors}, metric=metric, **{"return": ["embedding"]})["outputs"]["embedding"][0]
    for i in range(len(vectors)):
        f = (7 * i + 1) % len(vectors[0])
        ends = [ask(client, "head-mean", {"embeddings": moved(vectors, i, f, by)}, metric=metric,
                    **{"return": ["embedding"]})["outputs"]["metric"][0] for by in (H, -H)]
        assert near(gradient[i][f], (ends[0] - ends[1]) / (2 * H), CLOSE), (i, f, gradient[i][f], ends)


def scored(client, model, inputs, edits):
    """The metric ONE of each item, with the interventions."""
    reply = client.post(f"/v1/models/{model}/attention",
                        {"inputs": inputs, "options": {"compute": "float64", "return": ["word_scores"], "words": ONE["words"], "interventions": edits}})
    assert reply.status == 200, reply.body[:300]
    return [rows[ONE["query"]][0] for rows in reply.json()["outputs"]["word_scores"]["log_probabilities"]]


@check
def the_gradient_of_a_map_is_that_of_weights_that_are_added_to(client, _):
    for model, prefix, edit, target in (("bert", "", {}, {}), ("whole-gpt2", "", {}, {}),
                                        ("whole-t5", "cross_", {"part": "cross"}, {"target_ids": [[0, 4], [0, 9, 2], [0, 1]]})):
        inputs = {**RAGGED, **target}
        maps = ask(client, model, inputs, metric=ONE, **{"return": ["attention", "attention_gradient"]})["outputs"]
        gradient = maps[f"{prefix}attention"]
        own = client.post(f"/v1/models/{model}/attention", {"inputs": inputs, "options": {"compute": "float64"}}).json()["outputs"][f"{prefix}attention"]
        for layer, head, query, key in [(0, 0, 0, 0), (0, 3, 1, 1), (1, 2, 1, 0), (1, 1, 0, 1)][::one_in(2)]:
            at = {"at": "attention", "layers": [layer], "heads": [head], "queries": [query], "keys": [key], "do": "add", "value": [1], **edit}
            above, below = (scored(client, model, inputs, [{**at, "factor": by}]) for by in (H, -H))
            for item in range(3):
                hidden = own[layer][item][head][query][key] == 0
                wanted = 0 if hidden else (above[item] - below[item]) / (2 * H)
                assert near(gradient[layer][item][head][query][key], wanted, CLOSE), (model, layer, item, head, query, key)
                products = [a[query][key] * g[query][key] for a, g in zip(own[layer][item], gradient[layer][item])]
                mean = sum(max(product, 0) for product in products) / len(products)
                assert near(maps[f"{prefix}attention_gradient"][layer][item][query][key], mean, 1e-12), (model, layer, item)


@check
def integrated_gradients_are_sums_on_the_way(client, _):
    vectors = vectors_of(client, "edited-mistral")
    told = ask(client, "edited-mistral", {"embeddings": vectors}, metric=ONE, steps=2, **{"return": ["integrated"]})
    assert (told["effective"]["steps"], told["effective"]["baseline"]) == (2, "zero")
    halves = [ask(client, "edited-mistral", {"embeddings": [[share * number for number in row] for row in vectors]}, metric=ONE,
                  **{"return": ["embedding"]})["outputs"]["embedding"][0] for share in (0.25, 0.75)]
    for i, row in enumerate(vectors):
        for f, number in enumerate(row):
            assert near(told["outputs"]["integrated"][0][i][f], number * (halves[0][i][f] + halves[1][i][f]) / 2, 1e-12), (i, f)
    for model, target in (("bert", {}), ("whole-gpt2", {}), ("whole-t5", {"target_ids": [[0, 4], [0, 9, 2], [0, 1]]})):
        error = [max(map(abs, ask(client, model, {**RAGGED, **target}, metric=ONE, steps=steps, baseline="pad" if target else "zero",
                                  **{"return": ["integrated"]})["outputs"]["integrated_error"])) for steps in (4, 64)]
        assert error[1] < error[0] / 4, (model, error)


@check
def items_are_as_alone_and_selections_are_parts(client, _):
    for model in ("bert", "whole-gpt2"):
        wanted = {"metric": DIFFERENCE, "return": ["attention", "embedding", "attention_gradient"]}
        whole = ask(client, model, RAGGED, **wanted)["outputs"]
        for item, ids in enumerate(RAGGED["ids"]):
            alone, n = ask(client, model, {"ids": [ids]}, **wanted)["outputs"], len(ids)
            assert whole["metric"][item] == alone["metric"][0]
            assert [row for row in whole["embedding"][item]][:n] == alone["embedding"][0], (model, item)
            assert all(number == 0 for row in whole["embedding"][item][n:] for number in row), (model, item)
            assert [[row[:n] for row in head[:n]] for head in whole["attention"][1][item]] == alone["attention"][1][0], (model, item)
        part = ask(client, model, RAGGED, **wanted, layers=[1], heads=[2, 0], queries=[3, 1], keys=[1])["outputs"]
        for item in range(3):
            rows = [[[whole["attention"][1][item][h][q][1]] for q in (3, 1)] for h in (2, 0)]
            assert part["attention"][0][item] == rows, (model, item)
            assert part["attention_gradient"][0][item] == [[whole["attention_gradient"][1][item][q][1]] for q in (3, 1)], (model, item)


@check
def a_class_is_named_by_its_label(client, _):
    labels = client.post("/v1/models/head-sentiment/attention", {"inputs": {"ids": [2, 9, 3]}, "options": {"return": ["classes"]}}).json()["outputs"]["classes"]
    for number, label in enumerate(labels["labels"]):
        told = [ask(client, "head-sentiment", {"ids": [2, 9, 3]}, metric={"words": [word]}, **{"return": ["embedding"]}) for word in (label, number)]
        assert told[0]["outputs"] == told[1]["outputs"] and told[0]["effective"]["metric"] == {"words": [number]}, told[0]["effective"]


REFUSED = (
    ("whole-gpt2", RAGGED, {"metric": {"words": [7], "query": 2}}, "/options/metric/query", "item 1 has queries 0 to 1"),
    ("whole-gpt2", RAGGED, {"metric": {"words": [10**6]}}, "/options/metric/words/0", "has the id 1000000"),
    ("whole-gpt2", RAGGED, {"metric": ONE, "compute": "bfloat16"}, "/options/compute", "float32 or float64"),
    ("whole-t5", RAGGED, {"metric": ONE}, "/options/metric", "comes from the decoder"),
    ("head-sentiment", RAGGED, {"metric": {"words": ["none such"]}}, "/options/metric/words/0", "is no class of the model"),
    ("head-sentiment", RAGGED, {"metric": {"words": [0], "query": 0}}, "/options/metric/query", "reads one token"),
    ("whole-gpt2", RAGGED, {"metric": ONE, "interventions": []}, "/options/interventions", "belongs to /attention"),
    ("whole-gpt2", RAGGED, {"metric": ONE, "heads": [4]}, "/options/heads", "numbered 0 to 3"),
    ("whole-gpt2", RAGGED, {"metric": ONE, "queries": [4]}, "/options/queries", "numbered 0 to 3"),
    ("whole-gpt2", RAGGED, {"metric": ONE, "keys": "2-4"}, "/options/keys", "numbered 0 to 3"),
    ("whole-gpt2", RAGGED, {"metric": ONE, "keys": [1, 1], "return": ["attention_gradient"]}, "/options/keys", "one twice"),
)


@check
def what_has_no_gradient_is_refused_by_name(client, _):
    for model, inputs, options, pointer, part in REFUSED:
        told = ask(client, model, inputs, status=400, **options)
        assert told["pointer"] == pointer and part in told["error"], (model, options, told["pointer"], told["error"])
