#!/usr/bin/env python3
"""
overload.py: what a server still gets done when it is asked for ten times as much as it can do.

    overload.py --attnd build/release/attnd --load build/release/bench/http/http_load [--times 10] [--seconds 5] [--rounds 3]

Rounds take turns: first a few clients that ask again as soon as they are answered, whose rate is the peak; then
requests at TIMES that rate, whatever the answers, even "come again in three seconds". Prints the goodput (answers 200 a
second) of both, their ratio, what the server's processors spent on a refusal, and how soon refusals come. Fails when
the median ratio is below --least.

The clients have the last processor for themselves and the server has the others, so that sending ten times as much
takes nothing from the server; --shared gives all to both. It measures: run it on a quiet machine.
"""

import argparse
import base64
import json
import os
import pathlib
import statistics
import struct
import subprocess
import sys
import tempfile
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from attnd import Server  # noqa: E402

LENGTH = 4096           # tokens of one feature: much to compute, little to send
PEAK_CONNECTIONS = 8
CROWD_CONNECTIONS = 300  # more than threads and queue hold
TICKS = os.sysconf("SC_CLK_TCK")


def request_bytes():
    numbers = [(i * 0.6180339887) % 1 for i in range(LENGTH)]
    tensor = {"shape": [LENGTH, 1], "dtype": "float32",
              "base64": base64.b64encode(struct.pack(f"<{LENGTH}f", *numbers)).decode()}
    body = json.dumps({"inputs": {"query": tensor}, "options": {"return": ["output"], "format": "base64"}}).encode()
    head = (f"POST /v1/attention HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n")
    return head.encode() + body


def on(processors, command):
    return ["taskset", "-c", ",".join(map(str, processors)), *map(str, command)]


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))] if values else float("nan")


class Round:
    """One run of http_load: its lines by their first word, and the processor time that the server took, in seconds."""

    def __init__(self, server, options, processors, connections, rate=None):
        port = urllib.parse.urlsplit(server.url).port
        command = [options.load, port, options.request, connections, options.seconds]
        if rate:
            command += [rate] if options.shared else [rate, "poll"]
        before = self.server_seconds(server)
        done = subprocess.run(on(processors, command), capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(done.stderr)
        self.cpu_seconds = self.server_seconds(server) - before
        self.said = {}
        for line in done.stdout.splitlines():
            words = line.split()
            self.said[words[0]] = dict(zip(words[::2], map(float, words[1::2])))

    @staticmethod
    def server_seconds(server):
        if server.process is None:
            return float("nan")
        fields = pathlib.Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def count(self, what):
        return int(self.said[what][what])

    def rate(self, what):
        return self.said[what][what] / self.said[what]["seconds"]

    def p99_ms(self, what):
        return self.said[what]["p99_us"] / 1e3


def refusal_us(quiet, loud):
    """What the server's processors did beside computing as for the peak, for each refusal."""
    if loud.count("refusals") == 0:
        return float("nan")
    answer_seconds = quiet.cpu_seconds / quiet.count("answers")
    answers = loud.count("answers") + loud.said["refusals"]["late"]
    return 1e6 * (loud.cpu_seconds - answers * answer_seconds) / loud.count("refusals")


def measure(server, options, processors):
    ratios, waits = [], []
    for _ in range(options.rounds):
        quiet = Round(server, options, processors, PEAK_CONNECTIONS)
        peak = quiet.rate("answers")
        loud = Round(server, options, processors, CROWD_CONNECTIONS, options.times * peak)
        good = loud.rate("answers")
        ratios.append(good / peak)
        waits.append(loud.p99_ms("refusals"))
        asked = loud.said["refusals"]["requests"] / options.seconds
        print(f"peak {peak:.1f}/s, asked for {asked:.0f}/s, goodput {good:.1f}/s = {good / peak:.3f} of the peak, "
              f"answered within {loud.p99_ms('answers'):.0f} ms; refused {loud.count('refusals')}, "
              f"{refusal_us(quiet, loud):.0f} us of processor each, p99 {waits[-1]:.2f} ms", flush=True)
    print(f"goodput under overload: {statistics.median(ratios):.3f} of the peak, p99 of refusals "
          f"{statistics.median(waits):.2f} ms (medians of {len(ratios)})")
    return statistics.median(ratios)


def main():
    parser = argparse.ArgumentParser(description="goodput under overload")
    parser.add_argument("--attnd", default=str(ROOT / "build" / "release" / "attnd"), help="server to start")
    parser.add_argument("--load", default=str(ROOT / "build" / "release" / "bench" / "http" / "http_load"), help="the client")
    parser.add_argument("--url", help="a server that runs already")
    parser.add_argument("--times", type=float, default=10, help="so many times what it can do")
    parser.add_argument("--seconds", type=float, default=5, help="of a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--least", type=float, default=0.95, help="of the peak that must be left")
    parser.add_argument("--shared", action="store_true", help="server and clients share all processors")
    options = parser.parse_args()
    processors = sorted(os.sched_getaffinity(0))
    options.shared |= len(processors) == 1 or options.url is not None
    servers, clients = (processors, processors) if options.shared else (processors[:-1], processors[-1:])
    os.sched_setaffinity(0, clients)  # of who reads the log
    with tempfile.NamedTemporaryFile() as request, \
            Server(" ".join(on(servers, [options.attnd])), options.url) as server:
        request.write(request_bytes())
        request.flush()
        options.request = request.name
        return 0 if measure(server, options, clients) >= options.least else 1


if __name__ == "__main__":
    sys.exit(main())
