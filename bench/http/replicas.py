#!/usr/bin/env python3
"""
replicas.py --attnd PROGRAM: throughput of one server alone, one behind HAProxy, and two behind it, on this machine.

Rounds alternate between the three, so that a busy machine disturbs all alike. Beside requests a second it takes the
processor time of servers and balancer from /proc, which a busy machine hardly changes. The balancer runs with the
settings of docker/compose/haproxy.cfg that matter for a request. docs/scaling.md has what came of it.
"""

import argparse
import contextlib
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from attnd import Client, Server  # noqa: E402
from load import Client as LoadClient, request_of  # noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")
CONFIGURATION = """
global
    maxconn 4000
    tune.bufsize 262144
defaults
    mode http
    option redispatch 1
    retries 3
    retry-on conn-failure empty-response response-timeout 502 503
    timeout connect 2s
    timeout client 120s
    timeout server 120s
frontend http
    bind 127.0.0.1:{port}
    default_backend attnd
backend attnd
    balance leastconn
    option http-buffer-request
    http-reuse safe
"""


class Options:
    """What a client of tests/support/load.py wants to know."""

    def __init__(self, url):
        self.url, self.path, self.tries, self.pause = url, "/v1/attention", 6, 0


def seconds_of(pids):
    """Processor time of processes, in seconds."""
    total = 0
    for pid in pids:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def balancer(urls):
    """HAProxy in front of these servers; yields its URL and its process."""
    port = free_port()
    text = CONFIGURATION.format(port=port) + "".join(
        f"    server attnd-{at} {url.removeprefix('http://')} check\n" for at, url in enumerate(urls, 1))
    with tempfile.NamedTemporaryFile("w", suffix=".cfg") as file:
        file.write(text)
        file.flush()
        process = subprocess.Popen(["haproxy", "-db", "-f", file.name], stderr=subprocess.DEVNULL)
        try:
            for _ in range(100):
                with contextlib.suppress(OSError):
                    if Client(f"http://127.0.0.1:{port}").get("/readyz").status == 200:
                        break
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}", process
        finally:
            process.terminate()
            process.wait()


def one_round(url, servers, proxies, body, clients, seconds):
    """(requests a second, servers' and balancer's processor time of one request in ms)."""
    before = seconds_of(servers), seconds_of(proxies)
    start = time.monotonic()
    crew = [LoadClient(Options(url), body, start + seconds) for _ in range(clients)]
    for client in crew:
        client.start()
    for client in crew:
        client.join()
    elapsed = time.monotonic() - start
    count = sum(len(client.seconds) for client in crew)
    if any(client.failures for client in crew):
        sys.exit(f"{url}: {crew[0].failures[:1]}")
    after = seconds_of(servers), seconds_of(proxies)
    return count / elapsed, 1000 * (after[0] - before[0]) / count, 1000 * (after[1] - before[1]) / count


def main():
    parser = argparse.ArgumentParser(description="throughput of replicas behind a balancer")
    parser.add_argument("--attnd", required=True)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--lengths", default="16,128,512", help="tokens of a request, 64 features each")
    options = parser.parse_args()
    one_thread = {"ATTND_COMPUTE_THREADS": "1", "ATTND_IO_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(Server(options.attnd, environment=one_thread)) for _ in range(2)]
        pids = [server.process.pid for server in servers]
        urls = [server.url for server in servers]
        first, second = stack.enter_context(balancer(urls[:1])), stack.enter_context(balancer(urls))
        ways = {"one, alone": (urls[0], pids[:1], []),
                "one behind HAProxy": (first[0], pids[:1], [first[1].pid]),
                "two behind HAProxy": (second[0], pids, [second[1].pid])}
        for length in (int(item) for item in options.lengths.split(",")):
            body = request_of(length)
            taken = {name: [] for name in ways}
            for _ in range(options.rounds):
                for name, (url, servers_of, proxies) in ways.items():
                    taken[name].append(one_round(url, servers_of, proxies, body, options.clients,
                                                 options.seconds))
            print(f"{length} tokens, {len(body)} bytes")
            for name, rounds in taken.items():
                rate, server, proxy = (statistics.median(column) for column in zip(*rounds))
                best = max(item[0] for item in rounds)
                print(f"    {name:20} {rate:8.0f} a second (best {best:.0f}), processor time of a request: "
                      f"server {server:.3f} ms, balancer {proxy:.3f} ms")


if __name__ == "__main__":
    main()
