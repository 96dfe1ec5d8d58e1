#!/usr/bin/env python3
"""
run.py: runs the programs of examples/, and compares their output.

The C program is built with the command in its first comment, against a library that `make install` has installed into
a temporary folder; the others talk to a server.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from attnd import Server  # noqa: E402
from suite import Skipped, conclude, registry, run_tests  # noqa: E402

# The same three tokens everywhere: softmax(q k^T / sqrt 2) under a causal mask.
WEIGHTS = ["1.0000 0.0000 0.0000", "0.5212 0.4788 0.0000", "0.1633 0.2660 0.5708"]
OUTPUT = ["0.2000 0.7000", "0.5352 0.4127", "0.5003 0.4263"]
# Two tokens that attend to themselves, the second to both: softmax(1 / sqrt 2) of it.
OPEN_INFERENCE = "[[1.0, 0.0], [0.3302, 0.6698]]"
REFUSAL = "refused /inputs/query/1: "
TESTS = []
test = registry(TESTS)


class Failure(Exception):
    """An example printed something else; the text says what."""


def main():
    parser = argparse.ArgumentParser(description="run the examples")
    parser.add_argument("--attnd", required=True, help="server to start")
    parser.add_argument("--only", default="", help="run the tests with this word in their name")
    options = parser.parse_args()
    with Server(options.attnd) as first, Server(options.attnd) as second, Server(options.attnd) as third:
        urls = [server.url for server in (first, second, third)]
        return conclude("examples", *run_tests(TESTS, lambda example: example(urls), options.only))


def run(command, **environment):
    """What the command prints; Failure when it fails."""
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"{command[0]} ended with {done.returncode}: {done.stdout[-500:]}{done.stderr[-1500:]}")
    return done.stdout


def expect(text, wanted):
    if text != wanted:
        raise Failure(f"printed\n{text}instead of\n{wanted}")


@test
def core_c(_urls):
    with tempfile.TemporaryDirectory() as folder:
        prefix = pathlib.Path(folder)
        run([os.environ.get("MAKE", "make"), "--no-print-directory", "install", f"PREFIX={prefix}", "DESTDIR="],
            MAKEFLAGS="")
        packages = str(prefix / "lib" / "pkgconfig") + ":" + os.environ.get("PKG_CONFIG_PATH", "")
        flags = run([os.environ.get("PKG_CONFIG", "pkg-config"), "--cflags", "--libs", "attn"],
                    PKG_CONFIG_PATH=packages)
        compiler = os.environ.get("CC", "cc").split()
        sanitizers = {"sanitize": ["-fsanitize=address,undefined"], "thread": ["-fsanitize=thread"],
                      "coverage": ["--coverage"]}
        run([*compiler, "-std=c17", "-Wall", "-Wextra", "-Werror", *sanitizers.get(os.environ.get("MODE"), []),
             "examples/core.c", *flags.split(), "-o", str(prefix / "core")])
        printed = run([str(prefix / "core")], LD_LIBRARY_PATH=str(prefix / "lib"))
        check_exports(prefix / "lib" / "libattn.so")
    expect(printed, "".join(f"weights {row}   out {out}\n" for row, out in zip(WEIGHTS, OUTPUT)))


def check_exports(library):
    """Programs can come to rely on whatever they can link with, so it is the public functions only."""
    names = {line.split()[-1] for line in run(["nm", "-D", "--defined-only", str(library)]).splitlines()}
    strays = [name for name in names if not name.startswith("attn_")]
    if strays or "attn_scaled_dot_product" not in names:
        raise Failure(f"libattn.so exports {sorted(strays)}")


@test
def http_client_c(urls):
    with tempfile.TemporaryDirectory() as folder:
        program = str(pathlib.Path(folder) / "http_client")
        flags = run([os.environ.get("PKG_CONFIG", "pkg-config"), "--cflags", "--libs", "libcurl"])
        run([*os.environ.get("CC", "cc").split(), "-std=c17", "-Wall", "-Wextra", "-Werror", "examples/http_client.c",
             *flags.split(), "-o", program])
        expect(run([program], ATTND_URL=urls[0]), "".join(f"out {out}\n" for out in OUTPUT))


@test
def attention_sh(urls):
    answer = json.loads(run(["examples/attention.sh"], ATTND_URL=urls[0]))
    rows = [" ".join(f"{item:.4f}" for item in row) for row in answer["outputs"]["attention"][0][0]]
    expect("\n".join(rows), "\n".join(WEIGHTS))
    expect(" ".join(answer["tokens"]["query"]), "Ben okula gidiyorum")


@test
def client_py(urls):
    lines = run([sys.executable, "examples/client.py"], ATTND_URL=urls[0]).splitlines()
    expect_table([line.split() for line in lines[1:4]], lines[4])


@test
def safetensors_client_py(urls):
    """By every Python at hand, since one may have NumPy and another not, and once with NumPy out of sight."""
    system = "/usr/bin/python3"
    for python in [[sys.executable], [sys.executable, "-c", HIDE_NUMPY]] + [[system]] * os.path.exists(system):
        tensors_by(python, urls[0])


def tensors_by(python, url):
    wanted = ["attention (1, 1, 3, 3)", *WEIGHTS, "output (3, 2)", *OUTPUT]
    lines = run([*python, "examples/safetensors_client.py"], ATTND_URL=url).splitlines()
    expect("\n".join(lines), "\n".join(wanted))
    with tempfile.TemporaryDirectory() as folder:
        path = str(pathlib.Path(folder) / "inputs.safetensors")
        run([sys.executable, "-c", WRITE_INPUTS, path])
        lines = run([*python, "examples/safetensors_client.py", path], ATTND_URL=url).splitlines()
    expect("\n".join(lines), "\n".join(wanted))


HIDE_NUMPY = """
import runpy, sys
sys.modules["numpy"] = None
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""

# A file as other programs write it.
WRITE_INPUTS = """
import sys
sys.path.insert(0, "examples")
from safetensors_client import pack, tensor
with open(sys.argv[1], "wb") as file:
    file.write(pack({"query": tensor([0.3, 0.8, 1.2, 0.4, 1.2, 1.3], (3, 2)),
                     "key": tensor([0.8, 0.3, 0.4, 1.2, 1.3, 1.2], (3, 2)),
                     "value": tensor([0.2, 0.7, 0.9, 0.1, 0.4, 0.5], (3, 2))}, format="pt"))
"""


@test
def split_heads_py(urls):
    lines = run([sys.executable, "examples/split_heads.py", *urls]).splitlines()
    same = "from 3 parts: the same bytes as from one"
    expect("\n".join(lines), f"attention (1, 6, 96, 96) {same}\noutput (1, 6, 96, 32) {same}")


@test
def open_inference_py_with_clients_that_are_installed(urls):
    missing = ask_each_client(urls[0], {})
    if missing:
        raise Skipped(f"not installed: {', '.join(missing)}; stand-ins send their bytes")


@test
def open_inference_py_with_stand_ins_for_the_others(urls):
    """Stand-ins send the same bytes as the clients that are missing."""
    folders = [str(ROOT / "tests" / "others" / "examples" / "stand_ins"), str(ROOT / "tests" / "support")]
    behind_installed = ":".join([*filter(None, sys.path), *folders])
    if ask_each_client(urls[0], {"PYTHONPATH": behind_installed}):
        raise Failure("a client has no stand-in")


def ask_each_client(url, environment):
    """Names of the clients that are missing; the others must print the right numbers."""
    lines = run([sys.executable, "-B", "examples/open_inference.py"], ATTND_URL=url, **environment).splitlines()
    missing = []
    if len(lines) < 3:
        raise Failure(f"printed {lines}")
    for line in lines:
        name, found, numbers = line.partition(": ")
        if numbers == "not installed":
            missing.append(name)
        elif not found or numbers != OPEN_INFERENCE:
            raise Failure(f"{name} got {numbers}, not {OPEN_INFERENCE}")
    return missing


@test
def tensors_js(urls):
    lines = run(["node", "tests/others/examples/tensors.js", urls[0]]).splitlines()
    expect("\n".join(lines[:3]), "\n".join(f"weights {row}   out {out}" for row, out in zip(WEIGHTS, OUTPUT)))
    if not lines[3].startswith("refused /inputs/key: "):
        raise Failure(f"printed {lines[3]}")


@test
def attention_js(urls):
    lines = run(["node", "tests/others/examples/page.js", urls[0]]).splitlines()
    expect_table([line.split() for line in lines[1:4]], lines[4])


def expect_table(rows, refusal):
    expect("\n".join(" ".join(row[1:]) for row in rows), "\n".join(WEIGHTS))
    if not refusal.startswith(REFUSAL):
        raise Failure(f"printed {refusal}")


if __name__ == "__main__":
    sys.exit(main())
