#!/usr/bin/env python3
"""
bpe.py: the byte-level BPE of the small model: learns its merges from a table of words, writes its tokenizer.json, and
cuts texts as that file says. Cutting takes Debian's python3-regex.
"""

import argparse
import collections
import heapq
import json
import pathlib
import random

import regex

from rows import grammar

END = "<|endoftext|>"  # id 0: begins each text
# Radford et al., "Language Models are Unsupervised Multitask Learners" (2019): how a text is cut into words.
WORD = regex.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")
# Characters of a language that merges are learned from: no language outweighs the others.
MOST = {"en": 3_000_000, "tr": 3_000_000, "ru": 3_000_000}
MOST_OF_OTHERS = 300_000
SENTENCES = 20_000  # of the grammar of demo
LONGEST = 16  # letters of a word that merges are learned from: scripts without spaces have words of whole sentences


def letters_of_bytes():
    """The letter that stands for each byte: itself where it is printed, else one from U+0100 on."""
    printed = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printed]
    return {byte: chr(byte) for byte in printed} | {byte: chr(256 + n) for n, byte in enumerate(others)}


LETTERS = letters_of_bytes()
BYTES = {letter: byte for byte, letter in LETTERS.items()}


def words_of(text):
    """The words of a text, with the space that the tokenizer puts before the first one."""
    return WORD.findall(text if text[:1] in ("", " ") else " " + text)


def counted_words(lines):
    """Bytes of a word -> how often it comes."""
    counts = collections.Counter()
    for line in lines:
        counts.update(word[:LONGEST] for word in words_of(line))
    return {word.encode(): count for word, count in counts.items()}


def learned_merges(counts, size):
    """
    Pairs of pieces, the most frequent first: Sennrich et al., "Neural Machine Translation of Rare Words with Subword
    Units" (2016), algorithm 1. Only words that hold the merged pair are counted again. Ties go to the smaller pair.
    """
    words = [[bytes([byte]) for byte in word] for word in counts]
    times = list(counts.values())
    pairs, places = collections.Counter(), collections.defaultdict(set)
    for number, word in enumerate(words):
        for pair in zip(word, word[1:]):
            pairs[pair] += times[number]
            places[pair].add(number)
    queue = [(-count, pair) for pair, count in pairs.items()]
    heapq.heapify(queue)
    merges = []
    while queue and len(merges) < size:
        count, best = heapq.heappop(queue)
        if pairs[best] != -count:
            continue  # an older entry of the pair
        merges.append(best)
        changed = set()
        for number in places.pop(best):
            word, merged, at = words[number], [], 0
            while at < len(word):
                is_here = at + 1 < len(word) and (word[at], word[at + 1]) == best
                merged.append(word[at] + word[at + 1] if is_here else word[at])
                at += 2 if is_here else 1
            for pair in zip(word, word[1:]):
                pairs[pair] -= times[number]
                changed.add(pair)
            for pair in zip(merged, merged[1:]):
                pairs[pair] += times[number]
                places[pair].add(number)
                changed.add(pair)
            words[number] = merged
        for pair in changed:
            if pairs[pair] > 0:
                heapq.heappush(queue, (-pairs[pair], pair))
    return merges


def description(merges):
    """What tokenizer.json holds."""

    def spelled(piece):
        return "".join(LETTERS[byte] for byte in piece)

    pieces = [END, *(LETTERS[byte] for byte in range(256)), *(spelled(a + b) for a, b in merges)]
    special = {"SpecialToken": {"id": END, "type_id": 0}}
    single = [special, {"Sequence": {"id": "A", "type_id": 0}}]
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": 0, "content": END, "single_word": False, "lstrip": False, "rstrip": False,
                          "normalized": False, "special": True}],
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "post_processor": {
            "type": "TemplateProcessing", "single": single,
            "pair": [*single, special, {"Sequence": {"id": "B", "type_id": 0}}],
            "special_tokens": {END: {"id": END, "ids": [0], "tokens": [END]}},
        },
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
                  "vocab": {piece: number for number, piece in enumerate(pieces)},
                  "merges": [f"{spelled(a)} {spelled(b)}" for a, b in merges]},
    }


class BytePairs:
    """Cuts texts as a tokenizer.json of `description` says."""

    def __init__(self, description):
        self.vocabulary = description["model"]["vocab"]
        self.pieces = list(self.vocabulary)
        self.ranks = {tuple(pair.split(" ")): rank for rank, pair in enumerate(description["model"]["merges"])}
        self.known = {}

    @classmethod
    def load(cls, path):
        return cls(json.loads(pathlib.Path(path).read_text(encoding="utf-8")))

    words = staticmethod(words_of)

    def ids_of_word(self, word):
        if word not in self.known:
            pieces = [LETTERS[byte] for byte in word.encode()]
            while len(pieces) > 1:
                rank, at = min((self.ranks.get(pair, len(self.ranks)), at)
                               for at, pair in enumerate(zip(pieces, pieces[1:])))
                if rank == len(self.ranks):
                    break
                pieces[at:at + 2] = [pieces[at] + pieces[at + 1]]
            self.known[word] = [self.vocabulary[piece] for piece in pieces]
        return self.known[word]

    def ids(self, text):
        """The ids of a text, without the special token that begins it."""
        return [token for word in self.words(text) for token in self.ids_of_word(word)]

    def text(self, ids):
        """The text of the ids; a character that is cut shows as U+FFFD."""
        return bytes(BYTES[letter] for token in ids for letter in self.pieces[token]).decode(errors="replace")


def evenly(path):
    """Texts of train.txt in any order, MOST characters of each language, and sentences of the grammar."""
    lines, taken = path.read_text(encoding="utf-8").splitlines(), collections.Counter()
    random.Random(1).shuffle(lines)
    for line in lines:
        language, text = line.split("\t", 1)
        if taken[language] < MOST.get(language, MOST_OF_OTHERS):
            taken[language] += len(text)
            yield text
    rng = random.Random(2)
    yield from (grammar.any_one(rng).text() for _ in range(SENTENCES))


def main():
    parser = argparse.ArgumentParser(description="learn a byte-level BPE from train.txt of prepare.py")
    parser.add_argument("texts", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path, help="tokenizer.json")
    parser.add_argument("--size", type=int, default=10240, help="tokens of the vocabulary")
    options = parser.parse_args()
    counts = {word: count for word, count in counted_words(evenly(options.texts)).items() if count > 1}
    merges = learned_merges(counts, options.size - 257)
    text = json.dumps(description(merges), ensure_ascii=False, separators=(",", ":"))
    options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
