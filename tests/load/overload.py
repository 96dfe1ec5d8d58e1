#!/usr/bin/env python3
"""
overload.py: what a server still gets done when it is asked for ten times as much as it can do.

    overload.py --attnd build/release/attnd [--times 10] [--seconds 5] [--rounds 3]

Rounds take turns: first a few clients that ask again as soon as they are answered, whose rate is the peak; then
requests at TIMES that rate, whatever the answers. Prints the goodput (answers 200 a second) of both, their ratio, and
how soon the refusals come. Fails when the median ratio is below --least. It measures: run it on a quiet machine.
"""

import argparse
import base64
import json
import pathlib
import selectors
import socket
import statistics
import struct
import sys
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from attnd import Server  # noqa: E402

LENGTH = 4096           # tokens of one feature: much to compute, little to send
PEAK_CONNECTIONS = 8
CROWD_CONNECTIONS = 300  # more than threads and queue hold
SETTLE_SECONDS = 10      # at most, until all answers of a round are in


def request_bytes():
    numbers = [(i * 0.6180339887) % 1 for i in range(LENGTH)]
    tensor = {"shape": [LENGTH, 1], "dtype": "float32",
              "base64": base64.b64encode(struct.pack(f"<{LENGTH}f", *numbers)).decode()}
    body = json.dumps({"inputs": {"query": tensor}, "options": {"return": ["output"], "format": "base64"}}).encode()
    head = (f"POST /v1/attention HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n")
    return head.encode() + body


class Connection:
    """One request at a time."""

    def __init__(self, address):
        self.address, self.socket = address, None
        self.open()

    def open(self):
        if self.socket is not None:
            self.socket.close()
        self.socket = socket.create_connection(self.address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.text, self.sent_at = b"", None

    def send(self, request):
        self.sent_at, self.text = time.perf_counter(), b""
        self.socket.sendall(request)

    def receive(self):
        """The status once the whole answer is there, else None; 0: the connection ended."""
        got = self.socket.recv(1 << 18)
        if not got:
            return 0
        self.text += got
        head, separator, body = self.text.partition(b"\r\n\r\n")
        if not separator:
            return None
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        if len(body) < int(fields[b"content-length"]):
            return None
        status = int(head[9:12])
        if status == 503 and b"retry-after" not in fields:
            raise AssertionError("503 without Retry-After")
        return status


def run(address, count, seconds, rate=None):
    """Answers as {status: [milliseconds]}; rate None: each connection asks again at once."""
    request, answers = request_bytes(), {}
    chooser, free = selectors.DefaultSelector(), []
    for _ in range(count):
        connection = Connection(address)
        chooser.register(connection.socket, selectors.EVENT_READ, connection)
        free.append(connection)
    begun, sent = time.perf_counter(), 0
    while (now := time.perf_counter() - begun) < seconds + (SETTLE_SECONDS if len(free) < count else 0):
        while free and now < seconds and (rate is None or sent < rate * now):
            free.pop().send(request)
            sent += 1
        for key, _ in chooser.select(0.001):
            connection = key.data
            status = connection.receive()
            if status is None:
                continue
            if connection.sent_at is not None and now < seconds:
                answers.setdefault(status, []).append((time.perf_counter() - connection.sent_at) * 1e3)
            if status == 0:
                chooser.unregister(connection.socket)
                connection.open()
                chooser.register(connection.socket, selectors.EVENT_READ, connection)
            free.append(connection)
    for key in list(chooser.get_map().values()):
        key.data.socket.close()
    return sent / seconds, answers


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))] if values else float("nan")


def main():
    parser = argparse.ArgumentParser(description="goodput under overload")
    parser.add_argument("--attnd", default=str(ROOT / "build" / "release" / "attnd"), help="server to start")
    parser.add_argument("--url", help="a server that runs already")
    parser.add_argument("--times", type=float, default=10, help="so many times what it can do")
    parser.add_argument("--seconds", type=float, default=5, help="of a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--least", type=float, default=0.95, help="of the peak that must be left")
    options = parser.parse_args()
    ratios, refusals = [], []
    with Server(options.attnd, options.url) as server:
        parts = urllib.parse.urlsplit(server.url)
        address = (parts.hostname, parts.port)
        run(address, PEAK_CONNECTIONS, 1)
        for _ in range(options.rounds):
            _, quiet = run(address, PEAK_CONNECTIONS, options.seconds)
            peak = len(quiet[200]) / options.seconds
            offered, loud = run(address, CROWD_CONNECTIONS, options.seconds, options.times * peak)
            good = len(loud.get(200, [])) / options.seconds
            ratios.append(good / peak)
            refusals += loud.get(503, [])
            others = {status: len(times) for status, times in loud.items() if status not in (200, 503)}
            print(f"peak {peak:.1f}/s, offered {offered:.0f}/s, goodput {good:.1f}/s = {good / peak:.3f} of the peak, "
                  f"refused {len(loud.get(503, []))}, other {others}")
    print(f"refusals: p50 {percentile(refusals, 0.5):.2f} ms, p99 {percentile(refusals, 0.99):.2f} ms")
    print(f"goodput under overload: {statistics.median(ratios):.3f} of the peak (median of {len(ratios)})")
    return 0 if statistics.median(ratios) >= options.least else 1


if __name__ == "__main__":
    sys.exit(main())
