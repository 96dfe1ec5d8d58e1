"""
suite.py: the harness of the suites in Python: selects and reports tests, prints the last line, sets the exit status.

    @test                                  # of a list: test = registry(TESTS)
    def a_claim(client): …                 # fails by any exception; raises Skipped when something is missing
    return conclude("ops", *run_tests(TESTS, lambda test: test(client), options.only))

Every suite ends with one line "NAME: N passed, N failed, N skipped"; tests/support/run_suites.py adds these lines up. The status is 0,
1 when something failed or nothing ran, and 77 when everything was skipped.
"""

import os
import re
import sys
import traceback

SKIPPED = 77
LINE = re.compile(r"([a-z0-9-]+): (\d+) passed, (\d+) failed, (\d+) skipped")


class Skipped(Exception):
    """A test cannot run here, and this is why."""


def one_in(places):
    """The step of a loop over many places that are alike: one in so many is tried, and each of them with ATTN_LONG=1."""
    return 1 if os.environ.get("ATTN_LONG") else places


def registry(tests):
    """The decorator that puts a function into that list."""
    def register(function):
        tests.append(function)
        return function
    return register


def run_tests(tests, call, only=""):
    """Runs those whose name holds a word; how many passed, failed and were skipped."""
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for test in tests:
        if only not in test.__name__:
            continue
        try:
            call(test)
            counts["passed"] += 1
        except Skipped as why:
            counts["skipped"] += 1
            print(f"skipped: {test.__name__}: {why}")
        except Exception as error:  # noqa: BLE001: one failed test must not hide the others
            counts["failed"] += 1
            frames = traceback.extract_tb(error.__traceback__)
            place = ([frame for frame in frames if "/lib/" not in frame.filename] or frames)[-1]
            print(f"{test.__name__}: {type(error).__name__}: {error} ({place.filename}:{place.lineno})")
    return tuple(counts.values())


def conclude(suite, passed, failed, skipped=0):
    sys.stdout.flush()  # the line below goes out in one write, so that suites which run side by side cannot cut it
    print(f"{suite}: {passed} passed, {failed} failed, {skipped} skipped", flush=True)
    if failed or passed + skipped == 0:
        return 1
    return 0 if passed else SKIPPED


def skip(suite, why):
    """For a suite that cannot run at all."""
    print(f"skipped: {suite}: {why}")
    return conclude(suite, 0, 0, 1)
