#!/usr/bin/env python3
"""
measure.py FOLDER [--held-out held_out.txt] [--rows 20] [SENTENCE…]: measures the small model on what it was not trained
on. It needs NumPy and Debian's python3-regex.

Score of a head: the mean of its weight on the right keys, over the queries that have some. The right key of `previous`
is the token before; of `induction`, the token behind an earlier copy of the query's token, in rows of random tokens
that come again and again; of `referent`, the noun that a pronoun means, in sentences that are held out.
Loss: cross-entropy of held-out texts in nats a token, and in bits a byte of the text.
"""

import argparse
import math
import pathlib
import random

import numpy as np

import rows
from bpe import BytePairs
from llama_numpy import Llama
from rows import grammar

LEAST = {"previous": 0.8, "induction": 0.5}
FEWEST_CHARACTERS = 2.5  # of a token, on average
SENTENCES = [  # of the documents and of the page
    "The animal did not cross the street because it was too tired",
    "The animal did not cross the street because it was too wide",
    "The trophy did not fit in the suitcase because it was too small.",
    "Anna likes tea, and Tom likes tea too.",
    "The keys to the cabinet are old.",
    "Hayvan caddeyi geçmedi çünkü o çok yorgundu",
    "Hayvan caddeyi geçmedi çünkü o çok genişti",
    "Животное не перешло шоссе, потому что оно было слишком усталым.",
    "Животное не перешло шоссе, потому что оно было слишком широким.",
    "Собака не перешла улицу, потому что она была слишком усталой.",
]


def random_rows(count, tokenizer):
    """Rows of different random tokens, which come again and again."""
    rng = random.Random(2)
    return [rows.repeated(rng.sample(range(1, len(tokenizer.pieces)), rng.randint(16, 96))) for _ in range(count)]


def rows_of_sentences(count, tokenizer):
    """One held-out sentence each, as a person would send it."""
    sentences = [sentence for family, sentence in grammar.held_out(count) if family.startswith("referent")]
    return [rows.of_sentences([sentence], tokenizer) for sentence in sentences]


def score(model, role, rows_of_role):
    """(mean weight of the named head on the right keys, of the best head, the best head, queries)"""
    weights = []
    for row in rows_of_role:
        maps, _ = model.run(row.ids)
        weights += [maps[:, :, i, keys].sum(-1) for i, keys in row.keys[role].items() if keys]
    means = np.mean(weights, axis=0)
    best = np.unravel_index(means.argmax(), means.shape)
    return means[rows.HEADS[role]], means[best], tuple(map(int, best)), len(weights)


def scores(model, tokenizer, count):
    """role -> what `score` returns"""
    repeats, sentences = random_rows(count, tokenizer), rows_of_sentences(count, tokenizer)
    return {"previous": score(model, "previous", repeats), "induction": score(model, "induction", repeats),
            "referent": score(model, "referent", sentences)}


def loss(model, ids):
    """The sum over the tokens behind the first, in nats."""
    _, logits = model.run(ids)
    logits = logits[:-1] - logits[:-1].max(-1, keepdims=True)
    return float((np.log(np.exp(logits).sum(-1)) - logits[np.arange(len(ids) - 1), ids[1:]]).sum())


def held_out_loss(model, tokenizer, path, count):
    """language -> (nats a token, bits a byte), of `count` texts each"""
    texts, found = rows.Texts(path), {}
    for language in sorted(texts.of):
        nats = tokens = letters = 0
        chosen = texts.of[language]
        for text in random.Random(4).sample(chosen, min(count, len(chosen))):
            ids = [rows.END_ID, *tokenizer.ids(text)][:rows.LONGEST]
            nats += loss(model, ids)
            tokens += len(ids) - 1
            letters += sum(len(tokenizer.pieces[token]) for token in ids[1:])
        found[language] = nats / tokens, nats / letters / math.log(2)
    return found


def pieces(tokenizer, text):
    return [tokenizer.text([token]) for token in tokenizer.ids(text)]


def characters(cut):
    """(characters a token, is free of runs of single letters)"""
    single = [len(piece.strip()) == 1 and piece.strip() not in ".,!?:;'" for piece in cut]
    return (len("".join(cut)) - 1) / len(cut), not any(a and b for a, b in zip(single, single[1:]))


def measure(folder, options):
    """Prints what was measured; returns the names of what is too low."""
    model, tokenizer, low = Llama(folder), BytePairs.load(folder / "tokenizer.json"), []
    for role, (named, best, head, queries) in scores(model, tokenizer, options.rows).items():
        print(f"{role}: layer {rows.HEADS[role][0]}, head {rows.HEADS[role][1]}: {named:.3f}; best of all heads "
              f"{best:.3f} (layer {head[0]}, head {head[1]}); {queries} queries")
        if named < LEAST.get(role, 0):
            low.append(role)
    if options.held_out:
        for language, (nats, bits) in held_out_loss(model, tokenizer, options.held_out, 10 * options.rows).items():
            print(f"held-out {language}: {nats:.3f} nats a token, {bits:.3f} bits a byte")
    for text in options.sentences or SENTENCES:
        cut = pieces(tokenizer, text)
        of_token, has_no_run = characters(cut)
        print(f"{of_token:.2f} characters a token: {'|'.join(cut)}")
        if of_token < FEWEST_CHARACTERS or not has_no_run:
            low.append(text)
    return low


def main():
    parser = argparse.ArgumentParser(description="measure the small model")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--held-out", type=pathlib.Path, help="held_out.txt of prepare.py")
    parser.add_argument("--rows", type=int, default=20, help="rows of each kind; held-out texts: ten times as many")
    parser.add_argument("sentences", nargs="*")
    options = parser.parse_args()
    low = measure(options.folder, options)
    if low:
        print("too low:", ", ".join(low))
    return 1 if low else 0


if __name__ == "__main__":
    raise SystemExit(main())
