#!/usr/bin/env python3
"""
checks/option.py: the table "Adding an option of a request" of CONTRIBUTING.md names the files that an option touches.

Each file of the first column has the option that the text takes as its example, and each file of ROOMS that has it, C
comments aside, stands in that column.
"""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
ROOMS = ("core", "server", "mk", "clients")
TEXTS = {".c", ".h", ".js", ".json", ".py", ".mk", ".layout"}
# The head of a model has an option of the same name.
OTHER = ("core/include/attn/model.h", "core/src/model/", "server/codec/checkpoint/", "server/codec/gguf/",
         "server/service/run/model/")


def named():
    """The example, and the files of the first column."""
    section = (ROOT / "CONTRIBUTING.md").read_text().partition("## Adding an option of a request\n")[2].partition("\n## ")[0]
    files = {path for row in re.findall(r"^\| (`.*?) \|", section, re.MULTILINE) for path in re.findall(r"`([\w./-]+)`", row)}
    return re.search(r"Use `(\w+)` as the example", section)[1], files


def has(path, option):
    text = path.read_text()
    return option in (COMMENT.sub("", text) if path.suffix in (".c", ".h") else text)


def users(option):
    for room in ROOMS:
        for path in (ROOT / room).rglob("*"):
            if path.suffix in TEXTS and path.is_file() and "node_modules" not in path.parts and has(path, option):
                yield str(path.relative_to(ROOT))


def main():
    (option, files), wrongs = named(), []
    found = {name for name in users(option) if not name.startswith(OTHER)}
    wrongs += [f"CONTRIBUTING.md names {name}, which has no {option}" for name in sorted(files - found)]
    wrongs += [f"{name} has {option}, and CONTRIBUTING.md does not name it" for name in sorted(found - files)]
    print(*(wrongs or [f"option: {option} is in the {len(files)} files that CONTRIBUTING.md names"]), sep="\n")
    return bool(wrongs)


if __name__ == "__main__":
    raise SystemExit(main())
