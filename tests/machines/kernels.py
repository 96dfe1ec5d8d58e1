#!/usr/bin/env python3
"""
kernels.py --attnd PROGRAM: a program that was built with some kernels gives the same bytes as one with all of them.

Two copies of the build of PROGRAM, which has all kernels, are linked anew: with the kernels of this processor, as `make run`
links it, and with the portable one alone, as for a processor without AVX2. Each answers all of tests/api/cases. Besides, a
build keeps what it has: `make run` after `make` builds nothing, and `make` after `make run` only what was left out.
`make kernels` runs it.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = ROOT / "tests" / "api" / "cases"
sys.path.insert(0, str(ROOT / "tests" / "support"))

from attnd import Server  # noqa: E402
from suite import conclude, registry, run_tests  # noqa: E402

TESTS = []
test = registry(TESTS)
PARTS = ("command", "kernels", "attnd", "libattn.a", "openapi", "core", "server", "mk")


class Build:
    """A copy of a build, which make takes for its own."""

    def __init__(self, original, folder):
        self.folder, self.original = folder, original
        for part in PARTS:
            if (original / part).is_dir():
                shutil.copytree(original / part, folder / part)
            else:
                folder.mkdir(parents=True, exist_ok=True)
                shutil.copy2(original / part, folder / part)

    def make(self, kernels, *words):
        environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "KERNELS")}
        command = [environment.get("MAKE", "make"), "--no-print-directory", f"BUILD={self.folder}", "server", *words]
        done = subprocess.run([*command, *([f"KERNELS={kernels}"] if kernels else [])], cwd=ROOT, env=environment, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def link_with(self, kernels):
        """The program with these kernels. A folder that was built with more would keep them."""
        (self.folder / "kernels").unlink()
        self.make(kernels)
        return self.folder / "attnd"

    def compiles(self, kernels):
        """The sources that make would compile."""
        return sorted(set(re.findall(r"-c (\S+\.c)", self.make(kernels, "-n", "V=1"))))


def refusal(program, kernel):
    done = subprocess.run([program, "--kernel", kernel, "--listen", "127.0.0.1:0"], check=False, capture_output=True, text=True,
                          timeout=30)
    assert done.returncode != 0, f"it starts with {kernel}"
    return done.stderr


def kernels_of_processor(program):
    """Those that a program with all kernels can run, by its own message."""
    return re.findall(r" or (\w+)", refusal(program, "abacus"))


def answers(program, kernel):
    """Status and body of each case, without the id of the request."""
    with Server(str(program), environment={"ATTND_KERNEL": kernel, "ATTND_COMPUTE_THREADS": "1"}) as server:
        client, given = server.client(), {}
        for case in sorted(CASES.glob("*/*/request.json")):
            path = "/v1/" + case.parent.parent.name.replace("-gradients", "/gradients")
            reply = client.post(path, case.read_bytes())
            given[case.parent.relative_to(CASES)] = (reply.status, re.sub(rb'"request_id":"[^"]*"', b"", reply.body))
        return given


def same_answers(program, other, kernel):
    mine, theirs = answers(program, kernel), answers(other, kernel)
    different = [str(case) for case in mine if mine[case] != theirs[case]]
    assert len(mine) > 100 and not different, f"{len(different)} of {len(mine)} cases differ: {different[:5]}"


@test
def with_the_kernels_of_this_processor_it_answers_alike(original, build):
    program = build.link_with("native")
    best = kernels_of_processor(original)[-1]
    left = (build.folder / "kernels").read_text().split()
    assert best in left and "portable" in left, left
    same_answers(program, original, best)


@test
def with_the_portable_kernel_alone_it_answers_alike(original, build):
    program = build.link_with("portable")
    assert kernels_of_processor(program) == ["portable"]
    same_answers(program, original, "portable")
    for kernel in kernels_of_processor(original)[1:]:
        said = refusal(program, kernel)
        assert f'kernel: this program was built without the kernel (make KERNELS=all) "{kernel}"' in said, said


@test
def what_is_built_stays_and_the_rest_is_added(original, build):
    everything = (original.parent / "kernels").read_text().split()
    assert not build.compiles("native") and not build.compiles("all"), "a build with all kernels builds something"
    build.link_with("portable")
    assert not build.compiles("portable"), "a second make builds something"
    shutil.rmtree(build.folder / "core" / "src" / "kernel" / "units")
    added = [pathlib.Path(source).stem for source in build.compiles("all") if "kernel/units/" in source]
    assert set(everything) <= {re.sub(r"_f(32|64)$", "", name) for name in added}, added


def main():
    parser = argparse.ArgumentParser(description="compare programs with few and with all kernels")
    parser.add_argument("--attnd", default=str(ROOT / "build" / "release" / "attnd"), help="a program with all kernels")
    parser.add_argument("--only", default="", help="a part of the names of the tests to run")
    options = parser.parse_args()
    original = pathlib.Path(options.attnd).resolve()
    with tempfile.TemporaryDirectory() as folder:
        copies = iter(range(len(TESTS)))
        run = run_tests(TESTS, lambda test: test(original, Build(original.parent, pathlib.Path(folder) / str(next(copies)))),
                        options.only)
    return conclude("kernels", *run)


if __name__ == "__main__":
    sys.exit(main())
