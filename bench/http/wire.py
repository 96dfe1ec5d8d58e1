#!/usr/bin/env python3
"""
wire.py: requests a second and their latency over HTTP: attnd by each format, the floor of the same sizes, and peers.

    python3 bench/http/wire.py --attnd build/release/attnd --bin build/release/bench/http [--quick] [--only REGEX] [--json FILE]

In each round all contenders of a case take their turn, one after the other; the others wait and do nothing. Ratios are
medians of those within a round. bench/README.md says what the columns mean.
"""

import argparse
import base64
import http.client
import json
import math
import os
import pathlib
import platform
import random
import re
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from options import given_options  # noqa: E402

PEERS = HERE.parent / "peers"
FORMATS = ["json", "base64", "safetensors", "oip"]
START_S = 60
TOLERANCE = 1e-4
SPLIT = ["parse_ms", "compute_ms", "write_ms"]


class Failure(Exception):
    """Something did not start, or answered what it should not."""


class Case:
    """One size: tensors (1, heads, len, dim), what is asked for, and how many connections ask at once."""

    def __init__(self, name, heads, length, dim, steps, connections):
        self.name, self.steps, self.connections = name, steps, connections
        self.shape = [1, heads, length, dim]
        numbers = random.Random(length)
        count = math.prod(self.shape)
        # Nine digits, as most clients write a float32.
        self.text = {side: ["%.9g" % numbers.uniform(-2, 2) for _ in range(count)] for side in ("query", "key", "value")}

    def floats(self, side):
        return struct.pack("<%df" % len(self.text[side]), *map(float, self.text[side]))


CASES = [
    Case("tiny", 1, 3, 4, ["output", "attention"], 16),
    Case("medium", 8, 64, 16, ["output"], 8),
    Case("large", 8, 256, 64, ["output", "attention"], 4),
]

# ---- requests ----


def nested(words, shape):
    if len(shape) == 1:
        return "[" + ",".join(words) + "]"
    step = len(words) // shape[0]
    return "[" + ",".join(nested(words[i * step:(i + 1) * step], shape[1:]) for i in range(shape[0])) + "]"


def make_json(case):
    inputs = ",".join('"%s":%s' % (side, nested(words, case.shape)) for side, words in case.text.items())
    return ('{"inputs":{%s},"options":{"return":%s}}' % (inputs, json.dumps(case.steps))).encode(), {}


def make_base64(case):
    inputs = {side: {"shape": case.shape, "dtype": "float32", "base64": base64.b64encode(case.floats(side)).decode()}
              for side in case.text}
    return json.dumps({"inputs": inputs, "options": {"return": case.steps, "format": "base64"}}).encode(), {}


def make_safetensors(case):
    head, data = {"__metadata__": {"request": json.dumps({"options": {"return": case.steps}})}}, b""
    for side in case.text:
        tensor = case.floats(side)
        head["inputs." + side] = {"dtype": "F32", "shape": case.shape,
                                  "data_offsets": [len(data), len(data) + len(tensor)]}
        data += tensor
    text = json.dumps(head).encode()
    text += b" " * (-(8 + len(text)) % 64)
    kind = "application/vnd.attnd.safetensors"
    return struct.pack("<Q", len(text)) + text + data, {"Content-Type": kind, "Accept": kind}


def make_oip(case):
    inputs = [{"name": side.upper(), "shape": case.shape, "datatype": "FP32",
               "parameters": {"binary_data_size": len(case.floats(side))}} for side in case.text]
    outputs = [{"name": step.upper(), "parameters": {"binary_data": True}} for step in case.steps]
    text = json.dumps({"inputs": inputs, "outputs": outputs}).encode()
    fields = {"Content-Type": "application/octet-stream", "Inference-Header-Content-Length": str(len(text))}
    return text + b"".join(map(case.floats, case.text)), fields


MAKE = {"json": make_json, "base64": make_base64, "safetensors": make_safetensors, "oip": make_oip}


def whole_request(path, body, fields):
    fields = {"Host": "127.0.0.1", "Content-Type": "application/json", "Content-Length": len(body), **fields}
    head = "".join("%s: %s\r\n" % field for field in fields.items())
    return ("POST %s HTTP/1.1\r\n%s\r\n" % (path, head)).encode() + body


# ---- servers ----


class Server:
    """One that says on standard output or error where it listens."""

    def __init__(self, name, command, environment=None):
        self.name, self.log = name, tempfile.NamedTemporaryFile()
        self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=self.log,
                                        stderr=self.log, env={**os.environ, **(environment or {})})
        self.port = self.await_port()
        self.seen = self.log_size()

    def await_port(self):
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and self.process.poll() is None:
            found = re.search(rb"listening on \D*127\.0\.0\.1:(\d+)", pathlib.Path(self.log.name).read_bytes())
            if found:
                return int(found[1])
            time.sleep(0.05)
        self.end()
        raise Failure("%s does not start: %s" % (self.name, pathlib.Path(self.log.name).read_text()[-400:]))

    def log_size(self):
        return os.path.getsize(self.log.name)

    def new_lines(self):
        """Whole ones: the last may still be on its way."""
        with open(self.log.name, "rb") as log:
            log.seek(self.seen)
            text = log.read()
        text = text[:text.rfind(b"\n") + 1]
        self.seen += len(text)
        return text.decode().splitlines()

    def reset_peak(self):
        pathlib.Path("/proc/%d/clear_refs" % self.process.pid).write_text("5")

    def peak_mib(self):
        status = pathlib.Path("/proc/%d/status" % self.process.pid).read_text()
        return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024

    def cpu_ms(self):
        """Of all its threads, in user and system mode."""
        fields = pathlib.Path("/proc/%d/stat" % self.process.pid).read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * 1e3 / os.sysconf("SC_CLK_TCK")

    def post(self, path, body, fields):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=START_S)
        connection.request("POST", path, body, {"Content-Type": "application/json", **fields})
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        if answer.status != 200:
            raise Failure("%s answers %d: %s" % (self.name, answer.status, data[:400]))
        return data

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait()


def find_python(*modules):
    """A Python that has these: the one that runs this, or Debian's own."""
    for python in dict.fromkeys([sys.executable, "/usr/bin/python3"]):
        command = [python, "-c", "import " + ", ".join(modules)]
        if shutil.which(python) and subprocess.run(command, capture_output=True).returncode == 0:
            return python
    return None


def peer_commands():
    """{name: (command, or None; what it needs)}"""
    fastapi = PEERS / "fastapi_peer.py"
    with_torch, with_numpy = find_python("fastapi", "uvicorn", "torch"), find_python("fastapi", "uvicorn", "ujson", "numpy")
    has_ort = shutil.which("node") and (PEERS / "node_modules" / "onnxruntime-node").is_dir()
    return {
        "pydantic+torch": (with_torch and [with_torch, fastapi, "pydantic"],
                           "apt-get install python3-fastapi python3-uvicorn python3-torch"),
        "ujson+numpy": (with_numpy and [with_numpy, fastapi, "ujson"],
                        "apt-get install python3-fastapi python3-uvicorn python3-ujson python3-numpy"),
        "node+ort": (["node", PEERS / "ort_http.mjs"] if has_ort else None, "make bench-peers"),
    }


# ---- measuring ----


class Contender:
    """A server and the request that it is sent."""

    def __init__(self, name, server, request, folder, path, body, fields):
        self.name, self.server = name, server
        self.path, self.body, self.fields = path, body, fields
        self.request_bytes, self.file = len(body), folder / name.replace("/", "-")
        self.file.write_bytes(request)
        self.rounds, self.split, self.peak_mib, self.failure = [], [], 0, None


def load(program, contender, connections, seconds):
    command = [program, contender.server.port, contender.file, connections, seconds]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure("%s: %s" % (contender.name, done.stderr.strip()))
    words = done.stdout.split()
    return {key: float(value) for key, value in zip(words[::2], words[1::2])}


def note_split(contender):
    """Of every request that the log tells of, where its time went."""
    for line in contender.server.new_lines():
        entry = json.loads(line) if line.startswith("{") else {}
        if "parse_ms" in entry:
            contender.split.append({key: entry[key] for key in SPLIT + ["receive_ms", "queue_ms", "total_ms"]})


def turn(contender, case, options):
    alone = load(options.load, contender, 1, options.seconds / 2)
    if contender.name.startswith("attnd"):
        note_split(contender)
    contender.server.reset_peak()
    cpu_ms = contender.server.cpu_ms()
    many = load(options.load, contender, case.connections, options.seconds)
    cpu_ms = (contender.server.cpu_ms() - cpu_ms) / many["answers"]
    contender.peak_mib = max(contender.peak_mib, contender.server.peak_mib())
    if contender.name.startswith("attnd"):
        contender.server.new_lines()
    contender.answer_bytes = int(alone["answer_bytes"])
    contender.rounds.append({"p50_ms": alone["p50_us"] / 1e3, "p99_ms": alone["p99_us"] / 1e3,
                             "rps": many["answers"] / many["seconds"], "p99_busy_ms": many["p99_us"] / 1e3, "cpu_ms": cpu_ms})


def unless_it_fails(peer, ask):
    """A peer that dies, or computes something else, leaves the case, and its line of the table says why."""
    try:
        ask()
    except (Failure, OSError, http.client.HTTPException) as failure:
        peer.failure = str(failure) or type(failure).__name__


def outputs_of(data):
    def flat(rows):
        return [x for row in rows for x in flat(row)] if isinstance(rows, list) else [rows]
    return {name: flat(rows) for name, rows in json.loads(data)["outputs"].items()}


def check_peer(contender, expected):
    found = outputs_of(contender.server.post(contender.path, contender.body, contender.fields))
    for name, values in expected.items():
        if len(values) != len(found[name]) or any(abs(a - b) > TOLERANCE for a, b in zip(values, found[name])):
            raise Failure("%s disagrees on %s" % (contender.name, name))


def contenders_of(case, options, servers, folder):
    chosen = []
    for kind in FORMATS:
        body, fields = MAKE[kind](case)
        path = "/v2/models/attention/infer" if kind == "oip" else "/v1/attention"
        answer = servers["attnd"].post(path, body, fields)
        for name, where in ("attnd", path), ("floor", "/%d" % len(answer)):
            request = whole_request(where, body, fields)
            chosen.append(Contender("%s/%s" % (name, kind), servers[name], request, folder, where, body, fields))
        if kind == "json":
            expected = outputs_of(answer)
    body, fields = make_json(case)
    for name in [name for name in servers if name not in ("attnd", "floor")]:
        peer = Contender(name, servers[name], whole_request("/v1/attention", body, fields), folder, "/v1/attention",
                         body, fields)
        unless_it_fails(peer, lambda peer=peer: check_peer(peer, expected))
        chosen.append(peer)
    return [c for c in chosen if re.search(options.contenders, c.name)]


def median(contender, key):
    return statistics.median(r[key] for r in contender.rounds)


def ratio(contender, other, key):
    """Of other to contender, round by round."""
    return statistics.median(b[key] / a[key] for a, b in zip(contender.rounds, other.rounds))


def summary(contender, floor, own):
    found = {key: median(contender, key) for key in ("rps", "p50_ms", "p99_ms", "p99_busy_ms", "cpu_ms")}
    found |= {"peak_mib": contender.peak_mib, "request_bytes": contender.request_bytes,
              "answer_bytes": contender.answer_bytes, "rounds": contender.rounds}
    if floor is not None and floor.rounds:
        found["of_floor"] = ratio(floor, contender, "rps")
        found["floor_p50_ms"] = median(floor, "p50_ms")
    if own is not None:
        found["attnd_times"] = ratio(contender, own, "rps")
    if contender.split:
        found["split"] = {key: statistics.median(s[key] for s in contender.split) for key in contender.split[0]}
    return found


def measure(case, options, servers, folder):
    contenders = contenders_of(case, options, servers, folder)
    for _ in range(options.rounds):
        for contender in contenders:
            if contender.name.startswith(("attnd", "floor")):
                turn(contender, case, options)
            elif contender.failure is None:
                unless_it_fails(contender, lambda peer=contender: turn(peer, case, options))
    by_name = {c.name: c for c in contenders}
    found = {}
    for contender in contenders:
        server, _, kind = contender.name.partition("/")
        floor = by_name.get("floor/" + kind) if server == "attnd" else None
        own = by_name.get("attnd/json") if server not in ("attnd", "floor") else None
        found[contender.name] = {"failure": contender.failure} if contender.failure else summary(contender, floor, own)
    return found


# ---- the table ----


def significant(x):
    return "–" if x is None else "%.3g" % x if abs(x) < 1000 else "%.0f" % x


def percent(x):
    return "–" if x is None else "%.0f" % (100 * x)


def other_ms(found):
    """What is left of a request alone without the floor's time and reading, computing, writing numbers."""
    split = found.get("split")
    if split is None or "floor_p50_ms" not in found:
        return None
    return found["p50_ms"] - found["floor_p50_ms"] - sum(split[key] for key in SPLIT)


def row(case, name, found):
    if "failure" in found:
        return "| %s | %s: %s |" % (case, name, found["failure"])
    split, other = found.get("split", {}), other_ms(found)
    words = [case, name, significant(found["request_bytes"] / 1024), significant(found["answer_bytes"] / 1024),
             significant(found["rps"]), percent(found.get("of_floor")), significant(found.get("attnd_times")),
             significant(found["cpu_ms"]), significant(found["p50_ms"]), significant(found["p99_ms"])]
    words += [significant(split.get(key)) for key in SPLIT]
    words += [percent(None if other is None else other / found["p50_ms"]),
              percent(split["compute_ms"] / found["p50_ms"] if split else None), significant(found["peak_mib"])]
    return "| " + " | ".join(words) + " |"


COLUMNS = ["case", "contender", "KiB in", "KiB out", "requests/s", "% of floor", "attnd ×", "CPU ms", "p50 ms", "p99 ms",
           "read ms", "compute ms", "write ms", "% other", "% compute", "peak MiB"]


def describe():
    cpu = re.search(r"model name\s*:\s*(.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return {"cpu": cpu[1] if cpu else platform.machine(), "cores": len(os.sched_getaffinity(0)),
            "system": platform.release(), "time": time.strftime("%Y-%m-%d %H:%M", time.gmtime())}


def start_servers(options):
    threads = options.io_threads
    # A line for each request tells where its time went; so much it writes by default too.
    settings = {"ATTND_LISTEN": "127.0.0.1:0", "ATTND_LOG_FORMAT": "json", "ATTND_DRAIN_DELAY": "0",
                "ATTND_IO_THREADS": str(threads)}
    servers = {"attnd": Server("attnd", [options.attnd], settings)}
    servers["floor"] = Server("floor", [options.bin / "http_floor", threads])
    for name, (command, needs) in peer_commands().items():
        if not re.search(options.contenders, name):
            continue
        if command is None:
            print("skipped: %s (%s)" % (name, needs))
            continue
        try:
            servers[name] = Server(name, command)
        except Failure as failure:
            print("skipped: %s" % failure)
    return servers


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--attnd", required=True, type=pathlib.Path)
    parser.add_argument("--bin", required=True, type=pathlib.Path, help="the folder of http_load and http_floor")
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--only", default="", metavar="REGEX", help="cases whose name matches: tiny, medium, large")
    parser.add_argument("--contenders", default="", metavar="REGEX", help="such as json, or attnd|floor")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.5, help="of load for a contender in a round")
    parser.add_argument("--io-threads", type=int, default=2, help="of attnd and of the floor")
    parser.add_argument("--json", type=pathlib.Path, help="where to write everything that was measured")
    options = parser.parse_args(given_options())
    options.load = options.bin / "http_load"
    if options.quick:
        options.rounds, options.seconds = 1, 0.5
    return options


def main():
    options, about = read_options(), describe()
    print("%(cpu)s, %(cores)d cores, Linux %(system)s" % about)
    servers, record = start_servers(options), {"about": about, "cases": {}}
    try:
        print("\n| " + " | ".join(COLUMNS) + " |\n| --- | --- |" + " ---: |" * (len(COLUMNS) - 2), flush=True)
        for case in CASES:
            if not re.search(options.only, case.name):
                continue
            with tempfile.TemporaryDirectory() as folder:
                found = measure(case, options, servers, pathlib.Path(folder))
            record["cases"][case.name] = found
            print("\n".join(row(case.name, name, found[name]) for name in found), flush=True)
    finally:
        for server in servers.values():
            server.end()
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit("bench: %s" % failure)
