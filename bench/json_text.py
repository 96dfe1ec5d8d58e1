#!/usr/bin/env python3
"""
json_text.py: reading and writing JSON arrays of numbers by this project, jansson, Node's JSON and Python's json.

    python3 bench/json_text.py --program build/release/bench/json_bench [--rounds 3]

All work on the same files, one after the other, round by round; shown is the median over the rounds. × is how many
times as long as attnd took. attnd writes the shortest text of a float32, the others that of the double they hold.
"""

import sys

sys.path.pop(0)  # this file's folder: it would be taken for the module json

import argparse  # noqa: E402
import json  # noqa: E402
import pathlib  # noqa: E402
import shutil  # noqa: E402
import statistics  # noqa: E402
import subprocess  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402

KINDS = {
    "nine": "uniform, nine digits behind the point",
    "uniform": "uniform in [0, 1)",
    "softmax": "softmax weights",
    "normal": "normal",
}
PEER = pathlib.Path(__file__).resolve().parent / "peers" / "json_peer.mjs"
PYTHON_ROUNDS = 3


def measure_python(path):
    """The lines that the other contenders print."""
    text = path.read_text()
    tree = json.loads(text)
    count = sum(map(len, tree))
    for what, run in ("read", lambda: (json.loads(text), len(text))[1]), ("write", lambda: len(json.dumps(tree))):
        best, size = float("inf"), 0
        for _ in range(PYTHON_ROUNDS):
            start = time.perf_counter_ns()
            size = run()
            best = min(best, time.perf_counter_ns() - start)
        yield "python %s %.2f %.1f" % (what, best / count, size * 1e3 / best)


def lines_of(command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def measure_file(path, program, node, rounds):
    """{(contender, what): (ns a number, MB/s)}"""
    found = {}
    for _ in range(rounds):
        lines = lines_of([program, "run", path]) + list(measure_python(path))
        lines += lines_of([node, PEER, path]) if node else []
        for name, what, took, speed in map(str.split, lines):
            found.setdefault((name, what), []).append((float(took), float(speed)))
    return {key: tuple(map(statistics.median, zip(*values))) for key, values in found.items()}


def print_file(kind, found):
    print("\n%s\n%-10s %10s %8s %7s %14s %8s %7s" % (KINDS[kind], "", "read ns", "MB/s", "×", "write ns", "MB/s", "×"))
    for name in dict.fromkeys(name for name, _ in found):
        columns = []
        for what in "read", "write":
            took, speed = found[name, what]
            columns += [took, speed, took / found["attnd", what][0]]
        print("%-10s %10.1f %8.0f %7.1f %14.1f %8.0f %7.1f" % (name, *columns))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    node = shutil.which("node")
    print("JSON arrays, one thread, nanoseconds a number" + ("" if node else "; skipped: no node here"))
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            path = pathlib.Path(folder) / kind
            subprocess.run([options.program, "make", kind, path], check=True)
            print_file(kind, measure_file(path, options.program, node, options.rounds))


if __name__ == "__main__":
    main()
