"""
tokens.py: POST /v1/models/{m}/tokens against what transformers and tokenizers recorded, and what it refuses.

Every tokenizer stands in a folder with the weights of bert, so that also those are tested whose own model is not here.
"""

import importlib.util
import json
import os
import pathlib
import re

from attnd import Server, wait_until
from suite import Skipped, registry

ROOT = pathlib.Path(__file__).resolve().parents[3]
OWN = ROOT / "tests" / "others" / "models"
OWN_CASES = ROOT / "tests" / "unit" / "server" / "codec" / "tokenizer" / "vectors"
SHARED = pathlib.Path(os.environ.get("ATTN_SHARED", ROOT.parent / "shared")) / "vectors" / "models"
SECRET = "xylophone"
# The tokens of Llama 2 in little: bytes that have no token of their own are spelled in hexadecimal.
BYTE_FALLBACK = {"model": {"type": "BPE", "unk_token": "<unk>", "byte_fallback": True, "merges": [],
                           "vocab": {token: i for i, token in enumerate(("<unk>", "\u2581", "a", "b", "<0x00>", "<0xC3>"))}},
                 "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"},
                 "decoder": {"type": "Sequence", "decoders": [
                     {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
                     {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}}
CLASSIFIERS = (("classes-gpt2", "gpt2", "GPT2ForSequenceClassification"), ("classes-bert", "bert", "BertForTokenClassification"),
               ("classes-t5", "t5", "T5ForQuestionAnswering"))
CHECKS = []
check = registry(CHECKS)


def stage(folder):
    """Folders of models for --models, one for each tokenizer."""
    sources = {path.parent.name: path for path in (*OWN.glob("*/tokenizer.json"), *SHARED.glob("**/tokenizer.json"))}
    for name, tokenizer in sources.items():
        add_model(folder, name, tokenizer.read_bytes())
    for model in whole_models():
        (folder / f"whole-{model.name}").symlink_to(model)
    add_model(folder, "bytes", json.dumps(BYTE_FALLBACK).encode())
    for name, of, architecture in CLASSIFIERS:
        add_classifier(folder, name, OWN / of, architecture)
    add_model(folder, "bare", None)
    add_model(folder, "damaged", b'{"model": {"type": "Later"}}')


def whole_models():
    """Encoder-decoders, a decoder and a model of images, with their own weights."""
    return [OWN / "t5", OWN / "gpt2", *(SHARED / name for name in ("t5-gated", "bart", "vit") if (SHARED / name).exists())]


def recorded_models():
    """The module run.py of tests/others/models, which unpacks recorded models and gives them their weights."""
    spec = importlib.util.spec_from_file_location("recorded_models", OWN / "run.py")
    recorded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(recorded)
    return recorded


def add_model(folder, name, tokenizer):
    model = folder / name
    model.mkdir()
    for file in ("config.json", "model.safetensors"):
        (model / file).symlink_to(OWN / "bert" / file)
    if tokenizer is not None:
        (model / "tokenizer.json").write_bytes(tokenizer)


def add_classifier(folder, name, source, architecture):
    """The model of the folder source under another architecture: tied words, and the head of classes is not there."""
    model = folder / name
    model.mkdir()
    for file in ("model.safetensors", "tokenizer.json"):
        (model / file).symlink_to(source / file)
    config = json.loads((source / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, "architectures": [architecture]}))


def tokenize(client, model, inputs, **options):
    reply = client.post(f"/v1/models/{model}/tokens", {"inputs": inputs, "options": options})
    assert reply.status == 200, f"{model}: {reply.status} {reply.body[:300]}"
    return reply.json()


def refusal(client, model, inputs, status=400, **options):
    reply = client.post(f"/v1/models/{model}/tokens", {"inputs": inputs, "options": options})
    assert reply.status == status, f"{model}: {reply.status} {reply.body[:300]}"
    return reply.json()


def recorded(file, own):
    """{name of the tokenizer: content} of every recorded file of that name."""
    found = {path.parent.name: json.loads(path.read_text()) for path in sorted(SHARED.glob(f"**/{file}"))}
    return found or {path.parent.name: json.loads(path.read_text()) for path in sorted(own.glob(f"*/{file}"))}


# ---- what was recorded ----

@check
def all_recordings_are_here(client, _):
    if not SHARED.exists():
        raise Skipped("needs the recorded models (ATTN_SHARED); bert, gpt2 and t5 are tested without them")
    assert len(recorded("tokenizer_cases.json", OWN_CASES)) >= 11


@check
def cases_of_models_have_the_recorded_tokens(client, _):
    compared = 0
    for model, content in recorded("cases.json", OWN).items():
        for case in content["cases"]:
            texts = case.get("batch") or [case["text"]] if "batch" in case or "text" in case else None
            if texts is None or "special_tokens_mask" not in case:
                continue
            inputs = {"text": texts, **({"pair": [case["pair"]]} if "pair" in case else {})}
            special = case["options"].get("add_special_tokens", True)
            compare_case(f"{model} {case['name']}", case, tokenize(client, model, inputs, special_tokens=special))
            compared += 1
    assert compared >= 15, compared


def compare_case(where, case, answer):
    """The rows of the recorded case without their padding."""
    real = [[bool(one) for one in row] for row in case["attention_mask"]]
    for name, member in (("input_ids", "ids"), ("tokens", "tokens"), ("offsets", "offsets"),
                         ("special_tokens_mask", "special"), ("token_type_ids", "type_ids")):
        if name in case:
            rows = [[one for one, is_real in zip(row, keeps) if is_real] for row, keeps in zip(case[name], real)]
            assert answer[member] == rows, f"{where}: {member} {answer[member]} and not {rows}"
    assert answer["lengths"] == [sum(row) for row in real], where


@check
def cases_of_tokenizers_have_the_recorded_ids_and_texts(client, _):
    compared = 0
    for model, content in recorded("tokenizer_cases.json", OWN_CASES).items():
        cases = [case for case in content["cases"] if "\0" not in case["text"]]
        texts = [case["text"] for case in cases]
        plain, special = (tokenize(client, model, {"text": texts}, special_tokens=add) for add in (False, True))
        decoded = tokenize(client, model, {"ids": [case["ids"] for case in cases]})
        for i, case in enumerate(cases):
            where = f"{model} {case['text']!r}"
            assert plain["ids"][i] == case["ids"], where
            assert plain["tokens"][i] == case["tokens"], where
            assert special["ids"][i] == case["ids_with_special"], where
            assert decoded["text"][i] == case["decoded"], where
        compared += len(cases)
    assert compared >= 600, compared


@check
def pairs_have_the_recorded_ids_and_types(client, _):
    for model, content in recorded("tokenizer_cases.json", OWN_CASES).items():
        pair = content["pair"]
        answer = tokenize(client, model, {"text": pair["text"], "pair": pair["pair"]})
        for name, member in (("ids", "ids"), ("tokens", "tokens"), ("type_ids", "type_ids")):
            assert answer[member] == [pair[name]], f"{model}: {member} {answer[member]}"
        assert answer["special"] == [[bool(one) for one in pair["special_tokens_mask"]]], model


@check
def targets_become_the_recorded_inputs_of_the_decoder(client, _):
    for model in whole_models():
        for case in json.loads((model / "cases.json").read_text())["cases"]:
            target = case.get("decoder_batch", case.get("decoder_text"))
            if target is None:
                continue
            request = {"inputs": {"text": case.get("batch", case.get("text")), "target": target},
                       "options": {"layers": [0], "return": ["attention_mean"]}}
            reply = client.post(f"/v1/models/whole-{model.name}/attention", request)
            assert reply.status == 200, f"{model.name}: {reply.body[:300]}"
            answer, keeps = reply.json(), case["decoder_attention_mask"]
            for name, member in (("decoder_input_ids", "ids"), ("decoder_tokens", "text")):
                rows = [[one for one, keep in zip(*both) if keep] for both in zip(case[name], keeps)]
                assert answer["tokens"]["decoder"][member] == rows, f"{model.name} {case['name']}: {member}"
            assert answer["lengths"]["decoder"] == [sum(row) for row in keeps], case["name"]


@check
def a_text_with_nul_is_refused_by_name(client, _):
    problem = refusal(client, "bert", {"text": ["a", "b\0"]})
    assert problem["pointer"] == "/inputs/text/1" and "U+0000" in problem["error"], problem
    problem = refusal(client, "bert", {"text": "a", "pair": "b\0"})
    assert problem["pointer"] == "/inputs/pair" and "U+0000" in problem["error"], problem


# ---- the answer ----

@check
def segments_and_offsets_belong_to_their_text(client, _):
    answer = tokenize(client, "bert", {"text": "a b", "pair": "c"})
    assert answer["segments"] == [[None, 0, 0, None, 1, None]], answer
    assert answer["offsets"] == [[[0, 0], [0, 1], [2, 3], [0, 0], [0, 1], [0, 0]]], answer


@check
def texts_may_be_empty_and_longer_than_the_model(client, _):
    assert tokenize(client, "bert", {"text": ""}, special_tokens=False)["ids"] == [[]]
    assert tokenize(client, "bert", {"text": "a " * 1000})["lengths"] == [1002]
    assert tokenize(client, "bert", {"ids": []})["text"] == [""]
    longest = client.get("/v1/models/bert").json()["longest"]
    short = tokenize(client, "bert", {"text": "a " * 1000}, truncate=True)
    assert short["lengths"] == [longest] and short["tokens"][0][-1] == "[SEP]", short["lengths"]


@check
def unknown_words_give_hints(client, _):
    answer = tokenize(client, "bert", {"text": ["a cat", "a 注 😀"]})
    (hint,) = answer["diagnostics"]["hints"]
    assert hint["pointer"] == "/inputs/text/1" and "2 words" in hint["message"] and "2 to 3" in hint["message"], hint
    assert tokenize(client, "bert", {"text": "a cat"})["diagnostics"] == {}


@check
def a_text_of_words_that_fall_into_letters_gives_a_hint(client, _):
    def hints(text, **inputs):
        return tokenize(client, "demo", {"text": text, **inputs})["diagnostics"].get("hints", [])
    (hint,) = hints("I love you")
    assert hint["pointer"] == "/inputs/text" and hint["message"].startswith("2 of 3 words"), hint
    (hint,) = hints(["the animal was tired", "the cat"], pair=["xyz", "the animal"])
    assert hint["pointer"] == "/inputs/pair/0" and hint["message"].startswith("1 of 1 words"), hint
    for known in ("The animal did not cross the street because it was too tired", "The cat sat on the mat", "it is", "", "3.14159 ..."):
        assert hints(known) == [], known
    answer = client.post("/v1/models/demo/attention", {"inputs": {"text": "love, you!"}}).json()
    assert answer["diagnostics"]["hints"][0]["message"].startswith("2 of 2 words"), answer["diagnostics"]


@check
def ids_without_their_special_tokens_give_the_text(client, _):
    ids = tokenize(client, "bert", {"text": "nobody reads"})["ids"]
    assert tokenize(client, "bert", {"ids": ids})["text"] == ["[CLS] nobody reads [SEP]"]
    assert tokenize(client, "bert", {"ids": ids}, special_tokens=False)["text"] == ["nobody reads"]


@check
def ids_of_the_byte_0_give_u_0000_in_the_text(client, _):
    """Both kinds of vocabularies have such a token. The text goes on behind it."""
    vocabulary = json.loads((OWN / "gpt2" / "tokenizer.json").read_text())["model"]["vocab"]
    a, zero, b = (vocabulary[token] for token in ("a", "\u0100", "b"))
    assert tokenize(client, "gpt2", {"ids": [[a, zero, b], [zero], [zero, zero, a]]})["text"] == ["a\0b", "\0", "\0\0a"]
    answer = tokenize(client, "bytes", {"ids": [[2, 4, 3], [4], [1, 4, 4, 2], [2, 5, 4]]})
    assert answer["text"] == ["a\0b", "\0", "\0\0a", "a\ufffd\ufffd"], answer["text"]
    assert answer["tokens"][0] == ["a", "<0x00>", "b"], answer["tokens"]


@check
def tokens_of_the_byte_0_keep_their_spelling_wherever_they_are_named(client, _):
    body = {"inputs": [{"name": "IDS", "datatype": "INT64", "shape": [1, 3], "data": [2, 4, 3]}], "outputs": [{"name": "TOKENS"}]}
    assert client.post("/v2/models/bytes/infer", body).json()["outputs"][0]["data"] == ["a", "<0x00>", "b"]
    body["outputs"][0]["parameters"] = {"binary_data": True}
    assert client.post("/v2/models/bytes/infer", body).body.endswith(b"\x01\0\0\0a\x06\0\0\0<0x00>\x01\0\0\0b")
    options = {"return": ["predictions"], "predictions_k": 6}
    reply = client.post("/v1/models/bytes/attention", {"inputs": {"ids": [2, 4, 3]}, "options": options}).json()
    words = {0: "<unk>", 1: "\u2581", 2: "a", 3: "b", 4: "<0x00>", 5: "<0xC3>"}
    predictions = reply["outputs"]["predictions"]
    assert predictions["tokens"] == [[[words.get(i) for i in row] for row in item] for item in predictions["ids"]], predictions
    assert reply["tokens"]["text"] == [["a", "<0x00>", "b"]], reply["tokens"]


# ---- refusals ----

@check
def the_deadline_stops_the_work(client, _):
    body = json.dumps({"inputs": {"text": "hello world " * 500000}}).encode()
    reply = client.send("POST", "/v1/models/bert/tokens", body,
                        {"Content-Type": "application/json", "Request-Timeout": "0.05"})
    assert reply.status == 504, reply.status


@check
def an_answer_over_the_limit_is_refused(_, server):
    environment = {"ATTND_MODEL": f"bert={OWN / 'bert'}", "ATTND_MAX_RESULT": "64K"}
    with Server(server.program, environment=environment) as small:
        assert tokenize(small.client(), "bert", {"text": "a " * 100})["lengths"] == [102]
        problem = refusal(small.client(), "bert", {"text": "a " * 10000}, status=413)
        assert problem["pointer"] == "/inputs/text" and "65536" in problem["error"], problem


@check
def the_bound_of_an_answer_is_near_what_its_words_take(_, server):
    def ask(at, count, **more):
        options = {"return": ["predictions"], "predictions_k": count, **more}
        return at.post("/v1/models/small/attention", {"inputs": {"ids": [7] * 250}, "options": options})

    with Server(server.program, environment={"ATTND_MAX_RESULT": "4M", "ATTND_NO_MODELS": "off"}) as small:
        whole = ask(small.client(), 100)
        assert whole.status == 200, whole.body[:300]
        refused = ask(small.client(), 1000)
        assert refused.status == 413, refused.status
        bound = int(re.fullmatch(r"up to (\d+) bytes", refused.json()["received"]).group(1))
        assert len(whole.body) <= bound <= 40 * len(whole.body), (len(whole.body), bound)


@check
def ids_out_of_range_are_refused(client, _):
    problem = refusal(client, "bert", {"ids": [[2], [2, 100000]]})
    assert problem["pointer"] == "/inputs/ids/1" and problem["received"] == 100000, problem


@check
def a_model_without_a_tokenizer_refuses_texts(client, _):
    problem = refusal(client, "bare", {"text": SECRET})
    assert problem["pointer"] == "/inputs/text" and "tokenizer" in problem["error"], problem
    assert client.get("/v1/models/bare").json()["tokenizer"] is False


@check
def a_damaged_tokenizer_leaves_the_model_served(client, server):
    model = client.get("/v1/models/damaged").json()
    assert model["state"] == "ready" and model["tokenizer"] is False, model
    assert model["tokenizer_reason"].startswith("tokenizer.json"), model
    assert "tokenizer.json" in refusal(client, "damaged", {"text": SECRET})["error"]
    wait_until(lambda: any("damaged is served without a tokenizer" in line for line in server.lines), "no line in the log")


@check
def an_unknown_model_is_not_found(client, _):
    refusal(client, "nobody", {"text": "a"}, status=404)


@check
def no_error_and_no_line_of_the_log_repeats_a_text(client, server):
    bodies = [b'{"inputs": {"text": "%s" "b"}}', b'{"inputs": {"text": %s}}', b'{"inputs": {"text": "%s \xff"}}',
              b'{"inputs": {"text": "%s \\u0000"}}', b'{"inputs": {"ids": "%s"}}', b'{"inputs": {"ids": ["%s"]}}',
              b'{"inputs": {"text": ["%s", 1]}}', b'{"inputs": {"text": "%s", "pair": ["%s", "%s"]}}']
    for body in bodies:
        reply = client.post("/v1/models/bert/tokens", body.replace(b"%s", SECRET.encode()))
        assert reply.status == 400 and SECRET.encode() not in reply.body, reply.body
    tokenize(client, "bert", {"text": SECRET})
    metrics = client.get("/metrics").body
    assert SECRET.encode() not in metrics
    assert not any(SECRET in line for line in server.lines)
