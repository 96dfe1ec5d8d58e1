#!/usr/bin/env python3
"""
run.py: what a server makes of other people's habits: short forms, words of other systems, and requests that newcomers get wrong.

A request in a short form and the same in the long form have the same answer. shorthand.py has the pairs. Words of other systems are
explained by a server as by the documents (vocabulary.py); --update writes the tables of words into the documents. newcomers.py has
fifty requests that people get wrong, and what the answer must say.
"""

import argparse
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "support"))

import newcomers  # noqa: E402
import shorthand  # noqa: E402
import vocabulary  # noqa: E402
from attnd import Server  # noqa: E402
from suite import conclude, run_tests  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description="hold a server against the habits of its users")
    parser.add_argument("--attnd", default=str(HERE.parents[2] / "build" / "release" / "attnd"), help="server to start")
    parser.add_argument("--url", help="a server that runs already")
    parser.add_argument("--only", default="", help="a part of the names of the tests to run")
    parser.add_argument("--update", action="store_true", help="write the tables of words into the documents")
    options = parser.parse_args()
    if options.update:
        vocabulary.update()
        return 0
    with Server(options.attnd, options.url) as server:
        client = server.client()
        counts = run_tests(shorthand.TESTS + vocabulary.TESTS + newcomers.TESTS, lambda test: test(client), options.only)
    return conclude("words", *counts)


if __name__ == "__main__":
    sys.exit(main())
