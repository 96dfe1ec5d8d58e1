"""
classes.py: heads of classes and pooled vectors of whole models, on the folders that tokens.py stages and those added here.
"""

import json
import math
import pathlib
import sys

import tensor_file
import tokens
from asking import post, refusal
from suite import registry

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "others" / "models"))

import made_weights  # noqa: E402

CHECKS = []
check = registry(CHECKS)
LABELS = {"0": "bad", "1": "so so", "2": "good"}
WIDTH = 32
SENTENCE = "the animal did not cross the street"
HEADS = {  # name: architecture, other members of config.json, shapes of the head
    "sentiment": ("BertForSequenceClassification", {"id2label": LABELS},
                  {"bert.pooler.dense.weight": [WIDTH, WIDTH], "bert.pooler.dense.bias": [WIDTH],
                   "classifier.weight": [3, WIDTH], "classifier.bias": [3]}),
    "named": ("BertForTokenClassification", {}, {"classifier.weight": [4, WIDTH], "classifier.bias": [4]}),
    "answers": ("BertForQuestionAnswering", {}, {"qa_outputs.weight": [2, WIDTH], "qa_outputs.bias": [2]}),
    "number": ("BertForSequenceClassification", {"problem_type": "regression"},
               {"bert.pooler.dense.weight": [WIDTH, WIDTH], "bert.pooler.dense.bias": [WIDTH], "classifier.weight": [1, WIDTH],
                "classifier.bias": [1]}),
    "other-heads": ("HF_ColBERT", {}, {"linear.weight": [8, WIDTH], "v_head.summary.weight": [1, WIDTH],
                                       "v_head.summary.bias": [1], "crf.transitions": [2, 2],
                                       "bert.pooler.dense.weight": [WIDTH, WIDTH], "bert.pooler.dense.bias": [WIDTH]}),
    "inside": ("BertModel", {}, {"bert.encoder.layer.0.attention.self.distance.weight": [8, WIDTH]}),
    "no-labels": ("BertForSequenceClassification", {"id2label": {"0": 3, "x": "y", "-1": "z", "99": "w", "1": "one"}},
                  {"bert.pooler.dense.weight": [WIDTH, WIDTH], "bert.pooler.dense.bias": [WIDTH],
                   "classifier.weight": [2, WIDTH], "classifier.bias": [2]}),
}
MEAN = {}  # weights of ModernBERT, whose head reads the mean
POOLED = {  # name: modules behind the model, modes
    "mean": (["Pooling", "Normalize"], ["mean_tokens"]),
    "cls": (["Pooling"], ["cls_token"]),
    "max": (["Pooling"], ["max_tokens"]),
    "root": (["Pooling"], ["mean_sqrt_len_tokens"]),
    "last": (["Pooling"], ["lasttoken"]),
    "two": (["Pooling"], ["cls_token", "max_tokens"]),
    "dense": (["Pooling", "Dense", "Normalize"], ["mean_tokens"]),
}


def stage(folder):
    source = tokens.OWN / "bert"
    weights, _ = tensor_file.read((source / "model.safetensors").read_bytes())
    weights = {name: tensor for name, tensor in weights.items() if "pooler" not in name and not name.startswith("cls.seq")}
    config = json.loads((source / "config.json").read_text())
    assert config["hidden_size"] == WIDTH, config
    for name, (architecture, members, shapes) in HEADS.items():
        model = folder / f"head-{name}"
        model.mkdir()
        (model / "config.json").write_text(json.dumps({**config, "architectures": [architecture], **members}))
        (model / "model.safetensors").write_bytes(tensor_file.write({**weights, **made_weights.tensors(shapes)}))
        (model / "tokenizer.json").symlink_to(source / "tokenizer.json")
    for name, (modules, modes) in POOLED.items():
        tokens.add_model(folder, f"pooled-{name}", (source / "tokenizer.json").read_bytes())
        model = folder / f"pooled-{name}"
        listed = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}]
        listed += [{"idx": i, "name": str(i), "path": f"{i}_{module}", "type": f"sentence_transformers.models.{module}"}
                   for i, module in enumerate(modules, 1)]
        (model / "modules.json").write_text(json.dumps(listed))
        (model / "1_Pooling").mkdir()
        (model / "1_Pooling" / "config.json").write_text(json.dumps(
            {"word_embedding_dimension": WIDTH, **{f"pooling_mode_{mode}": mode in modes for mode in (
                "cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken")}}))


    mean = folder / "head-mean"
    recorded = tokens.recorded_models()
    recorded.prepare(recorded.folders()["modernbert-classes"], mean)
    config = json.loads((mean / "config.json").read_text())
    (mean / "config.json").write_text(json.dumps({**config, "classifier_pooling": "mean"}))
    MEAN.update(tensor_file.read((mean / "model.safetensors").read_bytes())[0])


def near(got, wanted, tolerance=1e-5):
    return len(got) == len(wanted) and all(abs(a - b) < tolerance for a, b in zip(got, wanted))


def affine(shapes, name, vector):
    _, (rows, _), numbers = made_weights.tensors(shapes)[f"{name}.weight"]
    bias = made_weights.tensors(shapes)[f"{name}.bias"][2]
    return [sum(w * x for w, x in zip(numbers[r * len(vector):], vector)) + bias[r] for r in range(rows)]


@check
def a_head_of_classes_gives_labels_logits_and_probabilities(client, _):
    answer = post(client, "head-sentiment", {"text": [SENTENCE, "a street"]}, **{"return": ["classes", "logits", "output"]})
    classes, shapes = answer["outputs"]["classes"], HEADS["sentiment"][2]
    assert classes["labels"] == list(LABELS.values()) and answer["shapes"]["classes"] == [2, 3], answer["shapes"]
    assert classes["logits"] == answer["outputs"]["logits"]
    for item in range(2):
        pooled = [math.tanh(z) for z in affine(shapes, "bert.pooler.dense", answer["outputs"]["output"][item][0])]
        logits = affine(shapes, "classifier", pooled)
        assert near(classes["logits"][item], logits), (classes["logits"], logits)
        powers = [math.exp(z) for z in logits]
        assert near(classes["probabilities"][item], [power / sum(powers) for power in powers])
    row = client.get("/v1/models/head-sentiment").json()
    assert "classes" in row["returns"] and "predictions" not in row["returns"] and row["labels"] == list(LABELS.values()), row
    assert row["ignored"] == [name for name in row["ignored"] if name.startswith("cls.")], row["ignored"]


def product(name, vector):
    rows = MEAN[f"{name}.weight"][2]
    return [sum(w * x for w, x in zip(rows[at:], vector)) for at in range(0, len(rows), len(vector))]


@check
def a_head_of_modernbert_reads_the_mean_of_all_tokens(client, _):
    """As transformers with classifier_pooling "mean": the mean over the tokens, then dense, GELU, LayerNorm and classifier."""
    answer = post(client, "head-mean", {"ids": [[5, 6, 7, 8, 9], [11, 4], [3]]}, **{"return": ["classes", "output"], "compute": "float64"})
    for item, count in enumerate(answer["lengths"]):
        rows = answer["outputs"]["output"][item][:count]
        dense = [z * (1 + math.erf(z / math.sqrt(2))) / 2 for z in product("head.dense", [sum(c) / count for c in zip(*rows)])]
        middle = sum(dense) / len(dense)
        spread = math.sqrt(sum((z - middle) ** 2 for z in dense) / len(dense) + 1e-5)
        normed = [(z - middle) / spread * gain for z, gain in zip(dense, MEAN["head.norm.weight"][2])]
        logits = [z + shift for z, shift in zip(product("classifier", normed), MEAN["classifier.bias"][2])]
        assert near(answer["outputs"]["classes"]["logits"][item], logits, 1e-12), (answer["outputs"]["classes"]["logits"][item], logits)


@check
def words_are_refused_where_the_head_is_one_of_classes(client, _):
    for result in ("predictions", "logit_lens"):
        told = refusal(client, "head-sentiment", {"text": SENTENCE}, **{"return": [result]})
        assert told["error"] == (f'"{result}" are words, and BertForSequenceClassification ends in a head of classes: ask for '
                                 '"classes"'), told
    told = refusal(client, "bert", {"text": SENTENCE}, **{"return": ["classes"]})
    assert "has none: \"architectures\" of its configuration names the head" in told["error"], told


@check
def classes_of_tokens_follow_the_selected_queries(client, _):
    whole = post(client, "head-named", {"text": SENTENCE}, **{"return": ["classes"]})["outputs"]["classes"]
    some = post(client, "head-named", {"text": SENTENCE}, **{"return": ["classes"], "queries": [3, 1]})["outputs"]["classes"]
    assert some["logits"][0] == [whole["logits"][0][3], whole["logits"][0][1]], some
    assert some["probabilities"][0][0] == whole["probabilities"][0][3]
    assert whole["labels"] == ["LABEL_0", "LABEL_1", "LABEL_2", "LABEL_3"], whole["labels"]


@check
def the_best_answer_is_a_part_of_the_pair(client, _):
    inputs = {"text": "what did not cross", "pair": SENTENCE}
    answer = post(client, "head-answers", inputs, **{"return": ["classes"]})
    classes, told = answer["outputs"]["classes"], post(client, "head-answers", inputs)["tokens"]
    segments = client.post("/v1/models/head-answers/tokens", {"inputs": inputs}).json()["segments"][0]
    places = [i for i, segment in enumerate(segments) if segment == 1]
    start, end = classes["start"][0], classes["end"][0]
    _, first, last = max((start[i] + end[j], i, j) for i in places for j in places if i <= j)
    best = classes["answer"][0]
    assert best["tokens"] == [first, last], (best, first, last)
    assert best["offsets"] == [told["offsets"][0][first][0], told["offsets"][0][last][1]], best
    assert best["text"] == SENTENCE[best["offsets"][0]:best["offsets"][1]], best
    shares = [math.exp(row[at]) / sum(math.exp(row[i]) for i in places) for row, at in ((start, first), (end, last))]
    assert abs(best["probability"] - shares[0] * shares[1]) < 1e-6, best
    one = post(client, "head-answers", inputs, **{"return": ["classes"], "queries": [2]})["outputs"]["classes"]
    assert one["start"] == [[start[2]]] and one["answer"] == classes["answer"], one
    ids = post(client, "head-answers", {"ids": [5, 6, 7]}, **{"return": ["classes", "logits"]})["outputs"]
    assert "text" not in ids["classes"]["answer"][0] and ids["logits"][0][0] == [ids["classes"]["start"][0][0],
                                                                                ids["classes"]["end"][0][0]], ids


@check
def a_regression_has_numbers_alone(client, _):
    classes = post(client, "head-number", {"text": SENTENCE}, **{"return": ["classes"]})["outputs"]["classes"]
    assert set(classes) == {"labels", "logits"} and classes["labels"] == ["LABEL_0"], classes


@check
def labels_that_are_no_texts_get_names(client, _):
    assert client.get("/v1/models/head-no-labels").json()["labels"] == ["LABEL_0", "one"]


@check
def a_head_that_is_switched_off_moves_the_classes(client, _):
    whole = post(client, "head-sentiment", {"text": SENTENCE}, **{"return": ["classes"]})["outputs"]["classes"]["logits"]
    moved = post(client, "head-sentiment", {"text": SENTENCE}, **{"return": ["classes"], "ablate": [[0, 1]]})
    assert not near(moved["outputs"]["classes"]["logits"][0], whole[0], 1e-6), moved


@check
def heads_that_are_not_run_are_listed_and_do_not_stop_a_model(client, _):
    row = client.get("/v1/models/head-other-heads").json()
    assert row["state"] == "ready" and set(HEADS["other-heads"][2]) <= set(row["ignored"]), row
    inside = client.get("/v1/models/head-inside").json()
    assert inside["state"] == "broken" and "bert.encoder.layer.0.attention.self.distance.weight has no place" in inside["reason"]


@check
def a_file_of_tensors_has_the_labels_beside_it(client, _):
    reply = client.send("POST", "/v1/models/head-sentiment/attention",
                        json.dumps({"inputs": {"text": SENTENCE}, "options": {"return": ["classes"]}}),
                        {"Content-Type": "application/json", "Accept": "application/vnd.attnd.safetensors"})
    found, texts = tensor_file.read(reply.body)
    assert {"classes.logits", "classes.probabilities"} <= set(found) and json.loads(texts["classes.labels"]) == list(LABELS.values())


@check
def the_second_protocol_has_classes_labels_and_embedding(client, _):
    text = {"name": "TEXT", "datatype": "BYTES", "shape": [1], "data": [SENTENCE]}
    told = client.post("/v2/models/head-sentiment/infer", {"inputs": [text]}).json()
    outputs = {output["name"]: output for output in told["outputs"]}
    mine = post(client, "head-sentiment", {"text": SENTENCE}, **{"return": ["classes"]})["outputs"]["classes"]
    assert outputs["CLASSES"]["shape"] == [1, 3] and outputs["CLASSES"]["data"] == mine["probabilities"][0], outputs
    assert outputs["LABELS"]["data"] == list(LABELS.values()), outputs
    listed = {output["name"]: output["shape"] for output in client.get("/v2/models/head-sentiment").json()["outputs"]}
    assert listed["CLASSES"] == [-1, 3] and listed["LABELS"] == [3], listed
    told = client.post("/v2/models/pooled-mean/infer", {"inputs": [text], "outputs": [{"name": "EMBEDDING"}]}).json()
    assert told["outputs"][0]["shape"] == [1, WIDTH], told
    for model, output, needs in (("pooled-mean", "CLASSES", "a head of classes"),
                                 ("head-sentiment", "EMBEDDING", "the pooling of sentence-transformers")):
        told = client.post(f"/v2/models/{model}/infer", {"inputs": [text], "outputs": [{"name": output}]})
        assert told.status == 400 and f"is {output}, which needs {needs}" in told.json()["error"], told.body
    told = client.post("/v2/models/head-answers/infer", {"inputs": [text], "outputs": [{"name": "CLASSES"}]}).json()
    assert told["outputs"][0]["shape"][2] == 2, told
    told = client.post("/v2/models/head-answers/infer", {"inputs": [text], "outputs": [{"name": "LABELS"}]}).json()
    assert told["outputs"][0]["data"] == ["start", "end"], told


@check
def an_embedding_is_the_pooled_output(client, _):
    for name, (modules, modes) in POOLED.items():
        if name in ("two", "dense"):
            continue
        answer = post(client, f"pooled-{name}", {"text": [SENTENCE, "a street"]}, **{"return": ["embedding", "output"]})
        outputs = answer["outputs"]
        for item, count in enumerate(answer["lengths"]):
            rows = outputs["output"][item][:count]
            columns = list(zip(*rows))
            wanted = {"mean_tokens": [sum(c) / count for c in columns], "cls_token": rows[0], "max_tokens": [max(c) for c in columns],
                      "mean_sqrt_len_tokens": [sum(c) / math.sqrt(count) for c in columns], "lasttoken": rows[-1]}[modes[0]]
            if "Normalize" in modules:
                length = math.sqrt(sum(x * x for x in wanted))
                wanted = [x / length for x in wanted]
            assert near(outputs["embedding"][item], wanted), (name, item)
        assert "embedding" in client.get(f"/v1/models/pooled-{name}").json()["returns"]


@check
def a_pooling_that_cannot_run_says_why(client, _):
    for model, why in (("pooled-two", "asks for 2 modes of pooling"), ("pooled-dense", "has the module Dense at place 2"),
                       ("bert", "the folder of this model has no 1_Pooling/config.json")):
        assert why in refusal(client, model, {"text": SENTENCE}, **{"return": ["embedding"]})["error"], model
    assert "embedding" not in client.get("/v1/models/pooled-dense").json()["returns"]
