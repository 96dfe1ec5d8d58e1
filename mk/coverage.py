#!/usr/bin/env python3
"""
coverage.py REPORT.json: lines and branches that the tests executed, from gcovr's JSON.

Prints a line for each folder; writes beside the report by_file.md, a table, and uncovered.txt: each line that nothing
executed, and each line of which a branch was not taken, with its text.

Branches that nothing can take are not counted: where a switch over an enumeration names all its values, the way past
them all; where jansson's macros ask whether there is a value at all before they ask for its type, that there is none.
"""

import argparse
import collections
import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
JSON_MACRO = re.compile(r"\bjson_(?:is_[a-z]+|(?:array|object)_foreach)\(")
SWITCH = re.compile(r"^(\s*)switch \(")


class Tally:
    """What there is and what of it was executed."""

    def __init__(self):
        self.lines = self.executed = self.branches = self.taken = 0

    def __add__(self, other):
        both = Tally()
        for name in vars(both):
            setattr(both, name, getattr(self, name) + getattr(other, name))
        return both

    def cells(self):
        return (f"{self.executed} of {self.lines}", percent(self.executed, self.lines),
                f"{self.taken} of {self.branches}", percent(self.taken, self.branches))


def percent(part, whole):
    """Rounded down: 100 means all."""
    return f"{int(1000 * part / whole) / 10 if whole else 100:.1f} %"


def is_complete_switch(source, number):
    """Whether a switch begins in that line and has no default."""
    found = SWITCH.match(source[number - 1])
    if not found:
        return False
    for line in source[number:]:
        if line.startswith(found.group(1) + "}"):
            return True
        if re.match(r"\s*default:", line):
            return False
    return False


def branches_of(line, source):
    """How often each branch of a line was taken, without those that no input can take."""
    number = line["line_number"]
    counts = [branch["count"] for branch in line.get("branches", ())]
    text = source[number - 1]
    beyond = int(is_complete_switch(source, number)) + len(JSON_MACRO.findall(text)) + text.count("json_is_number(")
    for _ in range(min(beyond, counts.count(0)) if any(counts) else 0):
        counts.remove(0)
    return counts


def read_file(file):
    """(tally, [sentence about a line]) of one file."""
    tally, missing = Tally(), []
    source = (ROOT / file["file"]).read_text().splitlines()
    for line in sorted(file["lines"], key=lambda line: line["line_number"]):
        if line.get("gcovr/noncode"):
            continue
        counts = branches_of(line, source)
        taken = sum(count > 0 for count in counts)
        tally += tally_of(line["count"] > 0, len(counts), taken)
        place, text = f"{file['file']}:{line['line_number']}", source[line["line_number"] - 1].strip()
        if line["count"] == 0:
            missing.append(f"{place}: not executed: {text}")
        elif taken < len(counts):
            missing.append(f"{place}: {len(counts) - taken} of {len(counts)} branches not taken: {text}")
    return tally, missing


def tally_of(is_executed, branches, taken):
    tally = Tally()
    tally.lines, tally.executed, tally.branches, tally.taken = 1, int(is_executed), branches, taken
    return tally


def table(first, tallies):
    rows = [(first, "lines", "", "branches", ""), ("---", "---:", "---:", "---:", "---:")]
    rows += [(name, *tally.cells()) for name, tally in tallies.items()]
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=pathlib.Path)
    options = parser.parse_args()
    files, folders, uncovered = {}, collections.defaultdict(Tally), []
    for file in sorted(json.loads(options.report.read_text())["files"], key=lambda file: file["file"]):
        tally, missing = read_file(file)
        files[file["file"]] = tally
        folders[str(pathlib.PurePath(file["file"]).parent)] += tally
        uncovered += missing
    folders["in all"] = sum(files.values(), Tally())
    (options.report.parent / "by_file.md").write_text(table("file", files))
    (options.report.parent / "uncovered.txt").write_text("".join(line + "\n" for line in uncovered))
    for name, tally in folders.items():
        lines, lines_percent, branches, branches_percent = tally.cells()
        print(f"coverage: {name:18} {lines:>14} lines {lines_percent:>8} {branches:>15} branches {branches_percent:>8}")


if __name__ == "__main__":
    main()
