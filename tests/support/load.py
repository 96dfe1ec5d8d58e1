#!/usr/bin/env python3
"""
load.py URL: runs many clients at once for some seconds, each with the documented rule for retries; prints their results.

A client that gets 502 or 503, or loses its connection, waits as long as Retry-After says (without it, a short moment that
doubles with each try) and sends the request again; `--tries` is the number of tries. SIGTERM ends the run before its time.
Ends with 1 when a request failed for good, or an answer was wrong.
"""

import argparse
import http.client
import json
import random
import signal
import sys
import threading
import time
import urllib.parse

RETRIED = (502, 503)
SHORT_MOMENT = 0.5  # seconds


class Client(threading.Thread):
    def __init__(self, options, body, end):
        super().__init__(daemon=True)
        parts = urllib.parse.urlsplit(options.url)
        self.address = (parts.hostname, parts.port or 80)
        self.path, self.body, self.end, self.tries, self.pause = options.path, body, end, options.tries, options.pause
        self.connection, self.seconds, self.retried, self.failures, self.answers = None, [], 0, [], set()

    def run(self):
        while time.monotonic() < self.end:
            start = time.monotonic()
            failure = self._until_answered()
            self.seconds.append(time.monotonic() - start)
            if failure:
                self.failures.append(failure)
            time.sleep(self.pause)

    def _until_answered(self):
        for failed in range(self.tries):
            status, wait = self._once()
            if status == 200:
                return None
            if status is not None and status not in RETRIED:
                break
            if failed + 1 < self.tries:
                self.retried += 1
                time.sleep((wait or SHORT_MOMENT * 2**failed) * (1 + random.random() / 2))
        return f"status {status}" if status else "the connection was lost"

    def _once(self):
        """(status, Retry-After in seconds); both are None for a connection that broke."""
        try:
            if self.connection is None:
                self.connection = http.client.HTTPConnection(*self.address, timeout=60)
            self.connection.request("POST", self.path, self.body, {"Content-Type": "application/json"})
            reply = self.connection.getresponse()
            answer = reply.read()
            if reply.status == 200:
                self.answers.add(answer)
            if reply.will_close:
                self._close()
            return reply.status, float(reply.headers.get("Retry-After", 0))
        except (OSError, http.client.HTTPException):
            self._close()
            return None, None

    def _close(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None


def request_of(length):
    values = random.Random(1)
    row = [[round(values.uniform(-1, 1), 3) for _ in range(64)] for _ in range(length)]
    return json.dumps({"inputs": {"query": row}, "options": {"return": ["output"]}}).encode()


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] * 1000


def end_all(clients):
    for client in clients:
        client.end = 0


def main():
    parser = argparse.ArgumentParser(description="load, with retries by the rule")
    parser.add_argument("url")
    parser.add_argument("--path", default="/v1/attention")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--length", type=int, default=32, help="tokens of the request; 64 features each")
    parser.add_argument("--tries", type=int, default=6)
    parser.add_argument("--pause", type=float, default=0, help="seconds that a client waits after each request")
    options = parser.parse_args()
    body = request_of(options.length)
    start = time.monotonic()
    clients = [Client(options, body, start + options.seconds) for _ in range(options.clients)]
    signal.signal(signal.SIGTERM, lambda *_: end_all(clients))
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    elapsed = time.monotonic() - start
    seconds = [item for client in clients for item in client.seconds]
    failures = [item for client in clients for item in client.failures]
    answers = set().union(*(client.answers for client in clients))
    print(f"{len(seconds)} requests, {len(seconds) / elapsed:.0f} a second, median {percentile(seconds, 0.5):.1f} ms, "
          f"99th percentile {percentile(seconds, 0.99):.1f} ms, {sum(client.retried for client in clients)} sent again, "
          f"{len(failures)} failed")
    for failure in failures[:5]:
        print("   ", failure)
    if len(answers) > 1:
        print("   the same request had different answers")
    return 1 if failures or len(answers) != 1 else 0


if __name__ == "__main__":
    sys.exit(main())
