#!/usr/bin/env python3
"""
run.py: checks server/openapi.json for consistency, and compares it with the C sources and with a running server.

The document is written by hand, except for the answers in its examples: --record gets them from a server and formats
the file. Then build again, because the document is part of the program.
"""

import argparse
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "support")]

import agreement  # noqa: E402
import dummy  # noqa: E402
import live  # noqa: E402
import structure  # noqa: E402
from document import Document  # noqa: E402
from layout import layout  # noqa: E402
from suite import conclude  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description="check the OpenAPI document")
    parser.add_argument("--attnd", default=str(ROOT / "build" / "release" / "attnd"), help="server to start")
    parser.add_argument("--record", action="store_true", help="write the server's answers into the examples")
    options = parser.parse_args()
    document = Document(ROOT / "server" / "openapi.json")
    with live.servers_of(options.attnd, document) as servers:
        if options.record:
            live.record(document, servers)
            document.path.write_text(layout(document.root) + "\n")
            return 0
        checks = [(check, (document,)) for check in structure.CHECKS + agreement.CHECKS + dummy.CHECKS]
        checks += [(check, (document, servers)) for check in live.CHECKS]
        failed = sum(run_check(check, arguments) for check, arguments in checks)
    examples = sum(1 for _ in document.exchanges())
    print(f"openapi: {examples} examples")
    return conclude("openapi", len(checks) - failed, failed)


def run_check(check, arguments):
    """Whether the check found anything."""
    wrong = []
    try:
        wrong += check(*arguments)
    except (KeyError, ValueError) as error:
        wrong.append(f"cannot be checked: {error!r}")
    for sentence in wrong:
        print(f"{check.__module__}.{check.__name__}: {sentence}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
