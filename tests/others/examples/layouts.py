#!/usr/bin/env python3
"""
layouts.py: the size of each public struct of libattn, and the offset and size of each member, as the compiler lays them
out. A program that was built with other layouts must be built again.

    python3 tests/others/examples/layouts.py > core/libattn.layout
"""

import os
import pathlib
import re
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
STRUCTS = [(re.compile(r"^typedef struct \{\n(?P<body>.*?)^\} (?P<name>attn_\w+);", re.S | re.M), ""),
           (re.compile(r"^struct (?P<name>attn_\w+) \{\n(?P<body>.*?)^\};", re.S | re.M), "struct ")]


def members_of(body):
    """The names that the declarations in a struct declare. A union inside is one member."""
    for declaration in re.sub(r"\{[^{}]*\}", "", body).split(";"):
        declaration = re.sub(r"(\(\*\w+\))\([^()]*\)", r"\1", declaration)  # a function is declared by its name
        yield from re.findall(r"(\w+)\)?(?:\[[^\]]*\])*\s*(?:,|$)", declaration.strip())


def program(headers):
    """A C program that prints the layouts."""
    lines = ["#include <attn/attn.h>", "#include <stddef.h>", "#include <stdio.h>", "int main(void) {"]
    for header in sorted(headers.glob("*.h")):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
        for pattern, prefix in STRUCTS:
            for found in pattern.finditer(text):
                name = prefix + found["name"]
                lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
                lines += [f'printf("  {member} %zu %zu\\n", offsetof({name}, {member}), sizeof (({name} *)0)->{member});'
                          for member in members_of(found["body"])]
    return "\n".join([*lines, "return 0;", "}", ""])


def layouts(include=ROOT / "core" / "include"):
    """The text of core/libattn.layout for these headers."""
    with tempfile.TemporaryDirectory() as folder:
        source, binary = pathlib.Path(folder, "layouts.c"), pathlib.Path(folder, "layouts")
        source.write_text(program(include / "attn"))
        subprocess.run([*os.environ.get("CC", "cc").split(), "-std=c17", f"-I{include}", str(source), "-o", str(binary)],
                       check=True)
        return subprocess.run([str(binary)], check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    print(layouts(), end="")
