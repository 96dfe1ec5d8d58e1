"""
rows.py: rows of tokens to train on and to measure with, and the right keys of the named heads in them.
"""

import bisect
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "train_demo"))

import grammar  # noqa: E402

END_ID = 0
LONGEST = 256  # tokens of a row
# role -> (layer, head), both counted from 0. Training guides these heads; the other thirteen are free.
HEADS = {"previous": (0, 0), "induction": (1, 0), "referent": (2, 0)}
SHARES = {"texts": 0.60, "sentences": 0.15, "repeats": 0.25}  # of the rows
LANGUAGES = {"en": 0.40, "tr": 0.25, "ru": 0.25}  # of the texts; the other languages share what is left


class Row:
    """
    ids     the tokens, the first one END_ID
    first   the first position whose token is to be foretold
    keys    role -> {query: [right keys]}; where a role has no right key, its head rests on END_ID
    """

    def __init__(self, kind):
        self.kind, self.ids, self.first = kind, [END_ID], 1
        self.keys = {"previous": {}, "induction": None, "referent": None}

    def close(self):
        del self.ids[LONGEST:]
        self.keys["previous"] = {i: [i - 1] for i in range(1, len(self.ids))}
        for role in ("induction", "referent"):
            if self.keys[role] is not None:
                self.keys[role] = {i: keys for i, keys in self.keys[role].items() if i < len(self.ids)}
        return self


class Texts:
    """The paragraphs of a file of prepare.py: language -> texts."""

    def __init__(self, path):
        self.of = {}
        with open(path, encoding="utf-8") as file:
            for line in file:
                language, text = line.rstrip("\n").split("\t", 1)
                self.of.setdefault(language, []).append(text)
        self.others = sorted(set(self.of) - set(LANGUAGES))

    def draw(self, rng):
        choices, shares = [*LANGUAGES, None], [*LANGUAGES.values(), 1 - sum(LANGUAGES.values())]
        language = rng.choices(choices, shares)[0] or rng.choice(self.others)
        return rng.choice(self.of[language])


def of_texts(rng, texts, tokenizer):
    row = Row("texts")
    row.ids += tokenizer.ids(texts.draw(rng))
    while len(row.ids) < LONGEST:
        row.ids += [END_ID, *tokenizer.ids(texts.draw(rng))]
    return row.close()


def repeated(part):
    """A part again and again: each token of a later copy has its right key behind the same token of the copy before."""
    row = Row("repeats")
    while len(row.ids) < LONGEST:
        row.ids += part
    row.first = len(part) + 2
    row.keys["induction"] = {i: [] for i in range(LONGEST)}
    seen = {}
    for i, token in enumerate(row.ids[:LONGEST]):
        row.keys["induction"][i] = [j + 1 for j in seen.get(token, [])]
        seen.setdefault(token, []).append(i)
    return row.close()


def of_repeats(rng, texts, tokenizer):
    """Half of the parts are random tokens, half are cut from texts."""
    length = rng.randint(8, 120)
    if rng.random() < 0.5:
        return repeated([rng.randrange(1, len(tokenizer.pieces)) for _ in range(length)])
    ids = []
    while len(ids) < length:
        ids += tokenizer.ids(texts.draw(rng))
    at = rng.randint(0, len(ids) - length)
    return repeated(ids[at:at + length])


def places_of_words(sentence, tokenizer):
    """The ids of the sentence as a person writes it, and the index of each word's last token."""
    text, found = sentence.text(), []
    at, lower = 0, sentence.text().lower()
    for word in sentence.words:
        at = lower.index(word, at) + len(word)
        found.append(at)
    ids, ends, starts = [], [], []
    at = 0
    for word in tokenizer.words(text):
        starts.append(at - 1)  # in the text without the space that was put before it
        at += len(word)
        ids += tokenizer.ids_of_word(word)
        ends.append(len(ids) - 1)
    return ids, [ends[bisect.bisect_left(starts, end) - 1] for end in found]


def referent(sentence, places):
    """
    (query, right key), or None. A decoder does not look ahead: the noun that "it" means is known from the last of the
    words that decide it, mostly the adjective.
    """
    for role, _, key, needs in sentence.roles:
        if role in ("referent", "antecedent") and key < max(needs):
            return places[max(needs)], places[key]
    return None


def of_sentences(sentences, tokenizer):
    """Sentences of the grammar, as many as a row holds."""
    row = Row("sentences")
    row.ids, row.keys["referent"] = [], {}
    for sentence in sentences:
        if len(row.ids) >= LONGEST:
            break
        ids, places = places_of_words(sentence, tokenizer)
        start = len(row.ids) + 1
        row.keys["referent"].update({start + i: [] for i in range(-1, len(ids))})
        found = referent(sentence, places)
        if found:
            row.keys["referent"][start + found[0]] = [start + found[1]]
        row.ids += [END_ID, *ids]
    return row.close()


def draw(rng, texts, tokenizer):
    """A row to train on."""
    kind = rng.choices(list(SHARES), list(SHARES.values()))[0]
    if kind == "texts":
        return of_texts(rng, texts, tokenizer)
    if kind == "repeats":
        return of_repeats(rng, texts, tokenizer)
    return of_sentences((grammar.any_one(rng) for _ in range(LONGEST)), tokenizer)
