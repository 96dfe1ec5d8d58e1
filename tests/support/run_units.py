#!/usr/bin/env python3
"""
run_units.py [--jobs N] PROGRAM…: runs unit test programs, so many at once, and counts their checks.

A program that prints "skipped: WHY" (support/shared.h) has one skipped check, which libcheck counts as passed. A program
that ends without libcheck's sum counts as one failure.
"""

import argparse
import concurrent.futures
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from suite import conclude  # noqa: E402

SUM = re.compile(r"^\d+%: Checks: (\d+), Failures: (\d+), Errors: (\d+)$", re.MULTILINE)
SKIP = re.compile(r"^skipped: ", re.MULTILINE)


def run(program):
    done = subprocess.run([program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return program, done.returncode, done.stdout.decode(errors="replace")


def counts(status, said):
    """Passed, failed and skipped."""
    found = SUM.search(said)
    if not found:
        return 0, 1, 0
    checks, failures, errors = (int(count) for count in found.groups())
    failed, skipped = failures + errors, len(SKIP.findall(said))
    if status != 0 and failed == 0:  # a sanitizer speaks at the end
        failed = 1
    return checks - failures - errors - skipped, failed, skipped


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().split("\n", maxsplit=1)[0])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("programs", nargs="*")
    options = parser.parse_args()
    total, broken = [0, 0, 0], []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for done in concurrent.futures.as_completed([pool.submit(run, program) for program in options.programs]):
            program, status, said = done.result()
            print(said, end="", flush=True)
            mine = counts(status, said)
            if mine[1]:
                broken.append(f"failed: {program}, status {status}\n{said}")
            total = [sum(pair) for pair in zip(total, mine)]
    print("".join(broken), end="")  # once more, where the end of a long log shows it
    return conclude("check", *total)


if __name__ == "__main__":
    sys.exit(main())
