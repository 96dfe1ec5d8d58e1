#!/usr/bin/env python3
"""
client_gone.py: how soon a computation stops when the client that asked for it leaves.

    client_gone.py --attnd build/release/attnd [--rounds 20]

A request of seconds is begun, its connection closed, and the server's own metrics are asked until no job runs; the count
of what clients who left cancelled must then be one higher. Fails when the slowest took more than --most milliseconds.
It measures: run it on a quiet machine.
"""

import argparse
import base64
import json
import pathlib
import re
import socket
import struct
import sys
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from attnd import Server  # noqa: E402
from overload import percentile  # noqa: E402

TOKENS = 60000  # of one feature: seconds of computing from little text
PATIENCE_SECONDS = 20


def request_bytes():
    data = base64.b64encode(struct.pack(f"<{TOKENS}f", *[i * 0.618 % 1 for i in range(TOKENS)])).decode()
    body = json.dumps({"inputs": {"query": {"shape": [TOKENS, 1], "dtype": "float32", "base64": data}},
                       "options": {"return": ["output"], "format": "base64"}}).encode()
    return b"POST /v1/attention HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def metric(client, name):
    found = re.search(rb"^" + re.escape(name.encode()) + rb" (\S+)$", client.get("/metrics").body, re.M)
    return float(found.group(1)) if found else 0


def wait(client, running):
    end = time.monotonic() + PATIENCE_SECONDS
    while metric(client, "attnd_running_jobs") != running:
        if time.monotonic() > end:
            raise SystemExit(f"never are {running} jobs running")


def leave(address, client, request):
    """Milliseconds from the client's end to that of its job."""
    connection = socket.create_connection(address, PATIENCE_SECONDS)
    connection.sendall(request)
    wait(client, 1)
    begun = time.perf_counter()
    connection.close()
    wait(client, 0)
    return (time.perf_counter() - begun) * 1e3


def main():
    parser = argparse.ArgumentParser(description="clients that leave")
    parser.add_argument("--attnd", default=str(ROOT / "build" / "release" / "attnd"), help="server to start")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--most", type=float, default=50, help="milliseconds")
    options = parser.parse_args()
    request = request_bytes()
    with Server(options.attnd) as server:
        parts = urllib.parse.urlsplit(server.url)
        client = server.client()
        times = [leave((parts.hostname, parts.port), client, request) for _ in range(options.rounds)]
        cancelled = metric(client, 'attnd_cancelled_total{reason="client_gone"}')
    print(f"work stops {percentile(times, 0.5):.1f} ms after its client has left (median of {len(times)}), "
          f"{max(times):.1f} ms at the latest; cancelled by the server's own count: {cancelled:.0f}")
    return 0 if max(times) <= options.most and cancelled == options.rounds else 1


if __name__ == "__main__":
    sys.exit(main())
