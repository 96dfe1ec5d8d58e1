#!/usr/bin/env python3
"""
run.py: whole models over HTTP.

    run.py --attnd PROGRAM [--only WORD]
"""

import argparse
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "support"))

import families  # noqa: E402
import labels  # noqa: E402
import tokens  # noqa: E402
from attnd import Server  # noqa: E402
from suite import conclude, run_tests  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description="whole models over HTTP")
    parser.add_argument("--attnd", default=str(HERE.parents[2] / "build" / "release" / "attnd"), help="server to start")
    parser.add_argument("--only", default="", help="tests whose name holds this")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tokens.stage(pathlib.Path(folder))
        with Server(options.attnd, environment={"ATTND_MODELS": folder}) as server:
            return conclude("model-tests", *run_tests(tokens.CHECKS + labels.CHECKS + families.CHECKS, lambda test: test(server.client(), server), options.only))


if __name__ == "__main__":
    sys.exit(main())
