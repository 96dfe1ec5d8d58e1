#!/usr/bin/env python3
"""
run.py README.md: runs the commands that the README shows, and compares their output with the README.

A ```sh block whose commands start with curl runs against a server of the test; the README's 127.0.0.1:8080 is
replaced by its address. When the next block is ```json, it is the expected answer: every member that it has must be
there, numbers must agree to the digits that are written, and "…" stands for anything. When it is ```text, the output
must be that text. A picture that a command saves is as large as the one of its name in docs/. Other blocks are left alone.
"""

import argparse
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from attnd import Server, parse_json  # noqa: E402
from suite import conclude  # noqa: E402

ADDRESS = "127.0.0.1:8080"
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
    failed = 0
    with Server(options.attnd, options.url) as server, tempfile.TemporaryDirectory() as folder:
        for command, kind, expected in commands:
            wrong = run_command(command.replace(ADDRESS, server.url.removeprefix("http://")), kind, expected, folder)
            if wrong:
                failed += 1
                print(f"{path}: {command.splitlines()[0]} …\n    {wrong}")
    return conclude("readme", len(commands) - failed, failed)


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
    for picture in pathlib.Path(folder).glob("*.png"):
        shown = ROOT / "docs" / picture.name
        if not is_like(png_size(picture), png_size(shown)):
            return f"{picture.name} is of {png_size(picture)} pixels, {shown} of {png_size(shown)}"
    if kind == "text":
        return None if done.stdout.strip() == expected.strip() else f"printed {done.stdout[:500]}"
    if kind is None:
        return None
    try:
        printed = parse_json(done.stdout)
    except ValueError as error:
        return f"printed no JSON ({error}): {done.stdout[:500]}"
    return difference(printed, json.loads(expected, parse_float=Decimal), "")


def png_size(path):
    return struct.unpack(">II", path.read_bytes()[16:24])


def is_like(size, other):
    """Another version of a font gives labels of another width."""
    return all(abs(mine - theirs) <= 0.05 * theirs for mine, theirs in zip(size, other))


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


def agrees(number, decimal):
    """Within one unit of the last digit written."""
    mantissa, _, exponent = decimal.lower().partition("e")
    digits = len(mantissa.partition(".")[2])
    return abs(number - float(decimal)) <= 1.01 * 10.0 ** (int(exponent or 0) - digits)


if __name__ == "__main__":
    sys.exit(main())
