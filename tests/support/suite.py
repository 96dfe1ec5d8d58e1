"""
suite.py: the last line of a suite, and the exit status that belongs to it.

Every suite ends with one line "NAME: N passed, N failed, N skipped"; tests/support/run_suites.py adds these lines up. The status is 0,
1 when something failed or nothing ran, and 77 when everything was skipped.
"""

import re
import sys

SKIPPED = 77
LINE = re.compile(r"([a-z0-9-]+): (\d+) passed, (\d+) failed, (\d+) skipped")


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
