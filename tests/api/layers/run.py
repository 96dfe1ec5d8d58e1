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
import uploads  # noqa: E402
from attnd import Server, StartError  # noqa: E402
from layer import Wrong  # noqa: E402
from suite import conclude  # noqa: E402

ERRORS = (Wrong, StartError, KeyError, ValueError, IndexError, TypeError, AttributeError, OSError)


def report(name, error):
    print(f"{name}: {type(error).__name__}: {error}")


def contract_with(program, directory):
    failed = 0
    environment = {"ATTND_LAYERS": directory} if directory else {}
    with Server(program, environment=environment) as server:
        for function in contract.CHECKS:
            more = {"connect": server.client} if "connect" in inspect.signature(function).parameters else {}
            try:
                function(server.client(), directory is not None, **more)
            except ERRORS as error:
                failed += 1
                report(f"{function.__name__} ({'with' if directory else 'without'} a directory)", error)
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().split("\n", maxsplit=1)[0])
    parser.add_argument("--attnd", default=str(HERE.parents[2] / "build" / "release" / "attnd"), help="server to start")
    parser.add_argument("--kills", type=int, default=20, help="how often the server is killed while layers are put")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        failed = contract_with(options.attnd, None) + contract_with(options.attnd, folder)
    skipped = 0
    staged = durability.CHECKS + uploads.CHECKS + checkpoints.CHECKS + caches.CHECKS
    for function in staged:
        with tempfile.TemporaryDirectory() as folder:
            try:
                function(durability.Stage(options.attnd, pathlib.Path(folder), options.kills))
            except durability.Skipped as reason:
                skipped += 1
                print(f"{function.__name__}: skipped: {reason}")
            except ERRORS as error:
                failed += 1
                report(function.__name__, error)
    passed = 2 * len(contract.CHECKS) + len(staged) - failed - skipped
    return conclude("layer-tests", passed, failed, skipped)


if __name__ == "__main__":
    sys.exit(main())
