#!/usr/bin/env python3
"""
run.py: measures this project, the plain way to do the same, the machine, and the peers that are installed.

    python3 bench/run.py --program build/release/bench/core_bench [--quick] [--only REGEX] [--threads 1,2] [--json FILE]

Every contender is a process of its own that speaks the lines of core_bench.c. In each round all of them run the same
case in turn, so that what disturbs the machine disturbs them alike; ratios are medians of those within a round.
bench/README.md says what the columns mean.
"""

import argparse
import json
import math
import os
import pathlib
import platform
import re
import select
import shutil
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
PEERS = HERE / "peers"
ELEMENT = {"float32": 4, "float64": 8}
# Of the largest sample: sums of thousands of terms differ in order. ONNX Runtime's softmax of doubles is right to the
# digits of a float, so that peers are only held to those.
TOLERANCE = {"float32": 1e-4, "float64": 1e-11}
PEER_TOLERANCE = 1e-4
GROUP = 4  # query heads to a key head, of variant grouped
DOCUMENTS = 8  # of the variant of that name: runs of one length, which lengths must be multiples of
ANSWER_S = 120  # for one line
PAUSE_S = 0.03  # before a contender's turn: threads of the one before may still spin, waiting for work
TURN_MS = 60  # a turn repeats a short case for about so long
MEASURED_RUNS_MAX = 400


class Failure(Exception):
    """A contender died or gave no answer; the text says which."""


# ---- cases ----


class Case:
    """One computation: its name, its line for the contenders, and how much work it is."""

    def __init__(self, kind, dtype, threads, batch, heads, q_len, kv_len, dim, causal=0, window=0, maps=0,
                 variant=""):
        self.kind, self.dtype, self.threads = kind, dtype, threads
        self.batch, self.heads, self.q_len, self.kv_len, self.dim = batch, heads, q_len, kv_len, dim
        self.causal, self.window, self.maps, self.variant = causal, window, maps, variant
        numbers = [kind, dtype, threads, batch, heads, q_len, kv_len, dim, causal, window, maps, variant]
        self.line = " ".join(map(str, numbers)).strip()

    def name(self):
        if self.kind == "layer":
            words = ["layer d %d h %d len %d" % (self.heads * self.dim, self.heads, self.q_len)]
        elif self.q_len != self.kv_len:
            words = ["decode %d,%d,%d/%d,%d" % (self.batch, self.heads, self.q_len, self.kv_len, self.dim)]
        else:
            words = ["%d,%d,%d,%d" % (self.batch, self.heads, self.q_len, self.dim)]
        words += ["gradients"] if self.kind == "gradients" else []
        words += ["causal"] if self.causal else []
        words += ["window %d" % self.window] if self.window else []
        words += [self.variant] if self.variant else []
        words += ["maps"] if self.maps else []
        return " ".join(words + (["f64"] if self.dtype == "float64" else []))

    def pairs(self):
        """Query-key pairs of a head that are let through."""
        total = 0
        for i in range(self.q_len):
            end = i + 1 + self.kv_len - self.q_len
            start = max(0, end - self.window) if self.window else 0
            stop = end if self.causal else self.kv_len
            if self.variant == "documents":
                each = self.kv_len // DOCUMENTS
                start, stop = max(start, i // each * each), min(stop, (i // each + 1) * each)
            total += stop - start
        return total

    def flops(self):
        """Multiplications and additions of the products, hidden pairs left out; exp and divisions are not counted."""
        products = 14 if self.kind == "gradients" else 4  # two forward, five backward; two operations for each number
        attention = products * self.batch * self.heads * self.pairs() * self.dim
        features = self.heads * self.dim
        return attention + (8 * self.batch * self.q_len * features**2 if self.kind == "layer" else 0)

    def bytes(self):
        """What must be read and written at least: inputs and weights once, results once."""
        features = self.heads * self.dim
        numbers = 2 * self.batch * self.q_len * features
        numbers += self.batch * self.heads * self.q_len * self.kv_len if self.maps else 0
        key_features = features // (GROUP if self.variant == "grouped" else 1)
        numbers += 4 * features**2 if self.kind == "layer" else 2 * self.batch * self.kv_len * key_features
        if self.kind == "gradients":
            numbers += 2 * self.batch * self.kv_len * features + self.batch * self.q_len * features
        return numbers * ELEMENT[self.dtype]


def all_cases(threads):
    """The table of every run: common shapes, decoding, head dims, windows, layers, doubles."""

    def attention(batch, heads, length, dim, dtype="float32", **more):
        return Case("attention", dtype, threads, batch, heads, length, length, dim, **more)

    def layer(features, heads, length, **more):
        return Case("layer", "float32", threads, 1, heads, length, length, features // heads, maps=1, **more)

    def gradients(batch, heads, length, dim, dtype="float32", **more):
        return Case("gradients", dtype, threads, batch, heads, length, length, dim, **more)

    def decode(batch, heads, kv_len, dim, dtype="float32", **more):
        return Case("attention", dtype, threads, batch, heads, 1, kv_len, dim, **more)

    return [
        attention(1, 8, 512, 64), attention(1, 8, 512, 64, causal=1), attention(1, 8, 512, 64, maps=1),
        attention(1, 8, 512, 64, causal=1, maps=1),
        attention(1, 12, 1024, 64), attention(1, 12, 1024, 64, causal=1), attention(1, 12, 1024, 64, maps=1),
        attention(1, 8, 4096, 64), attention(1, 8, 4096, 64, causal=1), attention(1, 8, 4096, 64, causal=1, window=256),
        attention(1, 8, 512, 64, variant="alibi"), attention(1, 8, 4096, 64, causal=1, variant="alibi"),
        attention(1, 8, 512, 64, variant="sinks"), attention(1, 8, 4096, 64, variant="documents"),
        attention(1, 8, 4096, 64, causal=1, variant="documents"), decode(1, 8, 4096, 64, variant="alibi"),
        attention(1, 8, 512, 32), attention(1, 8, 512, 96), attention(1, 8, 512, 128),
        attention(1, 8, 128, 64), attention(32, 8, 64, 64),
        decode(1, 8, 4096, 64), decode(1, 32, 4096, 128),
        layer(512, 8, 128), layer(512, 8, 512), layer(768, 12, 128), layer(768, 12, 512),
        gradients(1, 8, 512, 64), gradients(1, 8, 512, 64, causal=1), gradients(1, 12, 1024, 64),
        gradients(1, 8, 4096, 64), gradients(1, 8, 512, 64, "float64"),
        attention(1, 8, 512, 64, "float64"), attention(1, 8, 512, 64, "float64", maps=1),
        decode(1, 8, 4096, 64, "float64"),
        attention(1, 8, 512, 64, causal=1, variant="grouped"), decode(1, 32, 4096, 128, variant="grouped"),
        attention(1, 8, 512, 64, causal=1, variant="rope"), layer(512, 8, 512, variant="rope"),
        attention(1, 8, 512, 64, variant="padded"), attention(1, 8, 512, 64, variant="odd"),
        decode(1, 8, 4096, 64, variant="padded"), decode(1, 8, 4096, 64, variant="odd"),
    ]  # fmt: skip


UNKNOWN_TO_OTHERS = {"grouped", "rope", "padded", "odd"}
QUICK = {"1,8,512,64", "1,8,512,64 maps", "1,8,512,64 causal", "decode 1,8,1/4096,64", "layer d 512 h 8 len 128 maps"}


# ---- contenders ----


class Process:
    """A program that answers a line with a line."""

    def __init__(self, name, command, threads=1):
        # PyTorch's own setting does not reach the threads of an OpenBLAS below it; what it finds at its start does.
        environment = dict(os.environ, OPENBLAS_NUM_THREADS=str(threads), OMP_NUM_THREADS=str(threads))
        self.name = name
        pipe = subprocess.PIPE
        self.child = subprocess.Popen(command, stdin=pipe, stdout=pipe, bufsize=0, env=environment)

    def ask(self, line):
        try:
            self.child.stdin.write(line.encode() + b"\n")
        except BrokenPipeError as error:
            raise Failure(self.name + " has ended") from error
        answer = b""
        while not answer.endswith(b"\n"):
            if not select.select([self.child.stdout], [], [], ANSWER_S)[0]:
                raise Failure("%s gave no answer to: %s" % (self.name, line))
            part = self.child.stdout.read(1 << 16)
            if not part:
                raise Failure("%s ended while asked: %s" % (self.name, line))
            answer += part
        word, _, rest = answer.decode().strip().partition(" ")
        if word == "error":
            raise Failure("%s: %s" % (self.name, rest))
        return word, rest

    def end(self):
        self.child.stdin.close()
        try:
            self.child.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
        self.child.stdout.close()


def memory_kib(pid, field):
    for line in pathlib.Path("/proc/%d/status" % pid).read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    return 0


class Contender:
    """One way to compute a case. Its process is fresh for each case, so that memory and threads are."""

    def __init__(self, name, command, is_kept=False):
        self.name, self.command, self.is_kept = name, command, is_kept
        self.process, self.pid, self.threads = None, 0, 0

    def start(self, threads):
        if self.threads != threads:
            self.end()
        if self.process is None:
            self.process, self.threads = Process(self.name, self.command, threads), threads

    def prepare(self, case):
        """Whether it can do the case at all."""
        if case.variant in UNKNOWN_TO_OTHERS and self.name != "attnd":
            return False
        self.start(case.threads)
        word, rest = self.process.ask("prepare " + case.line)
        if word != "ready":
            self.stop()
            return False
        self.pid = int(rest)
        return True

    def first_run(self):
        """Time of the first run, and how much memory it took at its peak beyond inputs and weights."""
        try:
            pathlib.Path("/proc/%d/clear_refs" % self.pid).write_text("5")
            before = memory_kib(self.pid, "VmRSS")
        except OSError:
            return self.run(1)[0], math.nan
        took = self.run(1)[0]
        return took, (memory_kib(self.pid, "VmHWM") - before) / 1024

    def run(self, count):
        return [float(ms) for ms in self.process.ask("run %d" % count)[1].split()]

    def results(self):
        """{"output": [mean, samples…], "maps": …}"""
        _, rest = self.process.ask("results")
        output, _, maps = rest.partition(" maps ")
        return {name: [float(x) for x in text.split()] for name, text in (("output", output), ("maps", maps)) if text}

    def done(self):
        self.process.ask("done")
        self.stop()

    def stop(self):
        if not self.is_kept:
            self.end()

    def end(self):
        if self.process is not None:
            self.process.end()
            self.process = None


def torch_python():
    """A Python that has torch: Debian's package is for Debian's own, which need not be the first on PATH."""
    for python in dict.fromkeys([sys.executable, shutil.which("python3"), "/usr/bin/python3"]):
        if python and subprocess.run([python, "-c", "import torch"], capture_output=True, check=False).returncode == 0:
            return python
    return None


def find_contenders(program):
    found = [Contender("attnd", [program, "attnd"]), Contender("plain", [program, "plain"])]
    if shutil.which("node") and (PEERS / "node_modules" / "onnxruntime-node").exists():
        for way in ("attention", "multihead"):
            found.append(Contender("ort-" + way, ["node", str(PEERS / "ort.mjs"), way]))
    python = torch_python()
    if python:
        found.append(Contender("torch", [python, str(PEERS / "torch_peer.py")], is_kept=True))
    return found


# ---- the machine ----


class Machine:
    """FMA peak and read bandwidth, measured when asked for, the best of what was seen."""

    def __init__(self, program):
        self.process = Process("machine", [program, "machine"])
        self.peaks, self.reads = {}, {}

    def peak(self, dtype, threads):
        """GFLOP/s; looked at anew for every case, since other work on the machine can only lower it."""
        for _ in range(2 if (dtype, threads) in self.peaks else 10):
            seen = float(self.process.ask("peak %s %d" % (dtype, threads))[1])
            self.peaks[dtype, threads] = max(seen, self.peaks.get((dtype, threads), 0))
        return self.peaks[dtype, threads]

    def read(self, size, threads):
        """GB/s from a buffer of that many bytes, rounded to a power of two."""
        size = 1 << max(12, round(math.log2(size)))
        if (size, threads) not in self.reads:
            seen = [float(self.process.ask("read %d %d" % (size, threads))[1]) for _ in range(3)]
            self.reads[size, threads] = max(seen)
        return self.reads[size, threads]

    def roof_ms(self, case):
        """The time below which this machine cannot do the case: multiply-adds at peak, or bytes, whichever is more."""
        flop_ms = case.flops() / self.peak(case.dtype, case.threads) * 1e-6
        byte_ms = case.bytes() / self.read(case.bytes(), case.threads) * 1e-6
        return max(flop_ms, byte_ms)


def describe_machine(machine, contenders):
    model = platform.processor() or platform.machine()
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.lower().startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    about = {"cpu": model, "cores": os.cpu_count(), "vectors": machine.process.ask("about")[1]}
    for contender in contenders:
        contender.start(1)
        about[contender.name] = contender.process.ask("about")[1]
        contender.stop()
    return about


# ---- measuring ----


def compare(case, name, found, reference):
    """What disagrees with the first contender, or None."""
    for result, numbers in found.items():
        wanted = reference.get(result)
        if wanted is None:
            continue
        allowed = (TOLERANCE[case.dtype] if name == "plain" else PEER_TOLERANCE) * max(map(abs, wanted))
        worst = max((abs(a - b) for a, b in zip(numbers, wanted)), default=math.inf)
        if len(numbers) != len(wanted) or not worst <= allowed:
            return "%s: %s of %s differs by %.3g, allowed %.3g" % (case.name(), result, name, worst, allowed)
    return None


def turn(contender, runs):
    """The median of a contender's turn; its first run warms the caches that the one before has taken."""
    time.sleep(PAUSE_S)
    times = contender.run(runs + 1 if runs > 1 else 1)
    return statistics.median(times[1:] if runs > 1 else times)


def measure(case, contenders, budget_s, problems):
    """{name: {"ms", "ratio", "peak_mib", "rounds"}} of the contenders that can do the case."""
    able = [c for c in contenders if c.prepare(case)]
    first, memory = {}, {}
    for contender in able:
        first[contender.name], memory[contender.name] = contender.first_run()
    reference = able[0].results()
    for contender in able[1:]:
        problem = compare(case, contender.name, contender.results(), reference)
        if problem:
            problems.append(problem)
    runs = {c.name: min(MEASURED_RUNS_MAX, max(1, round(TURN_MS / first[c.name]))) for c in able}
    round_s = sum(first[c.name] * runs[c.name] for c in able) / 1e3 + PAUSE_S * len(able)
    rounds = min(9, max(3, round(budget_s / round_s)))
    seen = [{c.name: turn(c, runs[c.name]) for c in able} for _ in range(rounds)]
    for contender in able:
        contender.done()
    return {
        name: {
            "ms": statistics.median(r[name] for r in seen),
            "ratio": statistics.median(r[name] / r[able[0].name] for r in seen),
            "peak_mib": memory[name],
            "rounds": [r[name] for r in seen],
        }
        for name in first
    }


# ---- the table ----


def significant(x):
    return "–" if x is None or math.isnan(x) else "%.3g" % x if x < 100 else "%.0f" % x


def table_head(names):
    words = ["case", "attnd ms", "GFLOP/s", "% of roof", "MiB"]
    for name in names[1:]:
        words += [name + " ms", "×", "MiB"]
    return "| " + " | ".join(words) + " |\n| --- |" + " ---: |" * (len(words) - 1)


def table_row(case, found, roof_ms, names):
    own = found["attnd"]
    words = [case.name(), significant(own["ms"]), significant(case.flops() / own["ms"] * 1e-6),
             "%.0f" % (100 * roof_ms / own["ms"]), significant(own["peak_mib"])]  # fmt: skip
    for name in names[1:]:
        other = found.get(name)
        words += ["–"] * 3 if other is None else [significant(other["ms"]), "%.2f" % other["ratio"],
                                                  significant(other["peak_mib"])]  # fmt: skip
    return "| " + " | ".join(words) + " |"


def print_machine(machine, about):
    print("\n%s, %d cores, vectors %s" % (about["cpu"], about["cores"], about["vectors"]))
    for (dtype, threads), gflops in sorted(machine.peaks.items()):
        print("- peak %s, %d thread%s: %.0f GFLOP/s" % (dtype, threads, "s"[: threads > 1], gflops))
    for (size, threads), gbs in sorted(machine.reads.items()):
        print("- read %g MiB, %d thread%s: %.0f GB/s" % (size / 2**20, threads, "s"[: threads > 1], gbs))


def measure_all(options, contenders, machine, problems):
    """A table for each thread count, printed as it is measured; what is found, as a list."""
    names, rows = [c.name for c in contenders], []
    for threads in options.threads:
        cases = [c for c in all_cases(threads) if not options.quick or c.name() in QUICK]
        cases = [c for c in cases if re.search(options.only, c.name())]
        print("\n%d thread%s\n\n%s" % (threads, "s"[: threads > 1], table_head(names)), flush=True)
        for case in cases:
            found = measure(case, contenders, options.seconds, problems)
            roof_ms = machine.roof_ms(case)
            print(table_row(case, found, roof_ms, names), flush=True)
            rows.append({"case": case.name(), "line": case.line, "threads": threads, "flops": case.flops(),
                         "bytes": case.bytes(), "roof_ms": roof_ms, "contenders": found})  # fmt: skip
    return rows


def write_json(path, about, machine, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    peaks = {"%s %d" % key: value for key, value in machine.peaks.items()}
    reads = {"%d %d" % key: value for key, value in machine.reads.items()}
    record = {"about": about, "peak_gflops": peaks, "read_gbs": reads, "cases": rows}
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False).replace("NaN", "null") + "\n")


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--program", required=True, help="core_bench")
    parser.add_argument("--quick", action="store_true", help="a few cases, in seconds")
    parser.add_argument("--only", default="", metavar="REGEX", help="cases whose name matches")
    parser.add_argument("--threads", default="1,2", help="thread counts, with commas between them")
    parser.add_argument("--without", default="", metavar="NAMES", help="contenders to leave out, with commas")
    parser.add_argument("--seconds", type=float, default=1.0, help="about how long to measure a case")
    parser.add_argument("--json", type=pathlib.Path, help="where to write everything that was measured")
    options = parser.parse_args()
    options.threads = [int(word) for word in options.threads.split(",")]
    return options


def main():
    options = read_options()
    contenders = [c for c in find_contenders(options.program) if c.name not in options.without.split(",")]
    machine, problems, start = Machine(options.program), [], time.monotonic()
    about = describe_machine(machine, contenders)
    for contender in contenders:
        print("%-14s %s" % (contender.name, about[contender.name]))
    try:
        rows = measure_all(options, contenders, machine, problems)
        print_machine(machine, about)
    finally:
        for contender in contenders:
            contender.end()
        machine.process.end()
    if options.json:
        write_json(options.json, about, machine, rows)
    print("\n%d cases in %.0f s; ×: times as long as attnd took" % (len(rows), time.monotonic() - start))
    for problem in problems:
        print("DISAGREE " + problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        sys.exit("bench: %s" % failure)
