#!/usr/bin/env python3
"""
scanner.py PROGRAM: the tensor scanner beside Python's json and exact fractions, on random arrays and on spoilt ones.

What json takes and is a rectangle of numbers must be read, with that shape and every number rounded once and correctly;
anything else must be refused. --cases N, --seed N.
"""

import argparse
import json
import math
import pathlib
import random
import struct
import subprocess
import sys
from fractions import Fraction

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

from suite import conclude  # noqa: E402

WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
TYPES = {"float32": ("<f", "<I", 2**128 - 2**103), "float64": ("<d", "<Q", 2**1024 - 2**970)}
RANK_MAX = 4


class Refused(Exception):
    pass


def refuse(word):
    raise ValueError(word)


def parse(text):
    """Numbers stay text: json itself would round them."""
    return json.loads(text, parse_float=lambda number: ("number", number), parse_int=lambda number: ("number", number),
                      parse_constant=refuse)


def flatten(tree, depth=1):
    """(shape, numbers) of nested lists; raises Refused."""
    if not isinstance(tree, list) or depth > RANK_MAX:
        raise Refused
    if not tree or not isinstance(tree[0], list):
        for item in tree:
            if not isinstance(item, tuple) and not (isinstance(item, str) and item in WORDS):
                raise Refused
        return (len(tree),), tree
    parts = [flatten(item, depth + 1) for item in tree]
    if any(shape != parts[0][0] for shape, _ in parts):
        raise Refused
    return (len(tree), *parts[0][0]), [number for _, numbers in parts for number in numbers]


def nearest(value_meant, sign, dtype):
    """The bits of the number of that type nearest to value_meant, the even one of two."""
    number, word, limit = TYPES[dtype]
    if abs(value_meant) >= limit:
        raise Refused
    at = float(abs(value_meant))
    if dtype == "float32":
        at = min(at, 3.4028234663852886e38)
    bits = struct.unpack(word, struct.pack(number, at))[0]
    near = [b for b in (bits - 1, bits, bits + 1) if b >= 0]
    value = {b: struct.unpack(number, struct.pack(word, b))[0] for b in near}
    best = min((b for b in near if math.isfinite(value[b])),
               key=lambda b: (abs(Fraction(value[b]) - abs(value_meant)), b & 1))
    top = 1 << (8 * struct.calcsize(word) - 1)
    return struct.pack(word, best | (top if sign else 0))


def exact(number):
    """As a fraction; of exponents that would fill the memory only the direction matters."""
    mantissa, _, exponent = number.lower().partition("e")
    if abs(int(exponent or 0)) > 2000:
        return Fraction(mantissa) * Fraction(10) ** (2000 if int(exponent) > 0 else -2000)
    return Fraction(number)


def expected(text, dtype):
    """"shape bytes", or None: to be refused."""
    try:
        shape, numbers = flatten(parse(text))
        data = b""
        for item in numbers:
            if isinstance(item, str):
                data += struct.pack(TYPES[dtype][0], WORDS[item])
            else:
                data += nearest(exact(item[1]), item[1].startswith("-"), dtype)
    except (ValueError, RecursionError, Refused):
        return None
    return f"[{','.join(map(str, shape))}] {data.hex()}"


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def number(self):
        r = self.random
        kind = r.randrange(8)
        if kind == 0:
            return json.dumps(r.choice(list(WORDS)))
        if kind == 1:
            return repr(struct.unpack("<d", r.randbytes(8))[0]).replace("nan", "0").replace("inf", "1")
        if kind == 2:  # in the middle between two float32, or a hair beside it
            low = struct.unpack("<f", struct.pack("<I", r.randrange(1, 0x7F000000)))[0]
            high = struct.unpack("<f", struct.pack("<I", struct.unpack("<I", struct.pack("<f", low))[0] + 1))[0]
            middle = (Fraction(low) + Fraction(high)) / 2
            digits = f"{middle.numerator * 10**60 // middle.denominator}"
            return f"{digits}{r.choice(['', '1', '9'])}e-{60 + r.choice([0, 0, 1])}"
        if kind == 3:
            return str(r.randrange(-10 ** r.randrange(1, 25), 10 ** r.randrange(1, 25)))
        return f"{r.choice(['', '-'])}{r.randrange(1000)}.{r.randrange(10**r.randrange(1, 20))}" + \
            r.choice(["", f"e{r.randrange(-50, 40)}", f"E+{r.randrange(40)}"])

    def space(self):
        return self.random.choice(["", "", "", " ", "\t", " \r "])

    def array(self, shape):
        items = [self.array(shape[1:]) if len(shape) > 1 else self.number() for _ in range(shape[0])]
        return self.space() + "[" + ",".join(self.space() + item + self.space() for item in items) + "]"

    def text(self):
        r = self.random
        text = self.array([r.randrange(0, 4) if r.random() < 0.2 else r.randrange(1, 4)
                           for _ in range(r.randrange(1, 6) if r.random() < 0.1 else r.randrange(1, 5))]).strip()
        for _ in range(r.choice([0, 0, 1, 1, 2])):
            at, to = sorted((r.randrange(len(text) + 1), r.randrange(len(text) + 1)))
            piece = r.choice(["", ",", "[", "]", "0", "1", "-", "+", ".", "e", '"', '"NaN"', "null", "true", "{}", " ",
                              text[at:to], "\\u004e", "\x01", "é"])
            text = text[:at] + piece + text[at + r.choice([0, 0, 1]):]
        text = text.strip()
        return text if text.startswith("[") else "[" + text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--cases", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    maker, cases = Maker(options.seed), []
    for _ in range(options.cases):
        cases.append((maker.random.choice(list(TYPES)), maker.text()))
    sent = "".join(f"{dtype} {text}\n" for dtype, text in cases).encode()
    answers = subprocess.run([options.program], input=sent, stdout=subprocess.PIPE, check=True).stdout.decode()
    answers, read, wrong = answers.splitlines(), 0, 0
    for (dtype, text), answer in zip(cases, answers, strict=True):
        should = expected(text, dtype)
        does = answer[3:] if answer.startswith("ok ") else None
        read += does is not None
        if (does or "").strip() != (should or "").strip() or (does is None) != (should is None):
            if "NaN" in text and does and should and does.split()[0] == should.split()[0] and len(does) == len(should):
                continue  # of which there are many
            if "\\" in text and does is None:
                continue  # the words are meant as they are written, without escapes
            wrong += 1
            if wrong <= 10:
                print(f"{dtype} {text!r}\n  json says {should}\n  read as   {answer}")
    print(f"scanner: {read} texts of {len(cases)} were read")
    sys.exit(conclude("scanner", len(cases) - wrong, wrong + (read == 0)))


if __name__ == "__main__":
    main()
