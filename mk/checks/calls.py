#!/usr/bin/env python3
"""
checks/calls.py README.md…: each row of a table "| step | file | function |" names a file and functions that it defines.

A file stands relative to the folder of its README. A README without such a row is wrong.
"""

import pathlib
import re
import sys

HEAD = re.compile(r"^\| *step *\| *file *\| *function *\|$")
NAME = re.compile(r"`([^`]+)`")


def rows(readme):
    """(files, functions) of each row below a head of that form."""
    is_inside = False
    for line in readme.read_text().splitlines():
        if HEAD.match(line):
            is_inside = True
        elif not line.startswith("|"):
            is_inside = False
        elif is_inside and "---" not in line:
            _, _, files, functions, _ = re.split(r"(?<!\\)\|", line)
            yield NAME.findall(files), NAME.findall(functions)


def defines(text, function):
    """Whether a line at the margin has the function's name and a parameter list, and is no declaration."""
    return any(line.rstrip()[-1:] != ";" for line in re.findall(rf"^[a-zA-Z].*\b{re.escape(function)}\(.*$", text, re.MULTILINE))


def wrongs_of(readme):
    found = list(rows(readme))
    if not found:
        yield f'{readme}: no table "| step | file | function |"'
    for files, functions in found:
        missing = [name for name in files if not (readme.parent / name).is_file()]
        for name in missing:
            yield f"{readme}: the way of a request names {name}, which is no file"
        text = "".join((readme.parent / name).read_text() for name in files if name not in missing)
        for function in functions:
            if not missing and not defines(text, function):
                yield f"{readme}: the way of a request names {function}, which {' and '.join(files)} does not define"
        if not files or not functions:
            yield f"{readme}: a row of the way of a request names no file or no function"


def main():
    readmes = [pathlib.Path(name) for name in sys.argv[1:]]
    wrong = [sentence for readme in readmes for sentence in wrongs_of(readme)]
    for sentence in wrong:
        print(sentence)
    if not wrong:
        print(f"calls: {sum(len(list(rows(readme))) for readme in readmes)} steps of a request are where the READMEs say")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
