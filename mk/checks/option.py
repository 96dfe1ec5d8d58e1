#!/usr/bin/env python3
"""
checks/option.py: the table "Adding an option of a request" of CONTRIBUTING.md names the files that an option touches.

Its example is softcap: each file of the first column has it, and each source of ROOMS that has it outside of comments stands
in that column.
"""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
OPTION = re.compile(r"softcap")
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
ROOMS = ("core/src", "server/codec/request", "server/codec/answer")
OTHER = "core/src/model"  # the head of a model has an option of the same name


def named():
    section = (ROOT / "CONTRIBUTING.md").read_text().partition("## Adding an option of a request\n")[2].partition("\n## ")[0]
    return {path for row in re.findall(r"^\| (`.*?) \|", section, re.MULTILINE) for path in re.findall(r"`([\w./]+)`", row)}


def users():
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.[ch]"):
            name = str(path.relative_to(ROOT))
            if OPTION.search(COMMENT.sub("", path.read_text())) and not name.startswith(OTHER):
                yield name


def main():
    files, found = named(), set(users())
    wrongs = [f"CONTRIBUTING.md names {name}, which has no softcap" for name in sorted(files)
              if not (ROOT / name).is_file() or not OPTION.search((ROOT / name).read_text())]
    wrongs += [f"{name} has softcap, and CONTRIBUTING.md does not name it" for name in sorted(found - files)]
    print(*(wrongs or [f"option: softcap is in the {len(files)} files that CONTRIBUTING.md names"]), sep="\n")
    return bool(wrongs)


if __name__ == "__main__":
    raise SystemExit(main())
