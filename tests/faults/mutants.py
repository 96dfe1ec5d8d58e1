#!/usr/bin/env python3
"""
mutants.py --room FOLDER --tests 'tokenizer show' [--one-in N]: mutation testing of a folder of C sources.

Changes one operator, constant or statement at a time in a copy of the tree, builds the unit tests, and runs them. A
mutant that no test notices survives: it is printed, as file:line, what was and what is. One whose object code is that of
the original is no mutant, and one that does not compile is none. A mutant takes half a second of a processor,
and --one-in tries some of them, always the same ones. The programs run in the order of --tests, up to the first that
fails.
"""

import argparse
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from suite import conclude  # noqa: E402

# What a careless hand may write for what. Statements are left out where they stand alone on a line.
CHANGES = [(r"(?<![<\-=])<=", "<"), (r">=", ">"), (r"(?<=\s)<(?=\s)", "<="), (r"(?<=\s)>(?=\s)", ">="), (r"==", "!="), (r"!=", "=="),
           (r"&&", "||"), (r"\|\|", "&&"), (r"(?<=\w) \+ (?=\w)", " - "), (r"(?<=[\w\])]) - (?=\w)", " + "),
           (r"!(?=[a-z_(])", ""), (r"\breturn true;", "return false;"), (r"\breturn false;", "return true;"),
           (r"(?<= )0(?=[;,)])", "1"), (r"(?<= )1(?=[;,)])", "0"), (r"(?<== )true(?=[;,)])", "false"), (r"(?<== )false(?=[;,)])", "true"),
           (r"^    +(?!return|break|continue|goto|case|default|const|static|struct|size_t|char|bool|uint|int|double)[a-z_*(][^{};]*;$", ";")]
PATIENCE = 10  # A program that takes so many times its time without a mutant, and SHORTEST seconds more, does not end.
SHORTEST = 5


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
    """A copy of the tree, whose test programs take the room from a shared library: a mutant links that alone."""

    def __init__(self, folder, rooms, tests):
        self.folder, self.programs = folder, []
        shutil.copytree(ROOT, folder, symlinks=True, ignore=shutil.ignore_patterns(".git", "build", "node_modules"), dirs_exist_ok=True)
        found = {path.stem.removeprefix("test_"): path for path in (folder / "tests" / "unit").rglob("test_*.c")}
        missing = [test for test in tests if test.partition(":")[0] not in found]
        if missing:
            sys.exit(f"no unit tests of these names: {' '.join(missing)}")
        names = {test: f"build/mutants/{found[test.partition(':')[0]].relative_to(folder).with_suffix('')}" for test in tests}
        self.sources = [path for room in rooms for path in (sorted((folder / room).rglob("*.c")) or [folder / room])]
        if not self.runs(self.make(*names.values())):
            sys.exit("the tests do not compile")
        objects = [str(self.object_of(path).relative_to(folder)) for path in self.sources]
        self.link = ["cc", "-shared", *objects, "-o", "build/mutants/room.so"]
        self.runs(self.link)
        for test, name in names.items():
            self.link_with_room(name, objects)
            case = {"CK_RUN_CASE": test.partition(":")[2]} if ":" in test else {}
            before = time.monotonic()
            if not self.passes(name, case, None):
                sys.exit(f"{test} does not pass without a mutant")
            self.programs.append((name, case, SHORTEST + PATIENCE * (time.monotonic() - before)))

    @staticmethod
    def make(*arguments):
        return ["make", "--no-print-directory", "-j2", "BUILD=build/mutants", "KERNELS=native", "CFLAGS=-O1 -g0 -w", "INSTALL=no", *arguments]

    def object_of(self, source):
        return (self.folder / "build" / "mutants" / source.relative_to(self.folder)).with_suffix(".o")

    def runs(self, command, **more):
        return subprocess.run(command, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, **more).returncode == 0

    def recipe(self, target, changed):
        """What make would run for target. To ask make each time takes longer than the compiler."""
        return subprocess.run(self.make("-n", "-W", changed, target), cwd=self.folder, stdout=subprocess.PIPE, text=True, check=True).stdout

    def link_with_room(self, program, objects):
        compiler, *rest = shlex.split(self.recipe(program, f"{program}.o"))
        flags = ["-Wl,--no-as-needed", "-Wl,--export-dynamic", f"-Wl,-rpath,{(self.folder / 'build' / 'mutants').resolve()}"]
        if not self.runs([compiler, *flags, "build/mutants/room.so", *(word for word in rest if word not in objects)]):
            sys.exit(f"{program} does not link with the room as a library")

    def passes(self, program, case, longest):
        try:
            return self.runs([program], timeout=longest, env={"CK_FORK": "no", "OPENBLAS_NUM_THREADS": "1", "PATH": "/usr/bin:/bin", **case})
        except subprocess.TimeoutExpired:
            return False

    def notices(self):
        """Whether the room does not link any more, or a program fails."""
        return not self.runs(self.link) or any(not self.passes(*program) for program in self.programs)


class Source:
    def __init__(self, copy, path):
        self.copy, self.path, self.text = copy, path, path.read_text()
        self.object = copy.object_of(path)
        self.code = self.object.read_bytes()
        self.compile = copy.recipe(str(self.object.relative_to(copy.folder)), str(path.relative_to(copy.folder)))

    def try_change(self, start, end, new):
        """One of VERDICTS."""
        self.path.write_text(self.text[:start] + new + self.text[end:])
        try:
            if not self.copy.runs(self.compile, shell=True):
                return "do not compile"
            if self.object.read_bytes() == self.code:
                return "have the same code"
            return "killed" if self.copy.notices() else "survived"
        finally:
            self.path.write_text(self.text)
            self.object.write_bytes(self.code)


VERDICTS = ("do not compile", "have the same code", "killed", "survived")


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().split("\n", maxsplit=1)[0])
    parser.add_argument("--room", required=True, nargs="+", help="folders of sources, or sources")
    parser.add_argument("--tests", required=True, help="names of unit tests, the quickest first; NAME:CASE is one case of a program")
    parser.add_argument("--one-in", type=int, default=1)
    parser.add_argument("--copy", default=str(ROOT / "build" / "mutants"), help="where the tree is copied to")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # so that the object of a mutant does not stay
    copy = Copy(pathlib.Path(options.copy), options.room, options.tests.split())
    counts, number = dict.fromkeys(VERDICTS, 0), 0
    for path in copy.sources:
        source = Source(copy, path)
        for start, end, new in mutants_of(path):
            number += 1
            if number % options.one_in != 0:
                continue
            verdict = source.try_change(start, end, new)
            counts[verdict] += 1
            if verdict == "survived":
                line = source.text.count("\n", 0, start)
                was, now = (text.split("\n")[line].strip() for text in (source.text, source.text[:start] + new + source.text[end:]))
                print(f"survived: {path.relative_to(copy.folder)}:{line + 1}: {was}   ->   {now}", flush=True)
    print(f"{number} changes, of which {sum(counts.values())} were tried: "
          f"{counts['do not compile']} do not compile, {counts['have the same code']} have the same code")
    return conclude("mutants", counts["killed"], counts["survived"], 0)


if __name__ == "__main__":
    sys.exit(main())
