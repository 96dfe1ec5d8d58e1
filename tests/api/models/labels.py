"""
labels.py: tokens.shown, what a reader sees of each token, in answers, pictures, views and predictions; and the layers,
heads, queries and keys that a request selects.
"""

import json
import re

import tokens
from suite import registry

TEXT = "Привет, мир 你好 dünya 🤗x"
CHECKS = []
check = registry(CHECKS)


def attend(client, model, inputs, accept="application/json", **options):
    body = json.dumps({"inputs": inputs, "options": options})
    reply = client.send("POST", f"/v1/models/{model}/attention", body, {"Content-Type": "application/json", "Accept": accept})
    assert reply.status == 200, f"{model}: {reply.status} {reply.body[:300]}"
    return reply


def bytes_of(shown):
    """What escapes stand for, and the text between them."""
    return b"".join(bytes([int(part[2:], 16)]) if re.fullmatch(r"\\x[0-9A-F]{2}", part) else part.encode()
                    for part in re.split(r"(\\x[0-9A-F]{2})", shown))


def with_tokenizer(client):
    models = json.loads(client.get("/v1/models").body)["models"]
    return [model["name"] for model in models if model["state"] != "broken" and model.get("tokenizer")]


@check
def texts_are_shown_by_their_characters(client, _):
    """Of every tokenizer that is here: what the offsets cut out, or the bytes of a part of a character."""
    seen = set()
    for model in with_tokenizer(client):
        answer = tokens.tokenize(client, model, {"text": TEXT})
        for shown, (begin, end), special in zip(*(answer[name][0] for name in ("shown", "offsets", "special"))):
            characters = TEXT[begin:end]
            if special or shown == characters or characters == "":
                continue
            assert "\\x" in shown and bytes_of(shown) in characters.encode(), f"{model}: {shown!r} of {characters!r}"
            seen.add(model)
    assert {"gpt2"} <= seen, seen


@check
def the_bytes_of_a_character_make_it_together(client, _):
    for text in (TEXT, "ağaç", "你"):
        for form in ({"text": text}, {"ids": tokens.tokenize(client, "gpt2", {"text": text})["ids"]}):
            shown = tokens.tokenize(client, "gpt2", form)["shown"][0]
            assert b"".join(map(bytes_of, shown)).decode() == text, shown
    assert tokens.tokenize(client, "gpt2", {"text": "你"})["shown"] == [["\\xE4", "\\xBD", "\\xA0"]]


@check
def ids_are_shown_as_the_decoder_writes_them(client, _):
    for model in with_tokenizer(client):
        answer = tokens.tokenize(client, model, {"ids": [5, 7, 20, 21]})
        if all("\\x" not in shown for shown in answer["shown"][0]):
            joined, text = ("".join(part) for part in (answer["shown"][0], answer["text"][0]))
            assert joined.replace(" ", "") == text.replace(" ", ""), f"{model}: {joined!r} for {text!r}"


@check
def added_tokens_keep_their_spelling(client, _):
    assert tokens.tokenize(client, "bert", {"text": "a [MASK]"})["shown"][0][-2:] == ["[MASK]", "[SEP]"]
    end = tokens.tokenize(client, "gpt2", {"text": "a<|endoftext|>"})
    assert end["shown"] == [["a", "<|endoftext|>"]]
    assert tokens.tokenize(client, "gpt2", {"ids": end["ids"]})["shown"] == end["shown"]


@check
def a_word_that_the_tokenizer_does_not_know_shows_its_characters(client, _):
    assert tokens.tokenize(client, "demo", {"text": "it 注"})["shown"] == [["[CLS]", "it", "注", "[SEP]"]]


@check
def bytes_without_a_token_are_shown_as_bytes(client, _):
    assert tokens.tokenize(client, "bytes", {"ids": [2, 1, 5, 3, 4]})["shown"] == [["a", " ", "\\xC3", "b", "\0"]]


@check
def labels_of_pictures_and_views_are_what_is_shown(client, _):
    shown = attend(client, "gpt2", {"text": "ağ ya"}, layers=[0], heads=[0]).json()["tokens"]["shown"][0]
    assert "".join(shown) == "ağ ya", shown
    svg = attend(client, "gpt2", {"text": "ağ ya"}, "image/svg+xml", layers=[0], heads=[0]).body.decode()
    assert "ğ" in svg and "ÄŁ" not in svg
    for view, labels in (("bertviz", lambda made: made["attention"][0]["left_text"]),
                         ("circuitsvis", lambda made: made[0]["tokens"]), ("inspectus", lambda made: made["src_tokens"]),
                         ("rows", lambda made: [row["key_token"] for row in made[:len(shown)]])):
        assert labels(attend(client, "gpt2", {"text": "ağ ya"}, layers=[0], heads=[0], view=view).json()) == shown, view


@check
def both_stacks_and_batches_have_what_is_shown(client, _):
    made = attend(client, "whole-t5", {"text": ["one", "two three"], "target": ["a", "b c"]}, layers=[0]).json()["tokens"]
    for side in ("encoder", "decoder"):
        assert [len(row) for row in made[side]["shown"]] == [len(row) for row in made[side]["ids"]], made
    assert made["decoder"]["shown"][0][0] == made["decoder"]["text"][0][0], made["decoder"]
    header = attend(client, "gpt2", {"text": "мир"}, "application/vnd.attnd.safetensors", layers=[0]).body
    facts = json.loads(header[8:8 + int.from_bytes(header[:8], "little")])["__metadata__"]
    assert "".join(json.loads(facts["tokens"])["shown"][0]) == "мир", facts["tokens"]


@check
def predicted_words_have_a_spelling_and_what_is_shown(client, _):
    said = attend(client, "demo", {"text": "The [MASK]"}, **{"return": ["predictions", "logit_lens"]}).json()["outputs"]
    words = said["predictions"]
    assert [word.removeprefix("##") for word in words["tokens"][0][1]] == words["shown"][0][1], words
    lens = said["logit_lens"]
    assert [len(row) for row in lens["shown"][0][0]] == [len(row) for row in lens["ids"][0][0]], lens


@check
def selections_are_lists_and_ranges_and_count_from_the_end(client, _):
    for option, axis in (("layers", 0), ("heads", 2), ("queries", 3), ("keys", 4)):
        whole = attend(client, "demo", {"text": "it is late"}).json()["outputs"]["attention"]
        for given, meant in (([0, 2], [0, 2]), ("0-2", [0, 1, 2]), ({"from": 0, "to": 2}, [0, 1, 2]), ([0, "2-3"], [0, 2, 3]),
                             ([[1, 3]], [1, 2, 3]), ([3, 1], [3, 1])):
            answer = attend(client, "demo", {"text": "it is late"}, **{option: given}).json()
            assert answer["outputs"]["attention"] == taken(whole, axis, meant), (option, given)
            hints = answer["diagnostics"].get("hints", [])
            assert [hint["pointer"] for hint in hints] == ([f"/options/{option}"] if given == [0, 2] else []), hints
        size = answer_size(whole, axis)
        answer = attend(client, "demo", {"text": "it is late"}, **{option: [{"from": -2, "to": -1}, 0]}).json()
        assert answer["outputs"]["attention"] == taken(whole, axis, [size - 2, size - 1, 0]), option
        reply = client.post("/v1/models/demo/attention", {"inputs": {"text": "it is late"}, "options": {option: [-size - 1]}})
        assert reply.status == 400 and f"numbered 0 to {size - 1}, and from the end -1 to -{size}" in reply.json()["error"]


def answer_size(tensor, axis):
    return len(tensor) if axis == 0 else answer_size(tensor[0], axis - 1)


def taken(tensor, axis, indices):
    return [tensor[index] for index in indices] if axis == 0 else [taken(inner, axis - 1, indices) for inner in tensor]


@check
def each_part_of_an_encoder_decoder_counts_from_its_own_end(client, _):
    inputs = {"text": "one two three", "target": "a"}
    whole = attend(client, "whole-t5", inputs).json()["outputs"]
    last = attend(client, "whole-t5", inputs, queries=[-1], keys=[-1], layers=[-1]).json()
    for name in ("encoder_attention", "decoder_attention", "cross_attention"):
        assert last["outputs"][name] == [[[[[head[-1][-1]]] for head in whole[name][-1][0]]]], name
