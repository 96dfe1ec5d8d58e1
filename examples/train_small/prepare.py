#!/usr/bin/env python3
"""
prepare.py DIRECTORY [--root /]: writes train.txt and held_out.txt, the texts of Debian packages: one paragraph a line,
its language before it. README.md names the packages and their licences. Plain Python, no other module.
"""

import argparse
import gettext
import html
import pathlib
import re
import struct
import zlib

HELD_OUT_SHARE = 50  # one paragraph in fifty is never trained on
SHORTEST, LONGEST = 20, 2000  # characters of a paragraph
# Characters of a language, stories before manuals. English, Turkish and Russian are what the model is for; the rest
# teaches it their scripts.
MOST = {"en": 12_000_000, "tr": 2_500_000, "ru": 2_500_000}
MOST_OF_OTHERS = 600_000

HIDDEN = re.compile(r"<(script|style|pre|head|nav)\b.*?</\1>", re.DOTALL)
BLOCK = re.compile(r"</?(?:p|li|dt|dd|td|th|div|h[1-6]|br|body)\b[^>]*>")


def of_html(path):
    return BLOCK.split(HIDDEN.sub(" ", path.read_text(encoding="utf-8", errors="ignore")))


def of_catalogue(path):
    """Translated messages. A message of the game may begin with its context, which ends in '^'."""
    with path.open("rb") as file:
        messages = gettext.GNUTranslations(file)._catalog
    return [line for original, text in messages.items() if original for line in text.split("\n")]


def of_messages(path):
    """The messages before they were translated."""
    with path.open("rb") as file:
        messages = gettext.GNUTranslations(file)._catalog
    names = (name[0] if isinstance(name, tuple) else name for name in messages)
    return [line for name in names for line in name.split("^")[-1].split("\n")]


def of_glosses(path):
    """Definitions and examples, which stand behind '|'."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line.split("| ", 1)[1] for line in lines if "| " in line]


def of_bible(path):
    """
    A book is a block, compressed by zlib: the index beside the file holds (offset, size, size of the text). Four
    sentences make a paragraph.
    """
    blocks, index = path.read_bytes(), path.with_suffix(".bzs").read_bytes()
    for at, size, _ in struct.iter_unpack("<III", index):
        book = zlib.decompress(blocks[at:at + size]).decode()
        book = cleaned(re.sub(r"<(note|title)\b.*?</\1>", "", book, flags=re.DOTALL))
        sentences = re.split(r"(?<=[.!?”]) (?=[A-Z“])", book)
        yield from (" ".join(sentences[at:at + 4]) for at in range(0, len(sentences), 4))


# language of a path -> ours; None: other languages are not read
HELP = "en-US tr ru de fr es ja zh-CN ko hi el".split()
NAMES = {"en-US": "en", "tr-TR": "tr", "ru-RU": "ru", "zh-CN": "zh", "zh-cn": "zh", "zh_CN": "zh"}
HANDBOOK = "en-US tr-TR ru-RU de-DE fr-FR es-ES ja-JP zh-CN ar-MA fa-IR".split()
GAME = "tr ru de fr es ja zh_CN ar".split()
REFERENCE = "en de fr es ja zh-cn".split()


def sources():
    """(language, pattern below the root, reader). English comes first: what is not translated is found again."""
    share = "usr/share/"
    yield "en", share + "sword/modules/texts/ztext/*/*.bzz", of_bible
    yield "en", share + "wordnet/data.*", of_glosses
    yield "en", share + "games/wesnoth/1.16/locale/de/LC_MESSAGES/wesnoth*.mo", of_messages
    yield "en", share + "developers-reference/*.html", of_html
    yield "ru", share + "doc/aptitude/html/ru/*.html", of_html
    for name in GAME:
        yield NAMES.get(name, name), f"{share}games/wesnoth/1.16/locale/{name}/LC_MESSAGES/wesnoth*.mo", of_catalogue
    for name in HANDBOOK:
        yield NAMES.get(name, name[:2]), f"{share}doc/debian-handbook/html/{name}/*.html", of_html
    for name in REFERENCE:
        yield NAMES.get(name, name), f"{share}debian-reference/*.{name}.html", of_html
    for name in HELP:
        yield NAMES.get(name, name), f"{share}libreoffice/help/{name}/text/**/*.html", of_html


def cleaned(text):
    return " ".join(html.unescape(re.sub(r"<[^>]*>", "", text)).split())


def is_prose(text):
    plain = sum(letter.isalpha() or letter == " " for letter in text)
    return SHORTEST <= len(text) <= LONGEST and plain >= 0.8 * len(text) and "://" not in text


def is_held_out(text):
    return zlib.crc32(text.encode()) % HELD_OUT_SHARE == 0


def paragraphs(root):
    """(language, text), each text once."""
    seen, letters = set(), {}
    for language, pattern, read in sources():
        for path in sorted(root.glob(pattern)):
            if letters.get(language, 0) > MOST.get(language, MOST_OF_OTHERS):
                break
            for text in map(cleaned, read(path)):
                if is_prose(text) and text not in seen:
                    seen.add(text)
                    letters[language] = letters.get(language, 0) + len(text)
                    yield language, text


def main():
    parser = argparse.ArgumentParser(description="write the texts of Debian packages, a paragraph a line")
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path("/"), help="where the packages are unpacked")
    options = parser.parse_args()
    options.directory.mkdir(parents=True, exist_ok=True)
    counts = {}
    with open(options.directory / "train.txt", "w", encoding="utf-8") as train, \
            open(options.directory / "held_out.txt", "w", encoding="utf-8") as held_out:
        for language, text in paragraphs(options.root):
            (held_out if is_held_out(text) else train).write(f"{language}\t{text}\n")
            count = counts.setdefault(language, [0, 0])
            count[0] += 1
            count[1] += len(text)
    for language, (count, letters) in counts.items():
        print(f"{language}: {count:,} paragraphs, {letters:,} characters")


if __name__ == "__main__":
    main()
