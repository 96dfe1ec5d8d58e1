#!/usr/bin/env python3
"""
run.py: holds the trained folder of examples/train_small against what its documents say.

Scores come from NumPy, Debian's python3-regex and the folder alone: PyTorch is not needed, no text of a package, and no
server. Without NumPy or python3-regex all tests are skipped.
"""

import json
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
SMALL = ROOT / "examples" / "train_small"
FOLDER = SMALL / "model"
sys.path[:0] = [str(ROOT / "tests" / "support"), str(SMALL)]
sys.dont_write_bytecode = True

from suite import conclude, registry, run_tests, skip  # noqa: E402

SYSTEM = "/usr/bin/python3"
try:
    import numpy
    import regex
except ImportError:
    # Debian's packages serve Debian's Python, which need not be the first in PATH.
    numpy = regex = None
    if os.path.exists(SYSTEM) and os.path.realpath(sys.executable) != os.path.realpath(SYSTEM):
        os.execv(SYSTEM, [SYSTEM, *sys.argv])

LARGEST = 8_000_000  # bytes of the folder
ROWS = 6
TESTS = []
test = registry(TESTS)


def main():
    if numpy is None:
        return skip("small-model", "no NumPy (Debian's python3-numpy) or no regex (python3-regex)")
    return conclude("small-model", *run_tests(TESTS, lambda claim: claim()))


def tokenizer():
    from bpe import BytePairs

    return BytePairs.load(FOLDER / "tokenizer.json")


@test
def the_named_heads_find_the_right_keys_of_unseen_rows():
    import measure
    from llama_numpy import Llama

    scores = measure.scores(Llama(FOLDER), tokenizer(), ROWS)
    assert all(scores[role][0] >= least for role, least in measure.LEAST.items()), scores


@test
def a_sentence_of_the_documents_has_long_tokens():
    import measure

    cut = tokenizer()
    for text in measure.SENTENCES:
        of_token, has_no_run = measure.characters(measure.pieces(cut, text))
        assert of_token >= measure.FEWEST_CHARACTERS and has_no_run, (text, measure.pieces(cut, text))


@test
def a_text_in_any_script_comes_back_from_its_tokens():
    cut = tokenizer()
    for text in ("It's 10 o'clock.", "İstanbul'da ağaç", "щётка", "小さな犬", "قطة", "γάτα", "🦔", "a  b\n\n c"):
        assert cut.text(cut.ids(text)).removeprefix(" ") == text, cut.ids(text)


@test
def the_tokenizer_follows_from_its_merges():
    import bpe

    described = json.loads((FOLDER / "tokenizer.json").read_text(encoding="utf-8"))
    letters = {letter: bytes([byte]) for byte, letter in bpe.LETTERS.items()}
    pairs = (pair.split(" ") for pair in described["model"]["merges"])
    merges = [tuple(b"".join(letters[letter] for letter in piece) for piece in pair) for pair in pairs]
    assert described == bpe.description(merges)


@test
def the_folder_holds_the_tensors_of_a_llama():
    from llama_numpy import Llama

    model = Llama(FOLDER)
    width, inner, words = (model.config[name] for name in ("hidden_size", "intermediate_size", "vocab_size"))
    shapes = {"model.embed_tokens.weight": (words, width), "model.norm.weight": (width,)}
    for layer in range(model.layers):
        name = f"model.layers.{layer}"
        shapes |= {f"{name}.self_attn.{part}_proj.weight": (width, width) for part in "qkvo"}
        shapes |= {f"{name}.mlp.{part}_proj.weight": (inner, width) for part in ("gate", "up")}
        shapes |= {f"{name}.{part}.weight": (width,) for part in ("input_layernorm", "post_attention_layernorm")}
        shapes[f"{name}.mlp.down_proj.weight"] = (width, inner)
    assert {name: tensor.shape for name, tensor in model.weights.items()} == shapes
    assert all(numpy.isfinite(tensor).all() for tensor in model.weights.values())
    assert len(tokenizer().pieces) == words


@test
def the_folder_is_small():
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) <= LARGEST


if __name__ == "__main__":
    sys.exit(main())
