#!/usr/bin/env python3
"""
slow_crowd.py: how long others wait while a crowd of clients sends a byte a second each.

    slow_crowd.py --attnd build/release/attnd [--crowd 1000] [--seconds 3] [--rounds 5]

Rounds take turns: small requests on one connection alone, then while the crowd is there, which a process of its own
drives. Half of it never ends its header, half its body; whoever is cut comes again. Prints the median and p99 of both.
Fails when the p99 with the crowd is more than --most times that without. It measures: run it on a quiet machine.
"""

import argparse
import multiprocessing
import pathlib
import socket
import statistics
import sys
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from attnd import Server  # noqa: E402
from overload import percentile  # noqa: E402

BODY = b'{"inputs": {"query": [[1, 2], [3, 4], [5, 6]]}}'
REQUEST = (b"POST /v1/attention HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" %
           len(BODY)) + BODY
HEADER = b"GET / HTTP/1.1\r\nHost: localhost\r\nX: "
UPLOAD = b"POST /v1/attention HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n"
DRIP_SECONDS = 1


def crowd(address, count, is_there, is_over):
    """Slow clients, a part of them in turn every hundredth of a drip."""
    clients = [None] * count
    while not is_over.is_set():
        for turn in range(100):
            begun = time.monotonic()
            for at in range(turn, count, 100):
                clients[at] = drip(address, clients[at], HEADER if at % 2 else UPLOAD)
            time.sleep(max(0, DRIP_SECONDS / 100 - (time.monotonic() - begun)))
        is_there.set()


def drip(address, client, first):
    try:
        if client is None:
            client = socket.create_connection(address, 5)
            client.sendall(first)
        client.sendall(b"a")
        return client
    except OSError:
        if client is not None:
            client.close()
        return None


def ask(address, seconds):
    """Milliseconds of each request."""
    times = []
    end = time.monotonic() + seconds
    with socket.create_connection(address, 30) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while time.monotonic() < end:
            begun = time.perf_counter()
            connection.sendall(REQUEST)
            text = connection.recv(1 << 16)
            times.append((time.perf_counter() - begun) * 1e3)
            if not text.startswith(b"HTTP/1.1 200"):
                raise SystemExit(f"answered {text[:60]!r}")
    return times


def with_crowd(address, options):
    is_there, is_over = multiprocessing.Event(), multiprocessing.Event()
    process = multiprocessing.Process(target=crowd, args=(address, options.crowd, is_there, is_over))
    process.start()
    is_there.wait(60)
    times = ask(address, options.seconds)
    is_over.set()
    process.join()
    return times


def main():
    parser = argparse.ArgumentParser(description="slow clients beside others")
    parser.add_argument("--attnd", default=str(ROOT / "build" / "release" / "attnd"), help="server to start")
    parser.add_argument("--crowd", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=3, help="of a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--most", type=float, default=2, help="times the p99 without them")
    options = parser.parse_args()
    ratios = []
    with Server(options.attnd, environment={"ATTND_CONNECTIONS": str(options.crowd + 100)}) as server:
        parts = urllib.parse.urlsplit(server.url)
        address = (parts.hostname, parts.port)
        ask(address, 1)
        for _ in range(options.rounds):
            alone, beside = ask(address, options.seconds), with_crowd(address, options)
            ratios.append(percentile(beside, 0.99) / percentile(alone, 0.99))
            print(f"alone p50 {percentile(alone, 0.5):.3f} ms, p99 {percentile(alone, 0.99):.3f} ms; beside "
                  f"{options.crowd} slow clients p50 {percentile(beside, 0.5):.3f} ms, p99 {percentile(beside, 0.99):.3f} ms")
    print(f"p99 beside slow clients: {statistics.median(ratios):.2f} times that alone (median of {len(ratios)})")
    return 0 if statistics.median(ratios) <= options.most else 1


if __name__ == "__main__":
    sys.exit(main())
