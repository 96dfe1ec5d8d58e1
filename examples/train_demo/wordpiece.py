"""
wordpiece.py: the tokenizer of the demonstration model: writes its tokenizer.json, and cuts words as that file says.
"""

import json
import string
import unicodedata

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PAD, UNK, CLS, SEP, MASK = range(5)


def of_grammar(grammar):
    """piece -> id: special tokens, punctuation, single letters at the beginning and inside of a word, words."""
    words, endings = grammar.words_of_the_tables()
    digits, letters = list(grammar.DIGITS), list("".join(grammar.LETTERS.values()))
    pieces = dict.fromkeys(SPECIAL + grammar.PUNCTUATION + digits + letters)
    # U+0307 is what remains of the Turkish İ in lower case.
    pieces.update(dict.fromkeys("##" + letter for letter in digits + letters + ["\u0307"]))
    pieces.update(dict.fromkeys(endings + words))
    return {piece: number for number, piece in enumerate(pieces)}


def description(vocabulary):
    """What tokenizer.json holds."""

    def special(name, segment):
        return {"SpecialToken": {"id": name, "type_id": segment}}

    def sequence(name, segment):
        return {"Sequence": {"id": name, "type_id": segment}}

    single = [special("[CLS]", 0), sequence("A", 0), special("[SEP]", 0)]
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": number, "content": name, "single_word": False, "lstrip": False, "rstrip": False,
                          "normalized": False, "special": True} for number, name in enumerate(SPECIAL)],
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                       "strip_accents": False, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing", "single": single,
            "pair": single + [sequence("B", 1), special("[SEP]", 1)],
            "special_tokens": {name: {"id": name, "ids": [SPECIAL.index(name)], "tokens": [name]}
                               for name in ("[CLS]", "[SEP]")},
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": vocabulary},
    }


class WordPiece:
    def __init__(self, vocabulary):
        self.vocabulary = vocabulary
        self.pieces = list(vocabulary)
        self.known = {}

    @classmethod
    def load(cls, path):
        with open(path, encoding="utf-8") as file:
            return cls(json.load(file)["model"]["vocab"])

    def words(self, text):
        """Lower case, cut at white space and around punctuation, as tokenizer.json asks for in these alphabets."""
        words = [""]
        for letter in text.lower():
            if letter.isspace():
                words.append("")
            elif letter in string.punctuation or unicodedata.category(letter)[0] == "P":
                words += [letter, ""]
            else:
                words[-1] += letter
        return [word for word in words if word]

    def ids(self, word):
        """The longest piece that fits, again and again; [UNK] where none does."""
        if word not in self.known:
            ids, start = [], 0
            while start < len(word):
                prefix = "##" if start else ""
                ends = (end for end in range(len(word), start, -1) if prefix + word[start:end] in self.vocabulary)
                end = next(ends, None)
                if end is None:
                    ids = [UNK]
                    break
                ids.append(self.vocabulary[prefix + word[start:end]])
                start = end
            self.known[word] = ids
        return self.known[word]

    def encode(self, words):
        """[CLS] words [SEP]: the ids, and (first, last) index of the pieces of each word."""
        ids, spans = [CLS], []
        for word in words:
            pieces = self.ids(word)
            spans.append((len(ids), len(ids) + len(pieces) - 1))
            ids += pieces
        return ids + [SEP], spans
