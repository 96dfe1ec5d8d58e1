#!/usr/bin/env python3
"""
cache_steps.py: what a step of one token costs with a kept cache (options.cache), by the length of the cache. Several
programs are measured in turn, step by step.

    bench/http/cache_steps.py [--attnd PROGRAM]... [--rounds N] [LENGTH...]
"""

import argparse
import json
import re
import statistics
import time

from kept_layers import HERE, TENSORS, Server, tensor_file

HEADS, WIDTH, CHUNK = 8, 64, 4096


def body(new, length):
    sides = {"inputs.query": [1, HEADS, 1, WIDTH], "inputs.key": [1, HEADS, new, WIDTH],
             "inputs.value": [1, HEADS, new, WIDTH]}
    return tensor_file(sides, {"options": {"cache": f"of-{length}", "return": ["output"]}})


def step(client, new, length):
    """The milliseconds until the answer, and those of the run alone."""
    since = time.perf_counter()
    reply = client.send("POST", "/v1/attention", body(new, length), {"Content-Type": TENSORS, "Accept": TENSORS})
    spent = time.perf_counter() - since
    assert reply.status == 200, reply.body
    return 1e3 * spent, float(re.search(r"compute;dur=([0-9.]+)", reply.headers["Server-Timing"])[1])


def measure(clients, length, rounds):
    spent = [[] for _ in clients]
    for client in clients:
        for at in range(0, length, CHUNK):
            step(client, min(CHUNK, length - at), length)
        step(client, 1, length)
    for _ in range(rounds):
        for client, times in zip(clients, spent):
            times.append(step(client, 1, length))
    for client in clients:
        client.send("DELETE", f"/v1/caches/of-{length}")
    return spent


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attnd", action="append", help="a program; several are measured in turn")
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("lengths", type=int, nargs="*", default=[512, 4096, 32768], metavar="LENGTH")
    options = parser.parse_args()
    programs = options.attnd or [HERE.parents[1] / "build/release/attnd"]
    servers = [Server(program, environment={"ATTND_CACHE_BYTES": "1G", "ATTND_MAX_MEMORY": "1G",
                                            "ATTND_MEMORY": "4G"}) for program in programs]
    for server in servers:
        server.__enter__()
    for length in options.lengths:
        spent = measure([server.client() for server in servers], length, options.rounds)
        for program, times in zip(programs, spent):
            whole, computed = (statistics.median(column) for column in zip(*times))
            print(json.dumps({"program": str(program), "kept": length, "ms": round(whole, 3),
                              "compute_ms": round(computed, 3)}))
    for server in servers:
        server.__exit__(None, None, None)


if __name__ == "__main__":
    main()
