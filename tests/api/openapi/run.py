#!/usr/bin/env python3
"""
run.py: checks the OpenAPI document for consistency, and compares it with the C sources and with a running server.

People write server/openapi/, except for the answers in its examples: --record gets them from a server and formats the
files. mk/openapi/openapi.c makes the document of them. Then build again, because the document is part of the program.
"""

import argparse
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "support")]

import agreement  # noqa: E402
import contradictions  # noqa: E402
import live  # noqa: E402
import structure  # noqa: E402
from document import Document  # noqa: E402
from layout import layout  # noqa: E402
from suite import conclude, run_tests  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description="check the OpenAPI document")
    parser.add_argument("--attnd", default=str(ROOT / "build" / "release" / "attnd"), help="server to start")
    parser.add_argument("--only", default="", help="run the checks with this word in their name")
    parser.add_argument("--record", action="store_true", help="write the server's answers into the examples")
    options = parser.parse_args()
    built = pathlib.Path(options.attnd).resolve().parent
    document, source = Document(built / "server" / "openapi.json"), Document(ROOT / "server" / "openapi")
    document.source, document.maker = source, built / "openapi"
    with live.servers_of(options.attnd, document) as servers:
        if options.record:
            live.record(source, servers)
            for file, part in source.parts.items():
                file.write_text(layout(part) + "\n")
            return 0
        live_checks = set(live.CHECKS)
        counts = run_tests(structure.CHECKS + agreement.CHECKS + contradictions.CHECKS + live.CHECKS,
                           lambda check: expect_nothing(check(document, *([servers] if check in live_checks else []))), options.only)
    examples = sum(1 for _ in document.exchanges())
    print(f"openapi: {examples} examples")
    return conclude("openapi", *counts)


def expect_nothing(findings):
    """A check returns a sentence for everything that it found."""
    findings = list(findings)
    assert not findings, "\n    ".join(["", *findings])


if __name__ == "__main__":
    sys.exit(main())
