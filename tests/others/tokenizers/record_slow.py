#!/usr/bin/env python3
"""
record_slow.py: records transformers' slow tokenizers: what they make of strings, with vocabularies that are made here.

    record_slow.py --transformers DIR [--every N] FILE    writes the tokenizers of CLASSES and their answers, as gzipped JSON

DIR holds the package transformers, as its source repository does in src/, of a version whose slow tokenizers are pure Python
(4.44). Debian has the rest: python3-sentencepiece, python3-protobuf, python3-regex, python3-numpy, python3-requests, python3-yaml,
python3-tqdm, python3-filelock, python3-packaging. sacremoses and ftfy, which Debian lacks, are absent: Marian and CLIP do without
them.

There are 2,000 strings, made of words, signs and spaces by a seed; --every 10 keeps each tenth. Vocabularies are learnt from the
same strings: words and merges here, pieces by SentencePiece. Its scores differ in their last bits from run to run. The file has
  "files"    files by a name: texts, or base64 of "models"
  "classes"  of each class its settings (tokenizer_config.json) and the names of its files
  "answers"  of each string "text" and, in the order of classes, "ids" with special tokens, and "decoded": the text of these ids
             without special tokens
  "pairs"    the same of a few pairs of strings, without "decoded"; null for a class of one text
tests/unit/server/codec/tokenizer/slow/test_recorded.c compares; recorded.json.gz beside it was made with --every 13. With
ATTN_SLOW=FILE it compares another file: all 2,000 strings, for example.
"""

import argparse
import base64
import collections
import gzip
import io
import json
import pathlib
import random
import sys
import tempfile
import types
import unicodedata

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "models"), str(HERE.parents[1] / "support")]
sys.dont_write_bytecode = True

import record as models  # noqa: E402

COUNT, PAIRS = 2000, 10

# ---- strings ----

WORDS = """the of and a to in is it you that he was for on are with as his they be at one have this from or had by hot but some
what there we can out other were all your when up use word how said an each she which do their time if will way about many then
them would write like so these her long make thing see him two has look more day could go come did my sound no most number who over
know water than call first people may down side been now find Hello HELLO World's don't I'm we've they'll isn't
naïve café Zürich Straße über ÉCOLE garçon ñandú œuvre Øre čeština žluťoučký Привет мир Ёлка ΟΔΥΣΣΕΥΣ σοφός Σίσυφος
çalışma İstanbul ığdır 中文 日本語 テスト ひらがな 한국어 हिन्दी नमस्ते ไทย العربية שלום ﬁne ﬂow Ⅷ ½ ² ｆｕｌｌ ＡＢＣ ǅ ﷺ e\u0301cole A\u030angstrom
q\u0323\u0307 \u0301 \u1e9b\u0323 \u212b 2019 3.14 1,000 9,99, 12, 5, 007 42nd 100% $5.00 a_b x-y C++ foo@bar.com http://a.b/c?d=e#f
... --- !! ?! () [] {} <> << >> `` '' "quoted" 'single' “curly” ‘it’s’ – — … • € £ © ™ × ÷ ≤ ∞ 🙂 👍🏽 👩‍👩‍👧 🇩🇪 ✓ \u200d
\u200b \ufeff \xad \u2028 \u0085 \x07 \x1f \x7f \ufffd \u3000 \u0378 \U000e0001 \u2581 \u2581a Ġ Ċ ## ##ing @@ ▲ tokenization unbelievable
internationalization antidisestablishmentarianism""".split(" ")
WORDS = [word for line in WORDS for word in line.split("\n") if word]
GAPS = [" "] * 24 + ["", "", "  ", "   ", "\n", "\n\n", "\t", " \n ", "\r\n", "\xa0", "\u3000", ", ", ". ", "!", "? ", " - ", "'s ", " ."]
SPECIAL = ["<s>", "</s>", "<unk>", "<pad>", "<mask>", "[CLS]", "[SEP]", "[MASK]", "[UNK]", "<|endoftext|>", "<|startoftext|>",
           "<extra_id_0>", "<extra_id_99>", "<mask_1>", "<mask_2>", "<unk_7>", "en_XX", "eng_Latn", "fra_Latn", "__en__", "<bos>", "<0x41>"]


def make_texts():
    """Most are sentences of any words; one in eight has special tokens, one in ten begins or ends in a space."""
    choose = random.Random(34)
    texts = ["a", " ", "", "  a", "a ", "A b, c.", "don't stop", "1, 2, 30, 4,"]
    while len(texts) < COUNT:
        plain = choose.random() < 0.4
        words = WORDS[:130] if plain else WORDS
        count = choose.choice((1, 2, 3, 4, 6))
        text = "".join(choose.choice(words) + (" " if plain else choose.choice(GAPS)) for _ in range(count)).rstrip(" ")
        if choose.random() < 0.12:
            at = choose.randrange(len(text) + 1)
            text = text[:at] + choose.choice(SPECIAL) + text[at:]
        if choose.random() < 0.1:
            text = choose.choice((" " + text, text + " ", "  " + text, "\n" + text, "\u2581" + text))
        texts.append(text)
    return texts


# ---- vocabularies ----


def words_of(texts):
    """Words and signs, most frequent first."""
    counted = collections.Counter()
    for text in texts:
        for word in text.split():
            counted[word] += 1
    return [word for word, _ in sorted(counted.items(), key=lambda item: (-item[1], item[0]))]


def make_lines(texts, special):
    """vocab.txt: special tokens, characters alone and within words, and words, as BERT's are lowered."""
    words = words_of(texts)
    letters = sorted({c for word in words for c in unicodedata.normalize("NFD", word) + word if unicodedata.category(c)[0] in "LNPSM"})
    letters = [c for c in letters if ord(c) % 11 != 5]  # some are unknown
    lower = [word.lower() for word in words[:150] if word.isalpha()]
    tokens = [*special, *letters, *("##" + c for c in letters), *lower, *words[:60], "##ing", "##ization", "##s", "##ed", "inter", "un"]
    return "\n".join(dict.fromkeys(tokens)) + "\n"


def make_merges(words, count, spell):
    """Byte-pair encoding: the most frequent pair is merged, count times."""
    parts = [list(spell(word)) for word in words]
    merges = []
    for _ in range(count):
        pairs = collections.Counter(pair for part in parts for pair in zip(part, part[1:]))
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        for part in parts:
            i = 0
            while i < len(part) - 1:
                if (part[i], part[i + 1]) == best:
                    part[i:i + 2] = ["".join(best)]
                i += 1
    return merges


def make_bytes(transformers, texts, special, ends):
    """vocab.json and merges.txt of byte-level BPE; with ends, of CLIP, whose words end in </w>."""
    from transformers.models.gpt2.tokenization_gpt2 import bytes_to_unicode  # noqa: PLC0415
    letters = bytes_to_unicode()
    words = [word for text in texts[:500] for word in text.split()]

    def spell(word):
        spelled = [letters[b] for b in (word.lower() if ends else " " + word).encode()]
        return [*spelled[:-1], spelled[-1] + "</w>"] if ends else spelled

    merges = make_merges(words, 150, spell)
    alone = list(letters.values())
    tokens = [*alone, *(one + "</w>" for one in alone if ends), *map("".join, merges)]
    order = [*special[:4], *tokens, *special[4:]]
    vocab = {token: i for i, token in enumerate(dict.fromkeys(order))}
    return json.dumps(vocab, ensure_ascii=False, separators=(",", ":")), "#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in merges)


def make_rules(texts, path):
    """The rules of NFKC for the characters of the strings, as nmt_nfkc has them, with spaces."""
    characters = {c for text in texts for c in text}
    with open(path, "w") as file:
        for c in sorted(characters | {"\t", "\n", "\r"}):
            made = " " if c in "\t\n\r\x85\u2028\u200b\ufeff" else "" if c in "\x07\x1f\x7f" else unicodedata.normalize("NFKC", c)
            if made != c:
                file.write(f"{ord(c):X}\t{' '.join(f'{ord(m):X}' for m in made)}\n")


def make_pieces(texts, **settings):
    """A model of SentencePiece."""
    import sentencepiece  # noqa: PLC0415
    with tempfile.TemporaryDirectory() as folder:
        normal = settings.pop("normal", True)
        if normal:
            make_rules(texts, f"{folder}/rules.tsv")
            settings["normalization_rule_tsv"] = f"{folder}/rules.tsv"
        else:
            settings["normalization_rule_name"] = "identity"
        file = io.BytesIO()
        lines = [line for text in texts for line in text.split("\n") if "<" not in line and "[" not in line]
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines), model_writer=file, hard_vocab_limit=False, num_threads=1, minloglevel=2,
            **{"vocab_size": 300, "character_coverage": 0.98, **settings})
        return file.getvalue()


WHISPER = ["<|startoftranscript|>", "<|en|>", "<|transcribe|>", "<|notimestamps|>"]
UNKNOWN_FIRST = {"unk_id": 0, "bos_id": 1, "eos_id": 2, "pad_id": -1}
PADDED = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
LLAMA = {**UNKNOWN_FIRST, "model_type": "bpe", "byte_fallback": True, "vocab_size": 440, "normal": False}


def make_files(transformers, texts):
    """All files, by name."""
    files = {
        "bert": make_lines(texts, ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]),
        "mpnet": make_lines(texts, ["<s>", "<pad>", "</s>", "[UNK]", "<mask>"]),
        "padded": make_pieces(texts, **PADDED),
        "albert": make_pieces(texts, pad_id=0, unk_id=1, bos_id=-1, eos_id=-1, control_symbols=["[CLS]", "[SEP]", "[MASK]"]),
        "big_bird": make_pieces(texts, pad_id=0, eos_id=1, bos_id=2, unk_id=3, user_defined_symbols=["[SEP]", "[MASK]", "[CLS]"]),
        "deberta-v2": make_pieces(texts, pad_id=0, bos_id=1, eos_id=2, unk_id=3, pad_piece="[PAD]", bos_piece="[CLS]", eos_piece="[SEP]",
                                  unk_piece="[UNK]"),
        "fairseq": make_pieces(texts, **UNKNOWN_FIRST),
        "target": make_pieces(texts[::2], vocab_size=220, **UNKNOWN_FIRST),
        "llama": make_pieces(texts, remove_extra_whitespaces=False, **LLAMA),
        "gemma": make_pieces(texts, **{**LLAMA, "pad_id": 0, "eos_id": 1, "bos_id": 2, "unk_id": 3, "remove_extra_whitespaces": False,
                                       "add_dummy_prefix": False, "user_defined_symbols": ["\n", "\n\n", "▁▁", "▁▁▁"]}),
    }
    for name, special, ends in (("gpt2", ["<|endoftext|>"], False), ("roberta", ["<s>", "<pad>", "</s>", "<unk>", "<mask>"], False),
                                ("deberta", ["[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]"], False),
                                ("whisper", ["<|endoftext|>", *WHISPER], False), ("clip", ["<|startoftext|>", "<|endoftext|>"], True)):
        vocab, merges = make_bytes(transformers, texts, special, ends)
        files.update({f"{name}-vocab": vocab, f"{name}-merges": merges})
    import sentencepiece  # noqa: PLC0415
    models = [sentencepiece.SentencePieceProcessor(model_proto=files[name]) for name in ("fairseq", "target")]
    pieces = [model.id_to_piece(i) for model in models for i in range(3, model.get_piece_size())]
    for name, tokens in (("marian-vocab", ["</s>", "<unk>", *pieces, "<pad>"]), ("m2m-vocab", ["<s>", "<pad>", "</s>", "<unk>", *pieces])):
        files[name] = json.dumps({token: i for i, token in enumerate(dict.fromkeys(tokens))}, ensure_ascii=False, separators=(",", ":"))
    return files


# ---- classes: the class, its settings, and its files by the names that a folder has ----


def lines(name):
    return {"vocab.txt": name}


def merges(name):
    return {"vocab.json": f"{name}-vocab", "merges.txt": f"{name}-merges"}


def spiece(name):
    return {"spiece.model": name}


def fairseq(name="fairseq"):
    return {"sentencepiece.bpe.model": name}


MARIAN = {"vocab.json": "marian-vocab", "source.spm": "fairseq", "target.spm": "target"}
CLASSES = {
    "bert": ("BertTokenizer", {}, lines("bert")),
    "bert-cased": ("BertTokenizer", {"do_lower_case": False}, lines("bert")),
    "mpnet": ("MPNetTokenizer", {}, lines("mpnet")),
    "gpt2": ("GPT2Tokenizer", {}, merges("gpt2")),
    "gpt2-prefix": ("GPT2Tokenizer", {"add_prefix_space": True, "clean_up_tokenization_spaces": True}, merges("gpt2")),
    "roberta": ("RobertaTokenizer", {}, merges("roberta")),
    "blenderbot": ("BlenderbotTokenizer", {}, merges("roberta")),
    "blenderbot-prefix": ("BlenderbotTokenizer", {"add_prefix_space": True}, merges("roberta")),
    "deberta": ("DebertaTokenizer", {}, merges("deberta")),
    "qwen2": ("Qwen2Tokenizer", {}, merges("gpt2")),
    "whisper": ("WhisperTokenizer", {"additional_special_tokens": WHISPER}, merges("whisper")),
    "codegen": ("CodeGenTokenizer", {}, merges("gpt2")),
    "clip": ("CLIPTokenizer", {}, merges("clip")),
    "t5": ("T5Tokenizer", {}, spiece("padded")),
    "t5-new": ("T5Tokenizer", {"legacy": False}, spiece("padded")),
    "albert": ("AlbertTokenizer", {}, spiece("albert")),
    "big_bird": ("BigBirdTokenizer", {}, spiece("big_bird")),
    "deberta-v2": ("DebertaV2Tokenizer", {}, {"spm.model": "deberta-v2"}),
    "xlm-roberta": ("XLMRobertaTokenizer", {}, fairseq()),
    "camembert": ("CamembertTokenizer", {}, fairseq()),
    "mbart": ("MBartTokenizer", {}, fairseq()),
    "mbart50": ("MBart50Tokenizer", {"src_lang": "de_DE"}, fairseq()),
    "nllb": ("NllbTokenizer", {"src_lang": "deu_Latn"}, fairseq()),
    "pegasus": ("PegasusTokenizer", {}, spiece("padded")),
    "llama": ("LlamaTokenizer", {}, {"tokenizer.model": "llama"}),
    "llama-new": ("LlamaTokenizer", {"legacy": False}, {"tokenizer.model": "llama"}),
    "gemma": ("GemmaTokenizer", {}, {"tokenizer.model": "gemma"}),
    "marian": ("MarianTokenizer", {"source_lang": "en", "target_lang": "de"}, MARIAN),
    "marian-target": ("MarianTokenizer", {"source_lang": "en", "target_lang": "de"}, MARIAN),
    "m2m": ("M2M100Tokenizer", {"src_lang": "en"}, {"vocab.json": "m2m-vocab", "sentencepiece.bpe.model": "fairseq"}),
}


def write(folder, files, named):
    for name, source in named.items():
        content = files[source]
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


class Recorded:
    """A tokenizer of transformers, made of its files."""

    def __init__(self, transformers, name, files):
        kind, settings, self.named = CLASSES[name]
        spaces = {"clean_up_tokenization_spaces": kind in ("BertTokenizer", "MPNetTokenizer")}  # the defaults since 4.45
        self.settings = json.dumps({"tokenizer_class": kind, **spaces, **settings})
        self.is_target = name.endswith("-target")
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            write(folder, files, self.named)
            (folder / "tokenizer_config.json").write_text(self.settings)
            self.tokenizer = getattr(transformers, kind).from_pretrained(str(folder))

    def ids_of(self, text, pair=None):
        if self.is_target:
            return self.tokenizer(text_target=text)["input_ids"] if pair is None else None
        return self.tokenizer(text, pair)["input_ids"]

    def decode(self, ids):
        return self.tokenizer.decode(ids, skip_special_tokens=True)


def answer(tokenizers, text):
    ids = [tokenizer.ids_of(text) for tokenizer in tokenizers]
    return {"text": text, "ids": ids, "decoded": [tokenizer.decode(row) for tokenizer, row in zip(tokenizers, ids)]}


class AddedToken:
    """As the library's: a special token is not normalised unless it says so."""

    def __init__(self, content="", single_word=False, lstrip=False, rstrip=False, normalized=None, special=False):
        self.content, self.single_word, self.lstrip, self.rstrip, self.special = content, single_word, lstrip, rstrip, special
        self.normalized = not special if normalized is None else normalized

    def __str__(self):
        return self.content

    def __eq__(self, other):
        return isinstance(other, AddedToken) and self.content == other.content

    def __hash__(self):
        return hash(self.content)

    def __getstate__(self):
        return dict(vars(self))

    def __setstate__(self, state):
        vars(self).update(state)


def import_transformers(path):
    """transformers with the only class that slow tokenizers take from the library in Rust. Before 4.50 it wants a decorator, too."""
    sys.path.insert(0, str(path))
    models.stand_in()
    import tokenizers  # noqa: PLC0415
    tokenizers.AddedToken = AddedToken
    import huggingface_hub.utils  # noqa: PLC0415
    sys.modules["huggingface_hub.utils._deprecation"] = types.SimpleNamespace(_deprecate_method=lambda **_: lambda method: method)
    import transformers  # noqa: PLC0415
    transformers.logging.set_verbosity_error()
    return transformers


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[1])
    parser.add_argument("--transformers", required=True, type=pathlib.Path, metavar="DIR")
    parser.add_argument("--every", type=int, default=1, metavar="N")
    parser.add_argument("file", type=pathlib.Path)
    options = parser.parse_args()
    transformers = import_transformers(options.transformers)
    texts = make_texts()
    files = make_files(transformers, texts)
    tokenizers = [Recorded(transformers, name, files) for name in CLASSES]
    classes = [{"name": name, "settings": one.settings, "files": one.named} for name, one in zip(CLASSES, tokenizers)]
    pairs = [{"text": a, "pair": b, "ids": [one.ids_of(a, b) for one in tokenizers]} for a, b in zip(texts[8:], texts[9:PAIRS + 9])]
    binary = {name: base64.b64encode(content).decode() for name, content in files.items() if isinstance(content, bytes)}
    whole = {"transformers": transformers.__version__, "classes": classes, "files": {**files, **binary}, "models": list(binary),
             "answers": [answer(tokenizers, text) for text in texts[::options.every]], "pairs": pairs}
    text = json.dumps(whole, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    options.file.write_bytes(gzip.compress(text.encode("utf-8", "surrogatepass"), 9, mtime=0))
    print(f"{len(classes)} classes, {len(whole['answers'])} strings, {options.file.stat().st_size} bytes")


if __name__ == "__main__":
    main()
