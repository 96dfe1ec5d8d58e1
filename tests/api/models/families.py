"""
families.py: what every family of models can return, and what it gives under the Open Inference Protocol. Its numbers are
those of the model's own endpoint; of an encoder-decoder they are the encoder's.
"""

from suite import Skipped, registry

import tokens

CHECKS = []
check = registry(CHECKS)
TEXTS = ["the cat sat", "a"]
REQUEST = {"inputs": [{"name": "TEXT", "datatype": "BYTES", "shape": [2], "data": TEXTS}]}


def names(client, kind):
    rows = [row for row in client.get("/v1/models").json()["models"] if row["state"] == "ready" and row["kind"] == kind]
    if not rows:
        raise Skipped(f"needs a recorded model of kind {kind} (ATTN_SHARED)")
    return [row["name"] for row in rows if row["tokenizer"] or kind == "image"]


def flat(nested):
    return [number for row in nested for number in flat(row)] if isinstance(nested, list) else [nested]


def hold_alike(client, name, prefix):
    answer = client.post(f"/v1/models/{name}/attention",
                         {"inputs": {"text": TEXTS}, "options": {"return": ["attention", "hidden"]}})
    assert answer.status == 200, answer.body[:300]
    reply = client.post(f"/v2/models/{name}/infer", REQUEST)
    assert reply.status == 200, reply.body[:300]
    maps, hidden = (answer.json()["outputs"][prefix + result] for result in ("attention", "hidden"))
    given = {output["name"]: output for output in reply.json()["outputs"]}
    layers, longest = len(maps), len(hidden[0][0])
    assert given["ATTENTION"]["shape"] == [layers, 2, len(maps[0][0]), longest, longest], given["ATTENTION"]["shape"]
    assert given["ATTENTION"]["data"] == flat(maps), name
    assert given["OUTPUT"]["shape"] == [2, longest, len(hidden[0][0][0])], given["OUTPUT"]["shape"]
    assert given["OUTPUT"]["data"] == flat(hidden[-1]), name
    words = given["TOKENS"]
    assert words["shape"] == [2, longest] and words["data"][0] and words["data"][-1] == "", words


@check
def encoders_and_encoder_decoders_give_their_encoder(client, _):
    for name in names(client, "encoder-decoder"):
        hold_alike(client, name, "encoder_")
    assert "demo" in names(client, "encoder")
    hold_alike(client, "demo", "")


@check
def models_of_images_are_refused_by_name(client, _):
    for name in names(client, "image"):
        assert client.get(f"/v2/models/{name}").json()["inputs"] == []
        for body in (REQUEST, {"inputs": []}, {"inputs": [{"name": "PIXELS", "datatype": "FP32", "shape": [1], "data": [0]}]}):
            reply = client.post(f"/v2/models/{name}/infer", body)
            assert reply.status == 400 and "inputs.pixels" in reply.json()["error"], reply.body[:300]
            assert f'"{name}" reads images' in reply.json()["error"], reply.body[:300]


@check
def whatever_a_model_says_it_returns_can_be_asked_for(client, _):
    for row in client.get("/v1/models").json()["models"]:
        if row["state"] != "ready" or row["kind"] in ("image", "audio"):
            continue
        inputs = {"ids": [1, 2, 3], **({"target_ids": [1, 2]} if row["kind"] == "encoder-decoder" else {})}
        words = {"words": "next"} if "word_scores" in row["returns"] else {}
        words.update({"new_tokens": 2} if "generated" in row["returns"] else {})
        if "sweep" in row["returns"]:
            part = {"part": "encoder"} if row["kind"] == "encoder-decoder" else {}
            words.update(sweep={"at": "hidden", "over": ["layer", "query"], "do": "zero", **part}, metric={"words": [1]})
        reply = client.post(f"/v1/models/{row['name']}/attention",
                            {"inputs": inputs, "options": {"return": row["returns"], "predictions_k": 1, **words}})
        assert reply.status == 200, (row["name"], reply.body[:300])
        if row["kind"] == "encoder-decoder":
            assert {"encoder_rollout", "decoder_rollout", "cross_attention"} < set(reply.json()["outputs"]), row["name"]


@check
def paths_of_the_first_protocol_name_those_here(client, _):
    for path in ("demo:predict", "demo:explain", "none:predict"):
        reply = client.post(f"/v1/models/{path}", {"instances": ["a"]})
        assert reply.status == 404 and "/v2/models/{model}/infer" in reply.json()["error"], reply.body[:300]
        assert path in reply.json()["error"], reply.body[:300]
    assert client.post("/v1/models/demo", {}).status == 405


@check
def the_models_of_the_tests_are_there(client, _):
    """So that no check above holds for nothing."""
    assert tokens.whole_models() and f"whole-{tokens.whole_models()[0].name}" in names(client, "encoder-decoder")


@check
def models_of_classes_never_answer_scores_of_words(client, _):
    for name, of, architecture in tokens.CLASSIFIERS:
        returns = client.get(f"/v1/models/{name}").json()["returns"]
        assert "attention" in returns and not {"logits", "predictions", "logit_lens"} & set(returns), (name, returns)
        inputs = {"text": "a cat", **({"target": "a"} if of == "t5" else {})}
        lacked = {"gpt2": "score.weight", "bert": "classifier.weight", "t5": "qa_outputs.weight"}[of]
        for result in ("logits", "predictions", "logit_lens"):
            reply = client.post(f"/v1/models/{name}/attention", {"inputs": inputs, "options": {"return": [result]}})
            assert reply.status == 400 and reply.json()["pointer"] == "/options/return", reply.body[:300]
            told = reply.json()["error"]
            assert f'"{result}" needs a head, and {architecture} ends in one of classes that attnd cannot run (the files lack the tensor {lacked}): ask' in told, told
        reply = client.post(f"/v1/models/{name}/attention", {"inputs": inputs, "options": {"return": ["classes"]}})
        assert f"{architecture} has one that attnd cannot run (the files lack the tensor {lacked})" in reply.json()["error"], reply.body[:300]
        # The maps and hidden states are those of the model without its head.
        request = {"inputs": inputs, "options": {"return": ["attention", "hidden"]}}
        mine = client.post(f"/v1/models/{name}/attention", request)
        assert mine.status == 200, mine.body[:300]
        same = {"bert": "bert", "t5": "whole-t5"}.get(of)
        if same is not None:
            assert mine.json()["outputs"] == client.post(f"/v1/models/{same}/attention", request).json()["outputs"], name
