#!/usr/bin/env python3
"""
layers.py BUILD: holds includes and calls of core/ and server/ against one written order.

A unit is a .c file and the header of its name. A unit uses another when it includes its header, or when its object file
below BUILD takes a symbol from the other's. Three rules hold:

  order    a unit uses units of its own room, and of the rooms that ORDER names before it
  circles  no unit uses itself by way of others; the path of a circle is printed
  homes    the header of a foreign library is included in one place (HOMES)

Besides, a folder, also of the page and of the tests, stays small enough to read (FILES_MAX, LINES_MAX). The last lines tell how
large the whole is.
"""

import argparse
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent

# A room is a folder, or one unit where a folder's own units stand at several places of the order.
ORDER = """
    core/include/attn
    core/src/base core/src/formulas core/src/mask core/src/request core/src/kernel/vector core/src/kernel core/src/kernel/products core/src/kernel/rows core/src/kernel/features core/src/kernel/units core/src/runtime core/src/gemm
    core/src/attention core/src/layer core/src/backward core/src/model core/src/api
    server/base/array server/base server/config
    server/codec/bytes server/codec/number server/codec/json server/codec/words server/codec/tensor server/codec/request server/codec/answer
    server/codec/picture/fonts server/codec/picture server/codec/oip server/codec/checkpoint/language server/codec/checkpoint server/codec/model
    server/codec/tokenizer/text server/codec/tokenizer/model server/codec/tokenizer/slow server/codec/tokenizer server/codec/gguf
    server/service server/service/registry/files server/service/registry/prepared server/service/registry/version
    server/service/registry/layer/version server/service/registry server/service/registry/layer server/service/cache server/service/metrics
    server/service/run server/service/registry/model server/service/run/batch
    server/service/run/model/job server/service/run/model/item server/service/run/model/output
    server/service/run/model/copy server/service/run/model/embedding server/service/run/model/questions
    server/service/run/model server/service/run/model/gradients
    server/service/infer
    server/http/wire server/http/connections server/http server/program server/main
""".split()

HOMES = {
    "microhttpd.h": "server/http/",
    "jansson.h": "server/codec/json/",
    "png.h": "server/codec/picture/",
    "ft2build.h": "server/codec/picture/",
    "utf8proc.h": "server/codec/tokenizer/text/unicode.c",
    "pcre2.h": "server/codec/tokenizer/text/pattern.c",
    "zlib.h": "server/codec/bytes/",
    "zstd.h": "server/codec/bytes/",
    "nettle/": "server/base/digest.c",
    "gnutls/": ("server/http/connections/tls.c", "server/program/commands.c"),
    "cblas.h": "core/src/gemm/blas.c",
    "openblas_config.h": "core/src/gemm/blas.c",
}

FILES_MAX = 25
LINES_MAX = 3600
SIZED = ("core", "server", "tests", "bench", "examples", "packaging", "docker", "mk")
SIZED_SUFFIXES = (".awk", ".c", ".css", ".h", ".html", ".js", ".mjs", ".mk", ".py", ".sh")

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)


def sources():
    return sorted(path.relative_to(ROOT) for folder in ("core", "server") for path in (ROOT / folder).rglob("*")
                  if path.suffix in (".c", ".h"))


def unit_of(path):
    return str(path.parent / path.name.split(".")[0])


def folders_of(path):
    """Where the compiler looks for what this file includes. The server sees the core's public headers alone."""
    own = ["server"] if path.parts[0] == "server" else ["core/src"]
    return [str(path.parent), *own, "core/include"]


def find_includes(paths):
    """({(user, used): why}, complaints about foreign headers)"""
    known = {str(path): unit_of(path) for path in paths}
    uses, complaints = {}, []
    for path in paths:
        for quote, name in INCLUDE.findall((ROOT / path).read_text()):
            found = next((known[f"{folder}/{name}"] for folder in folders_of(path) if f"{folder}/{name}" in known), None)
            if found and found != unit_of(path):
                uses[unit_of(path), found] = f"{path} includes {name}"
            home = next((home for header, home in HOMES.items() if name.startswith(header)), None)
            if home and not str(path).startswith(home):
                complaints.append(f"{path} includes {name}, whose home is {home}")
            if quote == '"' and not found and (ROOT / "core/src" / name).exists():
                complaints.append(f"{path} includes {name}: the server includes the core's public headers only")
    return uses, complaints


def find_calls(paths, build):
    """{(user, used): why}, by the symbols of object files."""
    homes, wanted = {}, {}
    for path in paths:
        if path.suffix != ".c":
            continue
        # avx2.c, which is compiled in parts, gives avx2.f32.rest.o and others.
        objects = list((build / path.parent).glob(f"{path.stem}.*o"))
        if not objects:
            continue  # a kernel that KERNELS leaves out
        printed = subprocess.run(["nm", "-gP", *objects], check=True, capture_output=True, text=True)
        for name, kind in re.findall(r"^(\S+) ([A-Za-z])\b", printed.stdout, re.MULTILINE):
            if kind == "U":
                wanted.setdefault(unit_of(path), []).append(name)
            else:
                homes[name] = unit_of(path)
    return {(user, homes[name]): f"{user} calls {name}" for user, names in wanted.items() for name in names
            if homes.get(name, user) != user}


def rank(unit):
    """The place of a unit's room in ORDER; None when it has none."""
    return next((ORDER.index(room) for room in (unit, unit.rsplit("/", 1)[0]) if room in ORDER), None)


def check_order(uses):
    return [f"{why}: {used} stands behind {user} in the order of rooms" for (user, used), why in sorted(uses.items())
            if rank(user) is not None and rank(used) is not None and rank(used) > rank(user)]


def find_circle(graph):
    """The units of one circle in order, or nothing: a walk in depth, on whose path a unit is met again."""
    finished = set()
    for start in sorted(graph):
        path, choices = [start], [iter(sorted(graph[start]))]
        while path:
            used = next((unit for unit in choices[-1] if unit not in finished), None)
            if used is None:
                finished.add(path.pop())
                choices.pop()
            elif used in path:
                return path[path.index(used):]
            else:
                path.append(used)
                choices.append(iter(sorted(graph.get(used, ()))))
    return []


def check_circles(uses):
    graph = {}
    for user, used in uses:
        graph.setdefault(user, set()).add(used)
    circle = find_circle(graph)
    if not circle:
        return []
    steps = zip(circle, circle[1:] + circle[:1])
    return ["a circle: " + "\n    ".join(f"{uses[step]} (of {step[1]})" for step in steps)]


def check_sizes():
    rooms = {}
    for folder in SIZED:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in SIZED_SUFFIXES and "node_modules" not in path.parts:
                rooms.setdefault(path.parent.relative_to(ROOT), []).append(path.read_text().count("\n"))
    return [f"{room}: {len(lines)} files, {sum(lines)} lines; a room has at most {FILES_MAX} and {LINES_MAX}"
            for room, lines in sorted(rooms.items()) if len(lines) > FILES_MAX or sum(lines) > LINES_MAX]


def main():
    parser = argparse.ArgumentParser(description="hold includes and calls against the order of rooms")
    parser.add_argument("build", type=pathlib.Path, help="where the object files are, such as build/release")
    parser.add_argument("--graph", action="store_true", help="print which room uses which, and how often")
    options = parser.parse_args()
    paths = sources()
    includes, complaints = find_includes(paths)
    uses = {**find_calls(paths, ROOT / options.build), **includes}
    complaints += [f"{path} stands in no room of ORDER" for path in paths if rank(unit_of(path)) is None]
    complaints += check_order(uses) + check_circles(uses) + check_sizes()
    if options.graph:
        print_graph(uses)
    print(*complaints, sep="\n", end="\n" if complaints else "")
    if complaints:
        return 1
    print(f"layers: {len({unit_of(path) for path in paths})} units in {len(ORDER)} rooms; includes and calls point one way, no circles")
    print_figures(paths)
    return 0


def print_figures(paths):
    """How large the whole is: figures that tell a restructuring from a rearrangement."""
    texts = {str(path): (ROOT / path).read_text() for path in paths}
    print(f"size: {sum(text.count(chr(10)) for text in texts.values())} lines in {len(texts)} C files, "
          f"{sum(path.name.startswith('model') for path in paths)} named model…, "
          f"{sum(text.count('status == ATTN_OK') for text in texts.values())} times status == ATTN_OK")


def print_graph(uses):
    counts = {}
    for user, used in uses:
        pair = ORDER[rank(user)], ORDER[rank(used)]
        if pair[0] != pair[1]:
            counts[pair] = counts.get(pair, 0) + 1
    for user in ORDER:
        below = [f"{used} {counts[user, used]}" for used in ORDER if (user, used) in counts]
        if below:
            print(f"{user} -> {', '.join(below)}")


if __name__ == "__main__":
    raise SystemExit(main())
