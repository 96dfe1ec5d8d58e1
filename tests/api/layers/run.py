#!/usr/bin/env python3
"""
run.py: kept layers end to end: the contract with and without a directory, what others do to the files, and what is left
after the server is killed, the disk is full, or the power fails.

    run.py --attnd PROGRAM [--kills N]
"""

import argparse
import inspect
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "support"))

import caches  # noqa: E402
import checkpoints  # noqa: E402
import contract  # noqa: E402
import durability  # noqa: E402
import sharing  # noqa: E402
import uploads  # noqa: E402
from attnd import Server  # noqa: E402
from suite import conclude, run_tests  # noqa: E402


def contract_with(program, directory, only):
    environment = {"ATTND_LAYERS": directory} if directory else {}

    def call(test):
        more = {"connect": server.client} if "connect" in inspect.signature(test).parameters else {}
        test(server.client(), directory is not None, **more)

    print(f"layers {'with' if directory else 'without'} a directory")
    with Server(program, environment=environment) as server:
        return run_tests(contract.CHECKS, call, only)


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().split("\n", maxsplit=1)[0])
    parser.add_argument("--attnd", default=str(HERE.parents[2] / "build" / "release" / "attnd"), help="server to start")
    parser.add_argument("--kills", type=int, default=20, help="how often the server is killed while layers are put")
    parser.add_argument("--only", default="", help="tests whose name holds this")
    options = parser.parse_args()

    def in_a_folder(test):
        with tempfile.TemporaryDirectory() as folder:
            test(durability.Stage(options.attnd, pathlib.Path(folder), options.kills))

    with tempfile.TemporaryDirectory() as folder:
        counts = [contract_with(options.attnd, None, options.only), contract_with(options.attnd, folder, options.only)]
    staged = durability.CHECKS + sharing.CHECKS + uploads.CHECKS + checkpoints.CHECKS + caches.CHECKS
    counts.append(run_tests(staged, in_a_folder, options.only))
    return conclude("layer-tests", *map(sum, zip(*counts)))


if __name__ == "__main__":
    sys.exit(main())
