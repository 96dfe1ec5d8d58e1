"""
contenders.py: the processes that are measured, each of which answers the lines of core_bench.c, and the machine itself.
"""

import math
import os
import pathlib
import platform
import re
import select
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PEERS = HERE / "peers"
KERNELS = ("avx512_bf16", "avx512", "avx2", "neon", "portable")  # that core_bench may know, fastest first
RESULTS = ("output", "maps", "key", "value")
ANSWER_S = 120  # for one line


class Failure(Exception):
    """A contender died or gave no answer; the text says which."""


def cpu_field(name):
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.lower().startswith(name):
            return line.partition(":")[2].strip()
    return ""


def set_fair_environment():
    """
    The same for all contenders, whatever the shell says. OpenBLAS chooses its code by the model number of the
    processor, and takes code without AVX for one newer than itself.
    """
    for name in list(os.environ):
        if re.match("(OPENBLAS|GOTO|OMP|GOMP|KMP|MKL)_", name):
            del os.environ[name]
    flags = cpu_field("flags").split()
    if "avx512dq" in flags:
        os.environ["OPENBLAS_CORETYPE"] = "SkylakeX"
    elif "avx2" in flags:
        os.environ["OPENBLAS_CORETYPE"] = "Haswell"


class Process:
    """A program that answers a line with a line."""

    def __init__(self, name, command, threads=1, **more):
        # PyTorch's own setting does not reach the threads of an OpenBLAS below it; what it finds at its start does.
        environment = dict(os.environ, OPENBLAS_NUM_THREADS=str(threads), OMP_NUM_THREADS=str(threads), **more)
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

    def __init__(self, name, command, kernel=None, is_kept=False, **environment):
        self.name, self.command, self.kernel, self.is_kept = name, command, kernel, is_kept
        self.environment = environment
        self.process, self.pid, self.threads = None, 0, 0

    def start(self, threads):
        if self.threads != threads:
            self.end()
        if self.process is None:
            self.process, self.threads = Process(self.name, self.command, threads, **self.environment), threads

    def about(self):
        self.start(1)
        words = self.process.ask("about")[1]
        self.stop()
        return words

    def prepare(self, case):
        """Whether it can do the case at all."""
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
        found, numbers = {}, []
        for part in " ".join(self.process.ask("results")).split():
            if part in RESULTS:
                numbers = found[part] = []
            else:
                numbers.append(float(part))
        return found

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


def own_kernels(program, names):
    """Those of names that this processor can run, each once; "best": the fastest one; "all": every one."""
    able = [name for name in KERNELS if subprocess.run([program, "attnd", name], stdin=subprocess.DEVNULL,
                                                       capture_output=True, check=False).returncode == 0]  # fmt: skip
    wanted = able if names == "all" else [able[0] if name == "best" else name for name in names.split(",")]
    return [name for name in dict.fromkeys(wanted) if name in able]


def own_contender(program, kernel, name):
    """attnd with a kernel. An AVX2 kernel gets the products of an OpenBLAS for AVX2, too."""
    blas = {"OPENBLAS_CORETYPE": "Haswell"} if kernel == "avx2" else {}
    return Contender(name, [program, "attnd", kernel], kernel=kernel, **blas)


def hiding_avx512(program):
    """What a peer's command begins with, so that it computes as on a processor that has AVX2 and no more."""
    library = pathlib.Path(program).resolve().parent / "peers/hide_avx512.so"
    return ["env", "LD_PRELOAD=%s" % library, "OPENBLAS_CORETYPE=Haswell"]


def find_contenders(program, kernels, hides_avx512=False):
    """attnd with each kernel first, then the peers that are installed."""
    hidden = hiding_avx512(program) if hides_avx512 else []
    found = [own_contender(program, k, "attnd " + k if len(kernels) > 1 else "attnd") for k in kernels]
    if shutil.which("node") and (PEERS / "node_modules" / "onnxruntime-node").exists():
        for way in ("attention", "multihead"):
            found.append(Contender("ort-" + way, [*hidden, "node", str(PEERS / "ort.mjs"), way]))
    python = torch_python()
    if python:
        # Its OpenMP threads and those of OpenBLAS would otherwise spin for the same processors.
        found.append(Contender("torch", [*hidden, python, str(PEERS / "torch_peer.py")], is_kept=True, OMP_WAIT_POLICY="PASSIVE"))
    return found


# ---- the machine ----


class Machine:
    """FMA peak and read bandwidth, measured whenever asked for."""

    def __init__(self, program):
        self.process = Process("machine", [program, "machine"])
        self.peaks, self.reads = {}, {}  # all that was seen

    def peak(self, dtype, threads, vectors=""):
        """GFLOP/s"""
        seen = float(self.process.ask("peak %s %d %s" % (dtype, threads, vectors))[1])
        self.peaks.setdefault((dtype, threads, vectors), []).append(seen)
        return seen

    def read(self, size, threads):
        """GB/s from a buffer of that many bytes, rounded to a power of two."""
        size = 1 << max(12, round(math.log2(size)))
        seen = float(self.process.ask("read %d %d" % (size, threads))[1])
        self.reads.setdefault((size, threads), []).append(seen)
        return seen

    def limits_ms(self, case, contenders):
        """
        {name: (time below which this machine cannot do the case now, "peak" or "read")} for attnd with each kernel: by
        multiply-adds of its vectors, or by bytes.
        """
        if "plan" in case.words:  # it computes nothing
            return {c.name: (0, "–") for c in contenders}
        byte_ms = case.bytes() / self.read(case.bytes(), case.threads) * 1e-6
        vectors = {c.name: c.kernel.removesuffix("_bf16") for c in contenders}  # its multiply-adds in float32 are the same
        flop_ms = {name: case.flops() / self.peak(case.dtype, case.threads, v) * 1e-6 for name, v in vectors.items()}
        return {name: max((ms, "peak"), (byte_ms, "read")) for name, ms in flop_ms.items()}


def describe_machine():
    return {
        "cpu": cpu_field("model name") or platform.processor() or platform.machine(),
        "family": cpu_field("cpu family"), "model": cpu_field("model"), "cores": os.cpu_count(),
        "system": platform.platform(), "openblas_coretype": os.environ.get("OPENBLAS_CORETYPE", ""),
    }  # fmt: skip
