#!/usr/bin/env python3
"""
torture.py: every call of every endpoint failed in turn.

For each request of asked.py and each class of calls (shim.c), the first, second, third … call fails, once and, in a
second round, with all that follow, until the request passes untouched. After every fault: the server lives; the answer
is the right one byte for byte, or a refusal that is to blame on the machine, or the connection ended; a clean request
gets its right answer; no descriptor, no block of memory and no temporary file stays behind.

--seconds N takes a sample: of endpoints, classes and calls in random order, as many as go into that time; --seed N: in
which order.
"""

import argparse
import collections
import mmap
import os
import pathlib
import random
import struct
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))

from asked import all_requests, at_first  # noqa: E402
from attnd import Server, StartError  # noqa: E402
from exchange import Exchange, ask  # noqa: E402

# As in shim.c.
CLASSES = ["alloc", "open", "read", "write", "short", "fsync", "rename", "unlink", "stat", "mmap", "accept", "recv",
           "send", "epoll", "wait", "thread"]
REFUSALS = (503, 507)
# In these nothing can be told to a client while every call fails: it hears when the machine has recovered, a second later.
MUTE, MUTE_CALLS_MAX = ("accept", "recv", "epoll", "thread"), 2
ONCE_ONLY = ("wait",)  # EINTR for ever is no fault of any machine
CALLS_MAX = 600  # of one class and request; the large answers repeat themselves
SILENCE_SECONDS, RECOVERY_SECONDS, SETTLE_SECONDS = 1.0, 60.0, 30.0
SAMPLE_STRIDE, WRONG_MAX = 4, 40
# Blocks that come and go with the moment: a worker's queue, a cache of the C library.
BLOCKS_NOISE = 6


class Control:
    """The file that tells shim.c which calls to fail."""

    FIELDS = ["armed", "countdown", "for_good", "given", "blocks", "at_main"]

    def __init__(self, path):
        path.write_bytes(bytes(4096))
        with open(path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), 4096)

    def get(self, field):
        return struct.unpack_from("<q", self.map, 8 * self.FIELDS.index(field))[0]

    def put(self, field, value):
        struct.pack_into("<q", self.map, 8 * self.FIELDS.index(field), value)

    def arm(self, name, call, for_good, when="armed"):
        self.put("given", 0)
        self.put("countdown", call)
        self.put("for_good", int(for_good))
        self.put(when, 1 << CLASSES.index(name))

    def disarm(self):
        self.put("at_main", 0)
        self.put("armed", 0)
        return self.get("given")


class Torture:
    def __init__(self, options, folder):
        self.options, self.layers = options, folder / "layers"
        self.layers.mkdir()
        self.control = Control(folder / "control")
        self.environment = {"LD_PRELOAD": options.shim, "FAULT_CONTROL": str(folder / "control"),
                            "ATTND_LAYERS": str(self.layers), "ATTND_IO_THREADS": "1", "ATTND_COMPUTE_THREADS": "1",
                            "OPENBLAS_NUM_THREADS": "1"}
        self.server, self.faults, self.tries, self.wrong = None, 0, 0, []
        self.outcomes = collections.Counter()
        self.random = random.Random(options.seed)
        self.end = time.monotonic() + options.seconds if options.seconds else None

    def start(self):
        self.control.disarm()
        self.server = Server(self.options.attnd, environment=self.environment)
        self.server.__enter__()
        self.port = int(self.server.url.rsplit(":", 1)[1])

    def stop(self):
        self.server.__exit__(None, None, None)

    def complain(self, where, what):
        self.wrong.append(f"{where}: {what}")
        print(f"WRONG {where}: {what}", flush=True)

    # ---- what has to hold ----

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.server.process.pid}/fd"))

    def temporaries(self):
        return [entry for entry in os.listdir(self.layers) if not entry.endswith(".safetensors")]

    def settle(self, holds):
        """Whether the condition becomes true within a moment, because connections end after their answer."""
        end = time.monotonic() + SETTLE_SECONDS
        while not holds():
            if time.monotonic() > end:
                return False
            time.sleep(0.002)
        return True

    def check_outcome(self, request, outcome, reference):
        if outcome.how in ("silent", "garbage"):
            return f"the client hears {outcome.how}"
        if outcome.status in request.answers:
            same = outcome.status not in (200, 400, 404) or len(request.answers) > 1 or \
                outcome.content == reference.content
            return None if same else "a wrong answer with the status of a right one"
        if outcome.status is not None and outcome.status not in REFUSALS:
            return f"status {outcome.status}: {outcome.body[:200]!r}"
        return None

    def check_after(self, request, outcome, reference):
        """Asked without faults: the same as before, and what was acknowledged is there."""
        if request.after and outcome.status in request.answers:
            kept = ask(self.port, request.after, RECOVERY_SECONDS)
            if kept.headers.get("etag") != outcome.headers.get("etag"):
                return f"what was acknowledged is not there: {kept.word}"
        for first in request.before:
            ask(self.port, first, RECOVERY_SECONDS)
        again = ask(self.port, request, RECOVERY_SECONDS)
        if again.status != reference.status and not (len(request.answers) > 1 and again.status in request.answers):
            return f"the next clean request gets {again.word}: {again.body[:200]!r}"
        if again.status == reference.status and again.content != reference.content:
            return "the next clean request gets another answer"
        return None

    # ---- one fault ----

    def attempt(self, request, name, call, for_good):
        """(faults given, outcome) of the request with the call-th call of the class failing."""
        for first in request.before:
            ask(self.port, first, RECOVERY_SECONDS)
        self.control.arm(name, call, for_good)
        exchange = Exchange(self.port, request, RECOVERY_SECONDS)
        outcome = exchange.read(SILENCE_SECONDS if for_good and name in MUTE else RECOVERY_SECONDS)
        given = self.control.disarm()
        if outcome.how == "silent" and name in MUTE:
            outcome = exchange.read(RECOVERY_SECONDS)
        exchange.close()
        return given, outcome

    def try_fault(self, request, name, call, for_good, reference):
        where = f"{request.name}, {name} {call}{', for good' if for_good else ''}"
        given, outcome = self.attempt(request, name, call, for_good)
        self.tries += 1
        if given == 0:
            return False
        self.faults += 1
        self.outcomes[outcome.word] += 1
        what = None
        if self.server.process.poll() is not None:
            self.complain(where, f"the server died: {self.server.process.returncode}\n{''.join(self.server.lines[-20:])}")
            self.start()
            self.base = self.descriptors()
            return True
        what = self.check_outcome(request, outcome, reference) or self.check_after(request, outcome, reference)
        if not what and not self.settle(lambda: self.descriptors() <= self.base):
            what = f"{self.descriptors() - self.base} descriptors more than before"
            self.base = self.descriptors()
        if what:
            self.complain(where, what)
        return True

    def series(self, request, name, for_good, reference):
        """Each call in turn; then what stayed behind."""
        for _ in range(2):
            for first in request.before:
                ask(self.port, first)
            ask(self.port, request)
        before = self.control.get("blocks")
        call, faults = self.random.randint(1, SAMPLE_STRIDE) if self.end else 1, 0
        calls_max = MUTE_CALLS_MAX if for_good and name in MUTE else CALLS_MAX
        while call <= calls_max and self.try_fault(request, name, call, for_good, reference):
            faults += 1
            call += self.random.randint(1, 2 * SAMPLE_STRIDE - 1) if self.end else 1
            if self.is_over():
                break
        if faults and not self.settle(lambda: self.control.get("blocks") <= before + BLOCKS_NOISE + faults // 8):
            self.complain(f"{request.name}, {name}", f"{self.control.get('blocks') - before} blocks of memory stay after "
                          f"{faults} faults")
        if name == "unlink":
            for entry in self.temporaries():
                os.unlink(self.layers / entry)
        elif self.temporaries():
            self.complain(f"{request.name}, {name}", f"{self.temporaries()} stay")
            for entry in self.temporaries():
                os.unlink(self.layers / entry)

    # ---- all of it ----

    def is_over(self):
        return len(self.wrong) > WRONG_MAX or (self.end and time.monotonic() > self.end)

    def prepare(self, request):
        """The same kept layer for every series, and the answer without faults."""
        for first in (*at_first(), *request.before):
            ask(self.port, first, RECOVERY_SECONDS)
        reference = ask(self.port, request, RECOVERY_SECONDS)
        if reference.status not in request.answers:
            raise SystemExit(f"{request.name}: without any fault {reference.word} {reference.body[:300]!r}")
        return reference

    def run(self):
        self.start()
        work = [(request, name, for_good) for request in all_requests() if self.options.only in request.name
                for name in self.options.classes.split(",")
                for for_good in ((False,) if name in ONCE_ONLY else (False, True))]
        for request in all_requests():
            self.prepare(request)
        time.sleep(0.2)
        self.base = self.descriptors()
        if self.end:
            self.random.shuffle(work)
        for request, name, for_good in work:
            self.series(request, name, for_good, self.prepare(request))
            if self.is_over():
                break
        try:
            self.stop()
        except StartError as error:
            self.complain("the end", str(error))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attnd", required=True)
    parser.add_argument("--shim", required=True)
    parser.add_argument("--seconds", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="requests whose name has this word")
    parser.add_argument("--classes", default=",".join(CLASSES))
    options = parser.parse_args()
    options.shim = os.path.abspath(options.shim)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        torture = Torture(options, pathlib.Path(folder))
        try:
            torture.run()
        finally:
            if torture.server and torture.server.process.poll() is None:
                torture.server.process.kill()
    told = ", ".join(f"{count} {word}" for word, count in torture.outcomes.most_common())
    print(f"torture: {torture.faults} fault points in {time.monotonic() - begun:.0f} s: {told}; {len(torture.wrong)} wrong")
    sys.exit(1 if torture.wrong or torture.faults == 0 else 0)


if __name__ == "__main__":
    main()
