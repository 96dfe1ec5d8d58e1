#!/usr/bin/env python3
"""
run.py README.md: runs the commands that the README shows, and compares their output with the README.

A ```sh block whose commands start with curl runs against a server of the test; the README's 127.0.0.1:8080 is
replaced by its address. When the next block is ```json, it is the expected answer: every member that it has must be
there, numbers must agree to the digits that are written, and "…" stands for anything. When it is ```text, the output
must be that text. A picture that a command saves shows what the one of its name in docs/img shows. lines.py tries
lines for a cluster and for a container, tests/clients the page. Other blocks are left alone.
"""

import argparse
import collections
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from attnd import Server, parse_json  # noqa: E402
from suite import Skipped, conclude  # noqa: E402

import lines  # noqa: E402

ADDRESS = "127.0.0.1:8080"
AS_IT_COMES = {"ATTND_NO_MODELS": "off"}  # other tests serve fewer models
ANYTHING = "…"
FENCE = re.compile(r"^```([a-z]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Decimal(str):
    """A number with the digits that the README shows."""


def main():
    parser = argparse.ArgumentParser(description="run the README's commands")
    server = parser.add_mutually_exclusive_group(required=True)
    server.add_argument("--attnd", help="server to start")
    server.add_argument("--url", help="server that runs already")
    parser.add_argument("readme")
    options = parser.parse_args()
    path = pathlib.Path(options.readme)
    commands = pairs(path.read_text()) if path.exists() else []
    if not commands:
        print(f"readme: no commands found in {path}")
        return conclude("readme", 0, 1)
    others = [(body, attempt) for kind, body in FENCE.findall(path.read_text())
              if (attempt := lines.kind_of(kind, body)) is not None]
    failed = skipped = 0
    with Server(options.attnd, options.url, environment=AS_IT_COMES) as server, tempfile.TemporaryDirectory() as folder:
        address = server.url.removeprefix("http://")
        for command, kind, expected in commands:
            wrong = run_command(command.replace(ADDRESS, address), kind, expected, folder)
            if wrong:
                failed += 1
                print(f"{path}: {command.splitlines()[0]} …\n    {wrong}")
        for body, attempt in others:
            try:
                attempt(body.replace(ADDRESS, address), folder)
            except Skipped as why:
                skipped += 1
                print(f"skipped: {path}: {attempt.__name__}: {why}")
            except (AssertionError, ValueError) as error:
                failed += 1
                print(f"{path}: {attempt.__name__}: {error}")
    return conclude("readme", len(commands) + len(others) - failed - skipped, failed, skipped)


def pairs(text):
    """(command, kind of the expected output or None, expected output) of every block that calls a server."""
    blocks = FENCE.findall(text)
    found = []
    for at, (kind, body) in enumerate(blocks):
        if kind == "sh" and re.search(r"^\s*curl\b", body, re.MULTILINE):
            after = blocks[at + 1] if at + 1 < len(blocks) else ("", "")
            found.append((body, *(after if after[0] in ("json", "text") else (None, None))))
    return found


def run_command(command, kind, expected, folder):
    """None, or what went wrong."""
    done = subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        return f"ended with {done.returncode}: {done.stderr[-500:]}"
    return compare_pictures(folder) or compare_output(done.stdout, kind, expected)


def compare_pictures(folder):
    for picture in pathlib.Path(folder).glob("*.png"):
        shown = ROOT / "docs" / "img" / picture.name
        if picture.read_bytes() != shown.read_bytes() and not is_like(colours(picture), colours(shown)):
            return f"{picture.name} is not {shown}"
    return None


def compare_output(text, kind, expected, is_exact=False):
    """None, or what differs. is_exact: numbers are written as in the answer, not shortened."""
    if kind == "text":
        return None if text.strip() == expected.strip() else f"printed {text[:500]}"
    if kind is None:
        return None
    try:
        printed = parse_json(text)
    except ValueError as error:
        return f"printed no JSON ({error}): {text[:500]}"
    return difference(printed, json.loads(expected, parse_float=float if is_exact else Decimal), "")


def colours(path):
    """How many pixels have each colour."""
    data = path.read_bytes()
    width, height, depth, kind = struct.unpack(">IIBB", data[16:26])
    at, parts = 8, {b"IDAT": b"", b"PLTE": b""}
    while at < len(data):
        length, name = struct.unpack(">I4s", data[at:at + 8])
        if name in parts:
            parts[name] += data[at + 8:at + 8 + length]
        at += length + 12
    assert (depth, kind) in ((8, 2), (8, 3)), f"{path} has colours of another form"
    size = 3 if kind == 2 else 1
    pixels = unfiltered(zlib.decompress(parts[b"IDAT"]), width * size, height, size)
    palette = parts[b"PLTE"]
    return collections.Counter(palette[3 * pixel[0]:3 * pixel[0] + 3] if size == 1 else pixel
                               for pixel in (pixels[at:at + size] for at in range(0, len(pixels), size)))


def unfiltered(data, stride, height, size):
    """The bytes of the pixels (PNG, section 9.2)."""
    pixels, above = bytearray(), bytes(stride)
    for row in range(height):
        start = row * (stride + 1)
        kind, line = data[start], bytearray(data[start + 1:start + 1 + stride])
        for at in range(stride):
            left, up, corner = line[at - size] if at >= size else 0, above[at], above[at - size] if at >= size else 0
            line[at] = (line[at] + (0, left, up, (left + up) // 2, nearest(left, up, corner))[kind]) % 256
        pixels += line
        above = line
    return bytes(pixels)


def nearest(left, up, corner):
    return min((left, up, corner), key=lambda value: abs(left + up - corner - value))


def is_like(mine, theirs):
    """The same cells. Another version of a font gives labels of another width, and other shades of grey."""
    def large(counts):
        return {colour for colour, count in counts.items() if count >= 0.005 * sum(counts.values())}
    return large(mine) == large(theirs) and all(abs(mine[each] - theirs[each]) <= 0.05 * theirs[each] for each in large(theirs))


def difference(got, wanted, pointer):
    """None, or the first place where got differs from wanted."""
    if wanted == ANYTHING:
        return None
    if isinstance(wanted, dict) and isinstance(got, dict):
        missing = [name for name in wanted if name not in got]
        inner = (difference(got[name], item, f"{pointer}/{name}") for name, item in wanted.items() if name in got)
        return f"{pointer} lacks {missing}" if missing else next(filter(None, inner), None)
    if isinstance(wanted, list) and isinstance(got, list) and len(wanted) == len(got):
        return next(filter(None, (difference(mine, theirs, f"{pointer}/{at}")
                                  for at, (mine, theirs) in enumerate(zip(got, wanted)))), None)
    if isinstance(wanted, Decimal):
        is_same = isinstance(got, (int, float)) and agrees(got, wanted)
    else:
        is_same = got == wanted and isinstance(got, bool) == isinstance(wanted, bool)
    return None if is_same else f"{pointer} is {json.dumps(got)}, the README says {json.dumps(wanted)}"


def agrees(number, decimal, units=1.01):
    """Within so many units of the last digit written."""
    mantissa, _, exponent = decimal.lower().partition("e")
    digits = len(mantissa.partition(".")[2])
    return abs(number - float(decimal)) <= units * 10.0 ** (int(exponent or 0) - digits)


if __name__ == "__main__":
    sys.exit(main())
