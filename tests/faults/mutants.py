#!/usr/bin/env python3
"""
mutants.py --room FOLDER --tests 'tokenizer show' [--one-in N]: mutation testing of a folder of C sources.

Changes one operator, constant or statement at a time in a copy of the tree, builds the unit tests, and runs them. A
mutant that no test notices survives: it is printed, as file:line, what was and what is. One whose object code is that of
the original is no mutant, and one that does not compile is none. A whole room takes hours, so --one-in tries some of
them, always the same ones.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from suite import conclude  # noqa: E402

# What a careless hand may write for what. Statements are left out where they stand alone on a line.
CHANGES = [(r"(?<![<\-=])<=", "<"), (r">=", ">"), (r"(?<=\s)<(?=\s)", "<="), (r"(?<=\s)>(?=\s)", ">="), (r"==", "!="), (r"!=", "=="),
           (r"&&", "||"), (r"\|\|", "&&"), (r"(?<=\w) \+ (?=\w)", " - "), (r"(?<=[\w\])]) - (?=\w)", " + "),
           (r"!(?=[a-z_(])", ""), (r"\breturn true;", "return false;"), (r"\breturn false;", "return true;"),
           (r"(?<= )0(?=[;,)])", "1"), (r"(?<= )1(?=[;,)])", "0"), (r"(?<== )true(?=[;,)])", "false"), (r"(?<== )false(?=[;,)])", "true"),
           (r"^    +(?!return|break|continue|goto|case|default|const|static|struct|size_t|char|bool|uint|int|double)[a-z_*(][^{}]*;$", ";")]
LONGEST = 60  # seconds of a test program


def code_of(text):
    """The text with comments, strings and directives as spaces, of the same length."""
    blank = lambda found: re.sub(r"[^\n]", " ", found[0])  # noqa: E731
    text = re.sub(r"/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", blank, text, flags=re.DOTALL)
    return re.sub(r"^#(?:[^\n]*\\\n)*[^\n]*|^ *assert\([^\n]*", blank, text, flags=re.MULTILINE)


def mutants_of(path):
    """The place and the text of each change of a source: (start, end, new)."""
    code = code_of(path.read_text())
    for pattern, new in CHANGES:
        for found in re.finditer(pattern, code, re.MULTILINE):
            yield found.start(), found.end(), new


class Copy:
    def __init__(self, folder, tests):
        self.folder, self.tests = folder, tests
        shutil.copytree(ROOT, folder, symlinks=True, ignore=shutil.ignore_patterns(".git", "build", "node_modules"), dirs_exist_ok=True)
        found = {path.stem.removeprefix("test_"): path for path in (folder / "tests" / "unit").rglob("test_*.c")}
        missing = [name for name in tests if name not in found]
        if missing:
            sys.exit(f"no unit tests of these names: {' '.join(missing)}")
        self.programs = [f"build/mutants/{found[name].relative_to(folder).with_suffix('')}" for name in tests]

    def builds(self, *targets):
        done = subprocess.run(["make", "-j2", "BUILD=build/mutants", "KERNELS=native", "CFLAGS=-O1 -g0 -w", "INSTALL=no", *targets],
                              cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        return done.returncode == 0

    def passes(self):
        for program in self.programs:
            try:
                done = subprocess.run([program], cwd=self.folder, timeout=LONGEST, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                      env={"CK_FORK": "no", "OPENBLAS_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"}, check=False)
            except subprocess.TimeoutExpired:
                return False
            if done.returncode != 0:
                return False
        return True


def try_mutant(copy, source, original, change):
    """"none", "killed" or "survived"."""
    start, end, new = change
    target = source.relative_to(copy.folder).with_suffix(".o")
    compiled = copy.folder / "build" / "mutants" / target
    before = compiled.read_bytes()
    source.write_text(original[:start] + new + original[end:])
    try:
        if not copy.builds(f"build/mutants/{target}") or compiled.read_bytes() == before:
            return "none"
        return "survived" if copy.builds(*copy.programs) and copy.passes() else "killed"
    finally:
        source.write_text(original)
        if not copy.builds(f"build/mutants/{target}"):
            sys.exit(f"{source} does not compile any more")


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().split("\n", maxsplit=1)[0])
    parser.add_argument("--room", required=True, help="a folder of sources, or one source")
    parser.add_argument("--tests", required=True, help="names of unit tests, the quickest first")
    parser.add_argument("--one-in", type=int, default=1)
    parser.add_argument("--copy", default=str(ROOT / "build" / "mutants"), help="where the tree is copied to")
    options = parser.parse_args()
    copy = Copy(pathlib.Path(options.copy), options.tests.split())
    if not copy.builds(*copy.programs) or not copy.passes():
        sys.exit("the tests do not pass without a mutant")
    room = copy.folder / options.room
    counts, number = {"none": 0, "killed": 0, "survived": 0}, 0
    for source in sorted(room.rglob("*.c")) if room.is_dir() else [room]:
        original = source.read_text()
        for change in mutants_of(source):
            number += 1
            if number % options.one_in != 0:
                continue
            verdict = try_mutant(copy, source, original, change)
            counts[verdict] += 1
            if verdict == "survived":
                start, end, new = change
                line = original.count("\n", 0, start)
                was = original.split("\n")[line].strip()
                print(f"survived: {source.relative_to(copy.folder)}:{line + 1}: {was}   [{original[start:end].strip()} -> {new.strip()}]", flush=True)
    print(f"{number} changes, of which {sum(counts.values())} were tried; {counts['none']} are no mutants")
    return conclude("mutants", counts["killed"], counts["survived"], 0)


if __name__ == "__main__":
    sys.exit(main())
