"""
vocabulary.py: the tables of words in server/codec/words/ are what the documents show and what a server says.

A word is refused with the word here, or with the reason why there is none. What it names exists at the endpoint that was asked.
"""

import ast
import json
import pathlib
import re

from suite import registry

TESTS = []
test = registry(TESTS)

ROOT = pathlib.Path(__file__).resolve().parents[3]
WORDS = ROOT / "server" / "codec" / "words" / "words.c"
ROW = re.compile(r'\{("[^{}]*?)\},\n    (?=\{)', re.DOTALL)
BEGIN, END = "<!-- words: tests/api/words/run.py --update -->\n", "<!-- end of words -->\n"
DOCUMENTS = {ROOT / "docs" / "semantics.md": "request_words", ROOT / "docs" / "models.md": "model_words"}

ATTENTION, LAYER, KEPT, MODEL = "/v1/attention", "/v1/multi-head-attention", "/v1/layers/words.kept", "/v1/models/demo/attention"
INFER = "/v2/models/attention/infer"
QUERY = {"query": [[1, 0], [0, 1]]}
EYE = {"weight": [[1, 0], [0, 1]]}
WEIGHTS = {"query": EYE, "key": EYE, "value": EYE}


class Row:
    def __init__(self, words, within, here, note):
        self.words, self.within, self.here, self.note = words.split(), (within or "").split(), here, note

    def sentence(self):
        if self.here is None:
            return self.note
        return f"the word here is {self.here}" + (f": {self.note}" if self.note else "")

    def cells(self):
        words = ", ".join(f"`{word}`" for word in self.words)
        within = ", ".join(f"`{member}`" for member in self.within)
        return f"| {words} | {within} | {f'`{self.here}`' if self.here else ''} | {self.note or ''} |"


def rows_of(name):
    """The rows of a table in C: four fields, each NULL or a text in one or more pieces."""
    text = re.sub(r"/\*.*?\*/", "", WORDS.read_text(), flags=re.DOTALL)
    table = text.split(f"{name}[] = {{")[1].split("{0},")[0]
    rows = [Row(*ast.literal_eval("(" + re.sub(r"\bNULL\b", "None", row) + ")"))
            for row in re.findall(r'\{((?:"(?:[^"\\]|\\.)*"|[^"{}])*)\},', table)]
    assert len(rows) == len(re.findall(r"^    \{", table, re.MULTILINE)) > 10, f"{name} has a form that is not understood here"
    return rows


def table_of(name):
    head = "| other systems | within | here | difference |\n| --- | --- | --- | --- |\n"
    return head + "".join(row.cells() + "\n" for row in rows_of(name))


def update():
    for document, name in DOCUMENTS.items():
        before, rest = document.read_text().split(BEGIN)
        document.write_text(before + BEGIN + "\n" + table_of(name) + "\n" + END + rest.split(END)[1])


@test
def documents_show_the_tables(_):
    for document, name in DOCUMENTS.items():
        shown = document.read_text().split(BEGIN)[1].split(END)[0]
        assert shown.strip() == table_of(name).strip(), f"{document.name}: run tests/api/words/run.py --update"


def refusal(client, path, body, method="POST"):
    reply = client.send(method, path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    assert reply.status in (400, 404), f"{path} {json.dumps(body)}: {reply.status} {reply.body[:200].decode()}"
    return reply.json()


def nested(path, value):
    for name in reversed(path.split(".")):
        value = {name: value}
    return value


def layer_with(section, member):
    """A request to a layer with one more member in a section; at the root without a section."""
    whole = {"inputs": QUERY, "weights": WEIGHTS, "masks": {}, "options": {}}
    return {**whole, **({section: {**whole[section], **member}} if section else member)}


# How a member or a value is wrong within a member of the table. A row names one of these members at least.
PLACES = {
    "weights": lambda word: layer_with("weights", {"query": {word: 1}}),
    "norm": lambda word: layer_with("options", {"norm": {word: 1}}),
    "qk_norm": lambda word: layer_with("options", {"qk_norm": {word: 1}}),
    "query_norm": lambda word: layer_with("weights", {"query_norm": {word: 1}}),
    "key_norm": lambda word: layer_with("weights", {"key_norm": {word: 1}}),
    "feed_forward": lambda word: layer_with("options", {"feed_forward": {word: 1}}),
    "rope": lambda word: layer_with("options", {"rope": {word: 1}}),
    "dropout": lambda word: layer_with("options", {"dropout": {word: 1}}),
}
VALUES = {
    "return": lambda word: layer_with("options", {"return": [word]}),
    "compute": lambda word: layer_with("options", {"compute": word}),
    "dtype": lambda word: layer_with("inputs", {"query": {"shape": [1], "dtype": word, "data": [1]}}),
    "activation": lambda word: layer_with("options", {"feed_forward": {"activation": word}}),
    "norm": lambda word: layer_with("options", {"norm": word}),
    "qk_norm": lambda word: layer_with("options", {"qk_norm": word}),
    "rope": lambda word: layer_with("options", {"rope": word}),
}


def bodies_of(row, word):
    if not row.within:
        return [layer_with(None, {word: 1})]
    is_member = f"{{{word}}}" if row.here is None else row.here
    places = PLACES if is_member in ("weight", "bias", "eps", "position", "theta", "scaling", "layout", "dim", "positions",
                                     "p", "activation") else VALUES
    return [places[member](word) for member in row.within]


@test
def every_word_is_explained(client):
    for row in rows_of("request_words"):
        for word in row.words:
            for body in bodies_of(row, word):
                told = refusal(client, LAYER, body)
                assert (row.sentence() in told["error"] or f"the word here is {row.here}, which" in told["error"]), \
                    f"{word}: {told['error']}"
                assert told["pointer"] and "expected" not in told or told["expected"], told


@test
def every_word_is_explained_to_models(client):
    for row in rows_of("model_words"):
        for word in row.words:
            whole = {"inputs": {"text": "a"}, "options": {}}
            bodies = [{**whole, "options": {"return": [word]}}] if row.within else [
                {**whole, word: 1}, {"inputs": {"text": "a", word: 1}}, {**whole, "options": {word: 1}}]
            for body in bodies:
                told = refusal(client, MODEL, body)
                assert row.sentence() in told["error"], f"{word}: {told['error']}"


@test
def a_word_counts_however_it_is_spelt(client):
    for section, name, here in (("masks", "attentionMask", "masks.padding"), ("options", "NUM_ATTENTION_HEADS", "options.num_heads"),
                                ("weights", "W_q", "weights.query"), ("weights", "self_attn.q_proj.weight", "weights.query"),
                                ("weights", "layers.0.attn.c_attn.bias", "weights.qkv"), ("inputs", "Q", "inputs.query"),
                                ("masks", "key-padding-mask", "masks.padding")):
        told = refusal(client, LAYER, layer_with(section, {name: 1}))
        assert f"the word here is {here}" in told["error"], told["error"]
        assert told["pointer"] == f"/{section}/{name}", told


# What is asked at each endpoint: (path, method, body with a member at its root, body with a value at a path)
ENDPOINTS = [
    (ATTENTION, "POST", {"inputs": QUERY}), (LAYER, "POST", {"inputs": QUERY, "weights": WEIGHTS}),
    (ATTENTION + "/gradients", "POST", {"inputs": {**QUERY, "grad_output": [[1, 1], [1, 1]]}}),
    (KEPT, "PUT", {"weights": WEIGHTS}), (KEPT + "/attention", "POST", {"inputs": QUERY}),
    (KEPT + "/gradients", "POST", {"inputs": {**QUERY, "grad_output": [[1, 1], [1, 1]]}}),
]


def merged(whole, part):
    for name, value in part.items():
        whole = {**whole, name: merged(whole.get(name, {}), value) if isinstance(value, dict) and value else value}
    return whole


@test
def a_word_names_what_the_endpoint_has(client):
    kept = client.send("PUT", KEPT, json.dumps({"weights": WEIGHTS}), {"Content-Type": "application/json"})
    assert kept.status == 201, kept.body
    for path, method, whole in ENDPOINTS:
        for row in rows_of("request_words"):
            if row.within or not row.here:
                continue
            told = refusal(client, path, {**whole, row.words[0]: 1}, method)["error"]
            named = re.search(r"the word here is ([\w.]*\w)(,)?", told)
            assert named and named[1] == row.here, told
            if named[2] is None:
                wrong = refusal(client, path, merged(whole, nested(row.here, "?")), method)["error"]
                assert "unknown member" not in wrong and "belong" not in wrong, f"{path}: {told}; but {wrong}"
    client.send("DELETE", KEPT)


@test
def a_parameter_names_what_the_protocol_has(client):
    def ask(parameters):
        tensor = {"name": "QUERY", "shape": [2, 2], "datatype": "FP32", "data": [1, 0, 0, 1]}
        return refusal(client, INFER, {"inputs": [tensor], "parameters": parameters})

    for row in rows_of("request_words"):
        if row.within or not row.here or "." not in row.here:
            continue
        told = ask({row.words[0]: 1})
        named = re.search(r"the word here is ([\w.]*\w|\"outputs\")(,)?", told["error"])
        assert named and told["pointer"] == f"/parameters/{row.words[0]}", told
        if named[2] is None and named[1].startswith("parameters."):
            wrong = ask(nested(named[1].removeprefix("parameters."), "?"))["error"]
            assert "unknown member" not in wrong and "belong" not in wrong and "no parameter" not in wrong, f"{told}; but {wrong}"
        elif named[2]:
            assert named[1] not in ("parameters.padding", "parameters.documents", "parameters.blocks"), told
        else:
            assert named[1] in ("QUERY", "KEY", "VALUE", "ATTEND", "BIAS", '"outputs"'), told


@test
def a_long_word_makes_no_long_answer(client):
    for word in ("x" * 100_000, "a." * 50_000, "_" * 100_000):
        for body in (layer_with(None, {word: 1}), layer_with("options", {"return": [word]})):
            assert len(json.dumps(refusal(client, LAYER, body))) < 4096
