#!/usr/bin/env python3
"""
memory.py: checks that no mix of clients gets a server killed in a control group of 256 MiB, with every setting at "auto".

    memory.py --attnd build/release/attnd [--seconds 8] [--limit 256]

Each mix runs against a server of its own in a control group (version 1 or 2) that is made for it: requests of all sizes
and formats; kept layers and caches beside them; whole models; models with vocabularies of real sizes, of which some do
not fit; half-sent headers of 62 kB; thousands of idle connections; answers that
nobody reads; and all of that at once. After each, the server must live, answer /readyz, and never have had more resident
memory than the limit. Prints the peaks. Needs root and control groups: otherwise it skips, with status 77.
"""

import argparse
import functools
import gzip
import http.client
import json
import os
import pathlib
import random
import re
import resource
import shutil
import socket
import sys
import tempfile
import threading
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

import attnd  # noqa: E402
from attnd import Server, wait_until  # noqa: E402
from suite import conclude, skip  # noqa: E402

MIB = 1 << 20
MADE = ROOT / "tests" / "others" / "models" / "bert"
VOCABULARIES = {"a-llama": 128_000, **{f"b-gemma-{number}": 256_000 for number in range(8)}}
CGROUPS = pathlib.Path("/sys/fs/cgroup")


class Group:
    """A control group with that limit in bytes, or an OSError."""

    def __init__(self, limit):
        is_v2 = (CGROUPS / "cgroup.controllers").exists()
        self.folder = (CGROUPS if is_v2 else CGROUPS / "memory") / f"attnd-load-{os.getpid()}"
        self.folder.mkdir()
        try:
            (self.folder / ("memory.max" if is_v2 else "memory.limit_in_bytes")).write_text(str(limit))
        except OSError:
            self.folder.rmdir()
            raise

    def command(self, program):
        """A program of one word that enters the group and becomes the other one."""
        path = pathlib.Path(f"/tmp/attnd-load-{os.getpid()}")
        path.write_text(f'#!/bin/sh\necho $$ > {self.folder}/cgroup.procs\nexec {program} "$@"\n')
        path.chmod(0o700)
        return path

    def is_gone(self):
        """The memory of a process is uncharged a moment after its end."""
        try:
            self.folder.rmdir()
        except OSError:
            return False
        return True

    def remove(self):
        pathlib.Path(f"/tmp/attnd-load-{os.getpid()}").unlink(missing_ok=True)
        wait_until(self.is_gone, "the control group is busy")


def peak_bytes(server):
    lines = pathlib.Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))


# ---- clients: each goes on until is_over, and takes refusals and cut connections as they come ----

def address_of(server):
    parts = urllib.parse.urlsplit(server.url)
    return parts.hostname, parts.port


def ask(address, method, path, body=None, fields=None):
    connection = http.client.HTTPConnection(*address, timeout=30)
    try:
        connection.request(method, path, body, {"Content-Type": "application/json", **(fields or {})})
        return connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def compute(address, is_over, seed):
    chance = random.Random(seed)
    while not is_over.is_set():
        row = [chance.random()] * chance.choice((1, 8))
        steps = chance.choice((["output"], ["attention", "output"], ["scores", "scaled", "masked", "attention"]))
        body = json.dumps({"inputs": {"query": [row] * chance.choice((10, 300, 1200, 2000))},
                           "options": {"return": steps}}).encode()
        fields = {}
        if chance.random() < 0.3:
            fields["Accept"] = chance.choice(("image/png", "text/csv"))
        if chance.random() < 0.3:
            fields["Accept-Encoding"] = chance.choice(("gzip", "zstd"))
        if chance.random() < 0.3:
            body, fields["Content-Encoding"] = gzip.compress(body, 1), "gzip"
        ask(address, "POST", "/v1/attention", body, fields)


def grow_trees(address, is_over, seed):
    body = b'{"inputs":{"query":[[1]]},"options":{"return":[' + b"{}," * (300000 + seed) + b"{}]}}"
    while not is_over.is_set():
        ask(address, "POST", "/v1/attention", body)


def fill_stores(address, is_over, seed):
    width = 512
    matrix = [[0.5] * width] * width
    layer = json.dumps({"weights": {name: {"weight": matrix} for name in ("query", "key", "value", "output")},
                        "options": {"num_heads": 8}}).encode()
    tokens = json.dumps({"inputs": {"query": [[1.0] * width] * 100}}).encode()
    for number in range(10**9):
        if is_over.is_set():
            return
        name = f"layer-{seed}-{number % 6}"
        ask(address, "PUT", f"/v1/layers/{name}", layer)
        ask(address, "POST", f"/v1/layers/{name}/attention", tokens)
        cache = {"inputs": {"query": [[1.0] * 64] * 4000},
                 "options": {"cache": f"cache-{seed}-{number % 40}", "return": ["output"]}}
        ask(address, "POST", "/v1/attention", json.dumps(cache).encode())


def hold(address, is_over, count, text, reads):
    """So many connections that say text and then nothing; whoever is cut comes again."""
    crowd = []
    while not is_over.is_set():
        try:
            connection = socket.socket()
            if not reads:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            connection.settimeout(5)
            connection.connect(address)
            connection.sendall(text)
            crowd.append(connection)
        except OSError:
            time.sleep(0.01)
        if len(crowd) > count:
            crowd.pop(0).close()
    for connection in crowd:
        connection.close()


def half_headers(address, is_over, _):
    hold(address, is_over, 300, b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 62000, True)


def idle(address, is_over, _):
    hold(address, is_over, 2400, b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n", True)


def text_of(seed):
    return " ".join(["the animal did not cross the street because it was too tired"] * (1 + seed % 4))


def run_models(address, is_over, seed):
    """Texts, and as many ids as a request may have, with results from the smallest to all of them."""
    chance = random.Random(seed)
    returns = (["predictions"], ["attention"], ["hidden", "rollout", "head_scores"],
               ["scores", "scaled", "masked", "attention", "contribution", "context", "logits", "logit_lens"])
    while not is_over.is_set():
        batch = chance.choice((1, 16, 400, 4096))
        inputs = {"text": [text_of(seed)] * batch} if chance.random() < 0.5 else {"ids": [[1, 2, 3] * 20] * batch}
        body = json.dumps({"inputs": inputs, "options": {"return": chance.choice(returns), "predictions_k": 700}}).encode()
        fields = {"Accept": chance.choice(("application/json", "image/png", "application/vnd.attnd.safetensors"))}
        ask(address, "POST", f"/v1/models/{chance.choice(('demo', 'made'))}/attention", body, fields)


@functools.cache
def made_tokenizer(size):
    """Byte pair encoding with so many tokens, each merged from two earlier ones, and all merges that make them."""
    chance = random.Random(size)
    letters = [chr(code) for code in (*range(33, 127), *range(161, 173), *range(174, 324))]
    tokens, known = list(letters), set(letters)
    while len(tokens) < size:
        token = chance.choice(letters) + chance.choice(tokens)
        if len(token) <= 12 and token not in known:
            known.add(token)
            tokens.append(token)
    merges = [[token[:cut], token[cut:]] for token in tokens for cut in range(1, len(token))
              if token[:cut] in known and token[cut:] in known]
    return json.dumps({"version": "1.0", "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
                       "decoder": {"type": "ByteLevel"},
                       "model": {"type": "BPE", "vocab": {token: i for i, token in enumerate(tokens)}, "merges": merges}})


def save_model(parent, name, tokenizer):
    """Moves the folder into the parent as a whole, as an operator does."""
    with tempfile.TemporaryDirectory(dir=parent, prefix=".") as aside:
        folder = pathlib.Path(shutil.copytree(MADE, pathlib.Path(aside) / name, ignore=shutil.ignore_patterns("cases*", "outputs*")))
        (folder / "tokenizer.json").write_text(tokenizer)
        folder.rename(pathlib.Path(parent) / name)


def many_objects(count):
    """Small as text, and as a tree of JSON forty times as large."""
    return ('{"version":"1.0","model":{"type":"BPE","vocab":{"a":0},"merges":[]},"post_processor":{"type":"Sequence",'
            '"processors":[' + ",".join(["{}"] * count) + "]}}")


def save_large_models(parent):
    for name, size in VOCABULARIES.items():
        save_model(parent, name, made_tokenizer(size))
    save_model(parent, "c-tree", many_objects(12_000_000))


def large_models_are_served(server, parent):
    """Those that fit are served, the others have a reason, and so has one that comes later."""
    def listed():
        return {row["name"]: row for row in json.loads(ask(address_of(server), "GET", "/v1/models"))["models"]}

    save_model(parent, "d-later", many_objects(12_000_000))
    wait_until(lambda: listed().get("d-later", {"state": "loading"})["state"] != "loading", "the folder is not read")
    for name, row in listed().items():
        if row["state"] == "broken":
            assert re.match(r"it needs more than \d+ MB, has room for \d+ MB", row["reason"]), row
        else:
            body = json.dumps({"inputs": {"text": "the animal"}}).encode()
            tokens = json.loads(ask(address_of(server), "POST", f"/v1/models/{name}/tokens", body))
            assert "error" not in tokens, (name, tokens)
    states = {name: row["state"] for name, row in listed().items()}
    assert states["c-tree"] == states["d-later"] == "broken" and states["a-llama"] == states["b-gemma-0"] == "ready", states


def unread_maps(address, is_over, seed):
    body = json.dumps({"inputs": {"text": [text_of(seed)] * 100}, "options": {"return": ["attention", "scores"]}}).encode()
    text = (b"POST /v1/models/demo/attention HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n" % len(body)) + body
    hold(address, is_over, 200, text * 4, False)


def unread(address, is_over, seed):
    body = gzip.compress(json.dumps({"inputs": {"query": [[0]] * (300 + 1000 * (seed % 4))},
                                     "options": {"return": ["attention"]}}).encode())
    text = (b"POST /v1/attention HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body)) + body
    hold(address, is_over, 200, text * 4, False)


MIXES = {
    "computing": [compute] * 16,
    "trees": [grow_trees] * 8,
    "layers and caches": [fill_stores] * 3 + [compute] * 4,
    "half-sent headers": [half_headers] * 4 + [compute] * 8,
    "idle connections": [idle] * 4 + [compute] * 4,
    "unread answers": [unread] * 4 + [compute] * 4,
    "models": [run_models] * 12 + [compute] * 4,
    "large vocabularies": [run_models] * 12 + [compute] * 4,
    "unread maps of models": [unread_maps] * 4 + [run_models] * 4,
    "all at once": [compute] * 12 + [run_models] * 4 + [grow_trees] * 2 + [fill_stores] * 2 + [half_headers, idle, unread, unread],
}


def run_mix(server, clients, seconds):
    is_over = threading.Event()
    threads = [threading.Thread(target=client, args=(address_of(server), is_over, seed))
               for seed, client in enumerate(clients)]
    for thread in threads:
        thread.start()
    is_over.wait(seconds)
    is_over.set()
    for thread in threads:
        thread.join()


def outlives(options, group, name, threads):
    with tempfile.TemporaryDirectory() as parent:
        if name == "large vocabularies":
            save_large_models(parent)
        return outlives_with(options, group, name, threads, parent)


def outlives_with(options, group, name, threads, parent):
    environment = {"ATTND_COMPUTE_THREADS": str(threads), "ATTND_CONNECTIONS": "10000", "ATTND_MODEL": f"made={MADE}",
                   "ATTND_MODELS": parent}
    with Server(str(group.command(options.attnd)), environment=environment) as server:
        run_mix(server, MIXES[name], options.seconds)
        if server.process.poll() is not None:
            print(f"FAILED {name}, {threads} threads: the server was ended with status {server.process.returncode}")
            return False
        if name == "large vocabularies":
            large_models_are_served(server, parent)
        peak = peak_bytes(server)
        wait_until(lambda: b'"ready":true' in (ask(address_of(server), "GET", "/readyz") or b""), "it is not ready again")
        is_within = peak < options.limit * MIB
        print(f"{'ok' if is_within else 'FAILED'} {name}, {threads} threads: at most {peak / MIB:.0f} MiB resident",
              flush=True)
        return is_within


def main():
    parser = argparse.ArgumentParser(description="memory within a control group")
    parser.add_argument("--attnd", default=str(ROOT / "build" / "release" / "attnd"), help="server to start")
    parser.add_argument("--seconds", type=float, default=8, help="of a mix")
    parser.add_argument("--limit", type=int, default=256, help="MiB of the control group")
    parser.add_argument("--threads", type=int, nargs="+", default=[2, 32], help="for computing")
    parser.add_argument("--only", default="", help="mixes whose name holds this")
    options = parser.parse_args()
    options.attnd = str(pathlib.Path(options.attnd).resolve())
    try:
        group = Group(options.limit * MIB)
    except OSError as error:
        return skip("memory", f"no control group can be made here ({error})")
    attnd.START_SECONDS = 300  # a dozen large vocabularies are read at the start
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    passed = []
    try:
        for threads in options.threads:
            passed += [outlives(options, group, name, threads) for name in MIXES if options.only in name]
    finally:
        group.remove()
    return conclude("memory", sum(passed), len(passed) - sum(passed))


if __name__ == "__main__":
    sys.exit(main())
