#!/usr/bin/env python3
"""
run.py: whole models over HTTP.

    run.py --attnd PROGRAM [--only WORD] [--rewrites 200]
"""

import argparse
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "support"))

import attribution  # noqa: E402
import audio  # noqa: E402
import classes  # noqa: E402
import families  # noqa: E402
import folders  # noqa: E402
import generation  # noqa: E402
import gguf  # noqa: E402
import gradients  # noqa: E402
import labels  # noqa: E402
import questions  # noqa: E402
import rewrites  # noqa: E402
import sweeps  # noqa: E402
import tokens  # noqa: E402
import variants  # noqa: E402
from attnd import Server  # noqa: E402
from suite import conclude, run_tests  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description="whole models over HTTP")
    parser.add_argument("--attnd", default=str(HERE.parents[2] / "build" / "release" / "attnd"), help="server to start")
    parser.add_argument("--only", default="", help="tests whose name holds this")
    parser.add_argument("--rewrites", type=int, default=8, help="rewrites of files under load, for each kind of file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tokens.stage(pathlib.Path(folder))
        classes.stage(pathlib.Path(folder))
        audio.stage(pathlib.Path(folder))
        questions.stage(pathlib.Path(folder))
        attribution.stage(pathlib.Path(folder))
        generation.stage(pathlib.Path(folder))
        with Server(options.attnd, environment={"ATTND_MODELS": folder}) as server:
            checks = sum((part.CHECKS for part in (tokens, labels, families, classes, questions, attribution, sweeps, gradients, generation, audio)), [])
            of_server = run_tests(checks, lambda test: test(server.client(), server), options.only)
        of_gguf = run_tests(gguf.CHECKS, lambda test: test(options.attnd), options.only)
        of_files = run_tests(rewrites.CHECKS + folders.CHECKS + variants.CHECKS, lambda test: test(options.attnd, options.rewrites), options.only)
        return conclude("model-tests", *map(sum, zip(of_server, of_gguf, of_files)))


if __name__ == "__main__":
    sys.exit(main())
