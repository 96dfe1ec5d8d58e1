#!/usr/bin/env python3
"""
run.py: runs the programs of examples/, and compares their output.

The C program is built with the command in its first comment, against a library that `make install` has installed into
a temporary folder; the others talk to a server.
"""

import argparse
import difflib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from attnd import Server  # noqa: E402
from layouts import layouts  # noqa: E402
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
def core(_urls):
    """The library below a prefix of its own, from C, C++ and Python."""
    with tempfile.TemporaryDirectory() as folder:
        prefix = pathlib.Path(folder)
        run([os.environ.get("MAKE", "make"), "--no-print-directory", "install", f"PREFIX={prefix}", "DESTDIR="],
            MAKEFLAGS="")
        packages = str(prefix / "lib" / "pkgconfig") + ":" + os.environ.get("PKG_CONFIG_PATH", "")
        flags = run([os.environ.get("PKG_CONFIG", "pkg-config"), "--cflags", "--libs", "attn"],
                    PKG_CONFIG_PATH=packages)
        sanitizers = {"sanitize": ["-fsanitize=address,undefined"], "thread": ["-fsanitize=thread"],
                      "coverage": ["--coverage"]}.get(os.environ.get("MODE"), [])
        wanted = "".join(f"weights {row}   out {out}\n" for row, out in zip(WEIGHTS, OUTPUT))
        compilers = {"core.c": [*os.environ.get("CC", "cc").split(), "-std=c17"],
                     "core.cpp": [*os.environ.get("CXX", "c++").split(), "-std=c++17"]}
        for source, compiler in compilers.items():
            program = str(prefix / source.replace(".", "_"))
            run([*compiler, "-Wall", "-Wextra", "-Werror", *sanitizers, f"examples/{source}", *flags.split(), "-o",
                 program])
            expect(run([program], LD_LIBRARY_PATH=str(prefix / "lib")), wanted)
        library = prefix / "lib" / "libattn.so"
        if not sanitizers:  # an instrumented library wants an instrumented program
            expect(run([sys.executable, "examples/core_ctypes.py", str(library)]), wanted)
        check_exports(library)
        check_layouts()


def check_exports(library):
    """Programs link with what the library exports: the names in core/libattn.symbols, which tell what a change breaks."""
    names = {line.split()[-1] for line in run(["nm", "-D", "--defined-only", str(library)]).splitlines()}
    wanted = set((ROOT / "core" / "libattn.symbols").read_text().split())
    if names != wanted:
        raise Failure(f"libattn.so lacks {sorted(wanted - names)}; core/libattn.symbols lacks {sorted(names - wanted)}")


def check_layouts():
    """Programs are compiled with sizes and offsets: those in core/libattn.layout."""
    place = ROOT / "core" / "libattn.layout"
    change = difflib.unified_diff(place.read_text().splitlines(), layouts().splitlines(), "core/libattn.layout", "headers",
                                  lineterm="", n=0)
    lines = "\n".join(change)
    if lines:
        raise Failure(f"{lines}\nif that is meant: python3 tests/others/examples/layouts.py > core/libattn.layout")


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
def by_hand_py(urls):
    lines = run([sys.executable, "examples/by_hand.py"], ATTND_URL=urls[0]).splitlines()
    steps = ["q", "k", "v", "scores", "scaled", "masked", "attention", "context"]
    expect("\n".join(lines), "\n".join(f"{name:10} the same" for name in steps))


MODULES = ROOT / "tests" / "others" / "examples" / "modules"


@test
def torch_module_py_with_recorded_modules(urls):
    """The files are of modules/record.py, which needs PyTorch; reading them does not."""
    for path in sorted(MODULES.glob("*.safetensors")):
        printed = run([sys.executable, "examples/torch_module.py", str(path)], ATTND_URL=urls[0])
        expect(printed, "attention (2, 2, 5, 5) the same\noutput (2, 5, 8) the same\n")


@test
def torch_module_py_says_where_a_module_differs(urls):
    """Without its mask, the module of the file is another one."""
    recorded = (MODULES / "separate.safetensors").read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "unmasked.safetensors"
        path.write_bytes(recorded.replace(b"1, 1, 1, 0, 0", b"1, 1, 1, 1, 1"))
        done = subprocess.run([sys.executable, "examples/torch_module.py", str(path)], cwd=ROOT, capture_output=True,
                              env={**os.environ, "ATTND_URL": urls[0]}, text=True)
    if done.returncode != 1 or "output (2, 5, 8) off by 0." not in done.stdout:
        raise Failure(f"ended with {done.returncode}: {done.stdout}{done.stderr[-500:]}")


@test
def torch_module_py_with_torch(urls):
    pythons = [python for python in dict.fromkeys([sys.executable, "/usr/bin/python3"])
               if os.path.exists(python) and has_torch(python)]
    if not pythons:
        raise Skipped("PyTorch is not installed (Debian's python3-torch); recorded modules are compared")
    printed = run([pythons[0], "examples/torch_module.py"], ATTND_URL=urls[0])
    expect(printed, "attention (2, 8, 5, 5) the same\noutput (2, 5, 64) the same\n")


def has_torch(python):
    return subprocess.run([python, "-c", "import torch, numpy"], capture_output=True).returncode == 0


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
