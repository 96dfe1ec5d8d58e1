#!/usr/bin/env python3
"""
run.py: holds the trained folder of examples/train_demo against what its documents say.

Scores come from NumPy and the folder alone: PyTorch is not needed, and no server. Without NumPy all tests are skipped.
"""

import json
import os
import pathlib
import random
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
DEMO = ROOT / "examples" / "train_demo"
FOLDER = DEMO / "model"
sys.path[:0] = [str(ROOT / "tests" / "support"), str(DEMO)]
sys.dont_write_bytecode = True

from suite import conclude, registry, run_tests, skip  # noqa: E402

SYSTEM = "/usr/bin/python3"
try:
    import numpy
except ImportError:
    # Debian's package serves Debian's Python, which need not be the first in PATH.
    numpy = None
    if os.path.exists(SYSTEM) and os.path.realpath(sys.executable) != os.path.realpath(SYSTEM):
        os.execv(SYSTEM, [SYSTEM, *sys.argv])

LARGEST = 500_000  # bytes of the folder
EACH = 60  # held-out sentences of each family
TESTS = []
test = registry(TESTS)


def main():
    if numpy is None:
        return skip("demo-model", "no NumPy (Debian's python3-numpy)")
    return conclude("demo-model", *run_tests(TESTS, lambda claim: claim()))


def loaded():
    """The model, its tokenizer, and the held-out sentences with their families."""
    import grammar
    from model_numpy import Model
    from roles import Encoded
    from wordpiece import WordPiece

    tokenizer = WordPiece.load(FOLDER / "tokenizer.json")
    families, sentences = zip(*grammar.held_out(EACH))
    return Model(FOLDER), tokenizer, families, [Encoded(sentence, tokenizer) for sentence in sentences]


def expect_at_least(share, scores):
    low = {name: f"{right} of {of}" for name, (right, of) in scores.items() if right < share * of}
    assert not low, f"below {share:.0%}: {low}"
    assert all(of for _, of in scores.values()), f"nothing was measured: {scores}"


@test
def each_named_head_points_at_the_right_token():
    import check

    model, _, _, sentences = loaded()
    scores = check.score_roles(model, sentences)
    assert len(scores) >= 4
    expect_at_least(0.95, scores)


@test
def hidden_words_that_the_sentence_determines_are_found():
    import check

    model, _, families, sentences = loaded()
    expect_at_least(0.95, check.score_tasks(model, families, sentences))


@test
def the_sentences_of_the_documents_work():
    import check

    model, tokenizer, _, _ = loaded()
    wrong = [line for is_right, line in check.shown(model, tokenizer) if not is_right]
    assert not wrong, wrong


@test
def a_held_out_sentence_is_never_drawn_for_training():
    import grammar

    rng = random.Random(7)
    held_out = {sentence.key for _, sentence in grammar.held_out(EACH)}
    trained = {grammar.any_one(rng).key for _ in range(5000)}
    assert not held_out & trained


@test
def a_written_sentence_has_the_tokens_of_its_words():
    import grammar
    from wordpiece import WordPiece

    tokenizer = WordPiece.load(FOLDER / "tokenizer.json")
    for _, sentence in grammar.held_out(EACH):
        assert tokenizer.words(sentence.text()) == sentence.words, sentence.text()


@test
def the_tokenizer_has_the_words_of_the_grammar():
    import grammar
    import wordpiece

    described = json.loads((FOLDER / "tokenizer.json").read_text(encoding="utf-8"))
    assert described == wordpiece.description(wordpiece.of_grammar(grammar))


@test
def the_folder_holds_the_tensors_of_a_bert_for_masked_words():
    import numpy as np
    from model_numpy import read_safetensors

    config = json.loads((FOLDER / "config.json").read_text())
    assert (config["model_type"], config["architectures"]) == ("bert", ["BertForMaskedLM"])
    width, inner, words = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    shapes = {"bert.embeddings.word_embeddings.weight": (words, width),
              "bert.embeddings.position_embeddings.weight": (config["max_position_embeddings"], width),
              "bert.embeddings.token_type_embeddings.weight": (config["type_vocab_size"], width),
              "cls.predictions.bias": (words,)}
    linear = {"cls.predictions.transform.dense": (width, width)}
    norms = ["bert.embeddings.LayerNorm", "cls.predictions.transform.LayerNorm"]
    for layer in range(config["num_hidden_layers"]):
        name = f"bert.encoder.layer.{layer}"
        linear.update({f"{name}.attention.self.{part}": (width, width) for part in ("query", "key", "value")})
        linear.update({f"{name}.attention.output.dense": (width, width),
                       f"{name}.intermediate.dense": (inner, width), f"{name}.output.dense": (width, inner)})
        norms += [f"{name}.attention.output.LayerNorm", f"{name}.output.LayerNorm"]
    for name, shape in linear.items():
        shapes.update({name + ".weight": shape, name + ".bias": shape[:1]})
    for name in norms:
        shapes.update({name + ".weight": (width,), name + ".bias": (width,)})
    tensors = read_safetensors(FOLDER / "model.safetensors")
    assert {name: tensor.shape for name, tensor in tensors.items()} == shapes
    assert all(tensor.dtype == np.float16 and np.isfinite(tensor).all() for tensor in tensors.values())


@test
def the_folder_is_small():
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) <= LARGEST


if __name__ == "__main__":
    sys.exit(main())
