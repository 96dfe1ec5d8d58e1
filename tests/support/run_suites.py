#!/usr/bin/env python3
"""
run_suites.py --suites "NAME…" COMMAND…: runs the command that runs the suites, and ends with the sum of their verdicts.

Each suite prints one line "NAME: N passed, N failed, N skipped" (support/suite.py). A suite of --suites that prints
none counts as failed: it ended early, or nobody ran it. While all suites are silent, a line names those that have no verdict
yet.
"""

import argparse
import pathlib
import queue
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from suite import LINE  # noqa: E402
SILENCE_SECONDS = 5


def lines_of(stream):
    """The lines of a stream as they come, and None after each silence."""
    lines = queue.Queue()

    def read():
        for line in stream:
            lines.put(line)
        lines.put(b"")

    threading.Thread(target=read, daemon=True).start()
    while True:
        try:
            line = lines.get(timeout=SILENCE_SECONDS)
        except queue.Empty:
            yield None
            continue
        if not line:
            return
        yield line


def run(command, suites):
    """The verdicts by suite, and the command's status. Its output passes through."""
    verdicts, begun = {}, time.monotonic()
    # The command may be make, whose jobs share descriptors.
    with subprocess.Popen(command, stdout=subprocess.PIPE, close_fds=False) as process:
        for line in lines_of(process.stdout):
            if line is None:
                waiting = " ".join(name for name in suites if name not in verdicts)
                line = f"{time.monotonic() - begun:.0f} s; not ended yet: {waiting or 'the last one'}\n".encode()
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
            found = LINE.fullmatch(line.decode(errors="replace").strip())
            if found:
                counts = [int(count) for count in found.groups()[1:]]
                verdicts[found[1]] = [sum(pair) for pair in zip(counts, verdicts.get(found[1], (0, 0, 0)))]
    return verdicts, process.returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().split("\n", maxsplit=1)[0])
    parser.add_argument("--suites", required=True, help="names of the suites, by blanks")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    begun = time.monotonic()
    suites = options.suites.split()
    verdicts, status = run(options.command, suites)
    silent = [name for name in suites if name not in verdicts]
    for name in silent:
        print(f"{name}: no verdict; it ended early or did not run")
    broken = [name for name, (_, failed, _) in verdicts.items() if failed] + silent
    if status != 0 and not broken:
        print(f"{options.command[0]} ended with {status}, although no suite failed")
    elif broken:
        print(f"failed: {' '.join(broken)}")
    passed, failed, skipped = (sum(counts) for counts in zip(*verdicts.values(), (0, len(silent), 0)))
    print(f"{passed} passed, {failed} failed, {skipped} skipped, {time.monotonic() - begun:.0f} s")
    return 1 if broken or status != 0 else 0


if __name__ == "__main__":
    sys.exit(main())
