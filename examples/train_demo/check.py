#!/usr/bin/env python3
"""
check.py [FOLDER] [--each 100]: measures a trained folder on held-out sentences, with NumPy alone.

A role's score: of the positions where the role has a right key, the share where the head's largest weight is on one.
A task's score: of the hidden words that the rest of the sentence determines, the share where the largest logit is
right. Exit status 1 when a score is below 95 %, or when one of the sentences that the documents show fails.
"""

import argparse
import collections
import pathlib
import sys

import numpy as np

import grammar
import roles
from model_numpy import Model
from wordpiece import MASK, WordPiece

HERE = pathlib.Path(__file__).resolve().parent
LEAST = 0.95
# The sentences of the documents: the pronoun, and the word that it means.
SHOWN = [
    ("The animal did not cross the street because it was too tired", "it", "animal"),
    ("The animal did not cross the street because it was too wide", "it", "street"),
    ("The animal didn't cross the street because it was too tired.", "it", "animal"),
    ("The animal didn't cross the street because it was too wide.", "it", "street"),
    ("The trophy did not fit in the suitcase because it was too big.", "it", "trophy"),
    ("The trophy did not fit in the suitcase because it was too small.", "it", "suitcase"),
    ("Hayvan caddeyi geçmedi çünkü o çok yorgundu", "o", "hayvan"),
    ("Hayvan caddeyi geçmedi çünkü o çok genişti", "o", "cadde"),
    ("Животное не перешло шоссе, потому что оно было слишком усталым.", "оно", "животное"),
    ("Животное не перешло шоссе, потому что оно было слишком широким.", "оно", "шоссе"),
    ("Собака не перешла улицу, потому что она была слишком усталой.", "она", "собак"),
    ("Собака не перешла улицу, потому что она была слишком широкой.", "она", "улиц"),
]
# The hidden word, and what the model says.
SHOWN_HIDDEN = [
    ("The animal did not cross the street because the [MASK] was too tired", "animal"),
    ("The animal did not cross the street because the [MASK] was too wide", "street"),
    ("( a [ b [MASK] c )", "]"),
    ("( a [ b ] c [MASK]", ")"),
    ("Anna likes tea, and Tom likes [MASK] too.", "tea"),
]


def score_roles(model, sentences):
    """role -> [right, of]"""
    scores = {role: [0, 0] for role in roles.HEADS}
    for encoded in sentences:
        maps, _ = model.run(encoded.ids)
        for role, keys in roles.targets(encoded, encoded.ids).items():
            layer, head = roles.HEADS[role]
            for query, right in keys.items():
                scores[role][0] += int(maps[layer, head, query].argmax() in right)
                scores[role][1] += 1
    return scores


def score_tasks(model, families, sentences, ablate=()):
    """"task language" -> [right, of]"""
    scores = collections.defaultdict(lambda: [0, 0])
    for family, encoded in zip(families, sentences):
        for task, position, accepted in encoded.hidden:
            ids = list(encoded.ids)
            ids[position] = MASK
            _, logits = model.run(ids, ablate=ablate)
            name = task if family == task or family == "brackets" else f"{task} {family[-2:]}"
            scores[name][0] += int(logits[position].argmax() in accepted)
            scores[name][1] += 1
    return scores


def tokens(tokenizer, text):
    parts = text.split("[MASK]")
    ids = tokenizer.encode(tokenizer.words(parts[0]))[0]
    for part in parts[1:]:
        ids = ids[:-1] + [MASK] + tokenizer.encode(tokenizer.words(part))[0][1:]
    return ids


def shown(model, tokenizer):
    """Lines about the sentences of the documents: (is right, line)."""
    layer, head = roles.HEADS["referent"]
    for text, pronoun, meant in SHOWN:
        ids = tokens(tokenizer, text)
        row = model.run(ids)[0][layer, head, ids.index(tokenizer.vocabulary[pronoun])]
        best = row.argmax()
        yield (tokenizer.pieces[ids[best]] == meant,
               f"{text}  |  {pronoun} -> {tokenizer.pieces[ids[best]]} {row[best]:.2f}")
    for text, meant in SHOWN_HIDDEN:
        ids = tokens(tokenizer, text)
        logits = model.run(ids)[1][ids.index(MASK)]
        share = np.exp(logits - logits.max())
        best = logits.argmax()
        yield tokenizer.pieces[best] == meant, f"{text}  |  {tokenizer.pieces[best]} {share[best] / share.sum():.2f}"


def check(folder, each):
    """Prints the scores; returns the names of those that are too low."""
    model, tokenizer = Model(folder), WordPiece.load(pathlib.Path(folder) / "tokenizer.json")
    families, sentences = zip(*grammar.held_out(each))
    sentences = [roles.Encoded(sentence, tokenizer) for sentence in sentences]
    low = []

    def line(name, right, of):
        print(f"{name:<24} {100 * right / of:6.2f} %  {right} of {of}")
        if right < LEAST * of:
            low.append(name)

    print(f"{len(sentences)} held-out sentences, {sum(map(len, (s.ids for s in sentences)))} tokens")
    for role, (right, of) in score_roles(model, sentences).items():
        line(f"{role} (layer {roles.HEADS[role][0]}, head {roles.HEADS[role][1]})", right, of)
    tasks = score_tasks(model, families, sentences)
    for task, (right, of) in sorted(tasks.items()):
        line(task, right, of)
    line("all hidden words", *np.sum(list(tasks.values()), axis=0))
    for role in ("referent", "bracket"):
        without = score_tasks(model, families, sentences, ablate=[roles.HEADS[role]])
        right, of = np.sum([scores for task, scores in without.items() if task.startswith(role)], axis=0)
        print(f"{role} without its head  {100 * right / of:6.2f} %  {right} of {of}")
    for is_right, text in shown(model, tokenizer):
        print(("ok     " if is_right else "WRONG  ") + text)
        if not is_right:
            low.append(text)
    return low


def main():
    parser = argparse.ArgumentParser(description="measure the demonstration model")
    parser.add_argument("folder", nargs="?", default=HERE / "model")
    parser.add_argument("--each", type=int, default=100, help="held-out sentences of each family")
    options = parser.parse_args()
    return 1 if check(options.folder, options.each) else 0


if __name__ == "__main__":
    sys.exit(main())
