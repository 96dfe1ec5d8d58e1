#!/usr/bin/env python3
"""
soak.py: a server under mixed traffic for minutes or hours, with bad clients beside it, reloads and restarts.

Every answer is compared with the first answer to the same request; memory and descriptors are read from /proc all the
while. A server's life lasts --life seconds; then it drains and the next one goes on with the layers of the last. Ends
with 1 after a wrong answer, a request without an answer, a crash, descriptors that stay open, or memory that grows.

--minutes N, --seed N (what is asked, in which order, and how bad clients misbehave), --clients N, --life SECONDS.
"""

import argparse
import base64
import collections
import gzip
import json
import os
import pathlib
import random
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
for folder in ("support", "faults", "api/layers"):
    sys.path.insert(0, str(HERE.parent / folder))

import oip  # noqa: E402
import tensor_file  # noqa: E402
from asked import TENSORS, all_requests, at_first, text  # noqa: E402
from attnd import Server, StartError  # noqa: E402
from exchange import Exchange, Request, ask  # noqa: E402
from layer import as_file, layer, matrix  # noqa: E402

# What asked.py has and can be compared while others change layers and statistics.
AS_ASKED = {"attention": "JSON", "chunked": "JSON", "gzip": "gzip", "tensors": "safetensors", "csv": "CSV",
            "png": "picture", "svg": "picture", "large": "JSON", "large gzip": "gzip", "multi-head": "JSON",
            "gradients": "gradients", "layer gradients": "gradients", "get": "layer", "get tensors": "layer",
            "kept attention": "layer", "infer": "OIP", "infer kept": "OIP", "infer binary": "OIP binary",
            "version": "page", "openapi": "page", "page": "page", "refused": "refused", "nowhere": "refused"}
BAD_CLIENTS = 3  # most of the time they wait for a deadline
PATIENCE_SECONDS, SETTLE_SECONDS = 30, 30
RELOAD_SECONDS, SAMPLE_SECONDS, FLOOR_SECONDS = 3, 0.25, 2
WARM_SECONDS, SHORTEST_SECONDS = 20, 20  # before the slope begins; the least that a slope is taken from
# KiB a minute, for the median of the lives. Below it is noise: malloc's heaps still settle after WARM_SECONDS. Of
# twelve lives of a sound server on a busy machine ten came out between -836 and 1216, the others at -4003 and 6004 (its
# largest memory was below that of its neighbours). So one or two lives alone are held to FEW times the bound. Above it
# is a leak: at 360 requests a second it is 150 bytes for each; one of 8 KiB for each connection came out as 18357.
SLOPE_BOUND, FEW = 3072, 3
TIMEOUTS = {"ATTND_IDLE_TIMEOUT": "5", "ATTND_REQUEST_TIMEOUT": "8"}


def numbers(count, seed):
    source = random.Random(seed)
    return [round(source.uniform(-1, 1), 4) for _ in range(count)]


def packed(shape, seed):
    data = struct.pack(f"<{shape[0] * shape[1]}f", *numbers(shape[0] * shape[1], seed))
    return {"shape": shape, "dtype": "float32", "base64": base64.b64encode(data).decode()}


class Traffic:
    """All requests, and the first answer to each of them."""

    def __init__(self, seed, key):
        self.key, self.lock, self.first = key, threading.Lock(), {}
        self.single = [(AS_ASKED[request.name], self.with_key(request)) for request in all_requests()
                       if request.name in AS_ASKED]
        for number in range(4):
            self.single += self.of_every_format(f"{seed} {number}", random.Random(f"{seed} sizes {number}"))
        self.at_first = [self.with_key(request) for request in at_first()]

    def with_key(self, request):
        request.bytes = request.bytes.replace(b"Host: localhost\r\n", b"Host: localhost\r\nX-API-Key: %s\r\n" % self.key.encode(), 1)
        return request

    def request(self, name, method, path, body=None, *rest, **members):
        return self.with_key(Request(name, method, path, body, *rest, **members))

    def of_every_format(self, seed, sizes):
        """Small and medium requests with sizes and numbers of their own."""
        short, long, width = sizes.randrange(2, 20), sizes.randrange(60, 200), sizes.choice((8, 16, 32))
        path, heads = "/v1/attention", {"options": {"num_heads": 4, "return": ["output", "lse"]}}
        rows = [numbers(width, f"{seed} {i}") for i in range(long)]
        small = text(inputs={"query": rows[:short]}, masks=sizes.choice(({}, {"causal": True}, {"sliding_window": 3})))
        medium = text(inputs={"query": rows}, masks={"causal": True}, **heads)
        based = text(inputs={name: packed([2 * long, width], f"{seed} {name}") for name in ("query", "key", "value")},
                     options={"num_heads": 2, "return": ["output"], "format": "base64"})
        tensors = tensor_file.write({"inputs.query": ("F32", [long, width], sum(rows, []))},
                                    {"request": json.dumps(heads)})
        inputs = [oip.tensor("QUERY", rows), oip.tensor("KEY", rows[::-1])]
        outputs = [{"name": "OUTPUT"}]
        binary, length = oip.binary_request(inputs, parameters={"binary_data_output": True}, outputs=outputs)
        slopes = text(inputs={"query": rows[:32], "grad_output": rows[32:64] if long >= 64 else rows[:32]})
        picture = text(inputs={"query": rows[:short]}, tokens={"query": [f"t{i}" for i in range(short)]})
        infer, its_length = "/v2/models/attention/infer", {"Inference-Header-Content-Length": length}
        made = [("JSON", path, small, {}), ("JSON", path, medium, {}), ("base64", path, based, {}),
                ("gzip", path, gzip.compress(medium, mtime=0),
                 {"headers": {"Content-Encoding": "gzip", "Accept-Encoding": "gzip"}}),
                ("safetensors", path, tensors, {"content_type": TENSORS, "headers": {"Accept": TENSORS}}),
                ("OIP", infer, text(inputs=inputs, outputs=outputs), {}),
                ("OIP binary", infer, binary, {"content_type": "application/octet-stream", "headers": its_length}),
                ("gradients", "/v1/attention/gradients", slopes, {}),
                ("picture", path, picture, {"headers": {"Accept": "image/png"}})]
        return [(kind, self.request(f"{kind} {seed} {i}", "POST", where, body, **members))
                for i, (kind, where, body, members) in enumerate(made)]

    def of_a_layer(self, owner, number):
        """The states of a layer. Its name belongs to one client, so that each step has one right answer."""
        body, path = layer(f"soak {number}", 8, 2), f"/v1/layers/soak-{owner}"
        form = {"content_type": TENSORS} if number % 2 else {}
        inputs = {"query": matrix(5, 8, number)}
        infer = text(inputs=[oip.tensor("QUERY", inputs["query"])])
        steps = [("put", "PUT", path, as_file(body) if number % 2 else text(**body), {"answers": (200, 201), **form}),
                 ("get", "GET", path, None, {}),
                 ("attend", "POST", path + "/attention", text(inputs=inputs), {}),
                 ("infer", "POST", f"/v2/models/soak-{owner}/infer", infer, {}),
                 ("delete", "DELETE", path, None, {"answers": (204, 404)}),
                 ("gone", "GET", path, None, {"answers": (404,)})]
        return [self.request(f"layer {owner} {number} {step}", method, where, body, **members)
                for step, method, where, body, members in steps]

    def of_a_cache(self, owner, number):
        """Steps that know how long the cache must be: a cache that a restart has emptied is answered 410."""
        tokens, cache = matrix(6, 4, f"cache {number}"), f"soak-{owner}"
        steps = [self.request(f"cache {owner} {number} delete", "DELETE", f"/v1/caches/{cache}", answers=(204, 404))]
        for at in range(0, 6, 2):
            body = text(inputs={"query": tokens[at:at + 2]},
                        options={"return": ["output"], "cache": {"name": cache, "length": at} if at else cache})
            steps.append(self.request(f"cache {owner} {number} {at}", "POST", "/v1/layers/kept/attention", body))
        return steps

    def judge(self, request, outcome):
        """None, or what is wrong with the answer."""
        if outcome.status not in request.answers:
            return f"status {outcome.word}: {outcome.body[:200]!r}"
        content = outcome.content
        if len(request.answers) > 1:  # which of them depends on whether the request was sent again
            content = content[1:] if outcome.status < 204 else None
        with self.lock:
            first = self.first.setdefault(request.name, content)
        return None if content == first else f"another answer than the first: {len(outcome.body)} bytes"


class Tally:
    """The results of all threads."""

    def __init__(self):
        self.lock = threading.Lock()
        self.asked, self.refused, self.bad = (collections.Counter() for _ in range(3))
        self.sent_again, self.wrong, self.crashes = 0, [], []

    def count(self, counter, *words):
        with self.lock:
            counter.update(words)

    def accuse(self, sentence):
        with self.lock:
            self.wrong.append(sentence)


class Stage:
    """The current server. Requests sent while it was replaced may be repeated."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.server, self.port, self.life, self.is_changing = None, None, 0, False
        self.key, self.lines = {}, {}
        for name, *words in (("worker", "all"), ("watcher", "metrics"), ("few", "compute", "requests=1"), ("spare",)):
            made = subprocess.run([program, "key", name, *words], capture_output=True, text=True, check=True)
            self.lines[name], self.key[name] = made.stdout, made.stderr.split()[-1]
        self.write_keys(True)
        (pathlib.Path(folder) / "layers").mkdir()

    def write_keys(self, has_spare):
        path = pathlib.Path(self.folder) / "keys"
        new = path.with_suffix(".new")
        new.write_text("".join(line for name, line in self.lines.items() if has_spare or name != "spare"))
        new.rename(path)

    def start(self):
        environment = {**TIMEOUTS, "ATTND_LAYERS": f"{self.folder}/layers", "ATTND_KEYS": f"{self.folder}/keys"}
        self.server = Server(self.program, environment=environment)
        self.server.__enter__()
        self.port = int(self.server.url.rsplit(":", 1)[1])
        self.life += 1
        self.is_changing = False

    def stop(self):
        """None, or the way in which it ended badly."""
        self.is_changing = True
        try:
            self.server.__exit__()
        except StartError as error:
            return f"life {self.life}: {error}"
        return None

    def reload(self, number):
        self.write_keys(number % 2 == 0)
        self.server.process.send_signal(signal.SIGHUP)

    def mark(self):
        return self.life, self.is_changing

    def has_changed_since(self, mark):
        return mark[1] or self.mark() != mark

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.server.process.pid}/fd"))

    def resident_kib(self):
        for line in pathlib.Path(f"/proc/{self.server.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
        raise ProcessLookupError("it has no memory any more")


class Kept(Exchange):
    """A connection for more than one request."""

    def again(self, request):
        self.data = b""
        try:
            self.socket.sendall(request.bytes)
        except OSError:
            pass  # read tells


class Client(threading.Thread):
    """Asks, by the documented rule for retries, until it is told to stop."""

    def __init__(self, number, stage, traffic, tally, seed, stop):
        super().__init__(daemon=True)
        self.number, self.stage, self.traffic, self.tally, self.stop = number, stage, traffic, tally, stop
        self.random, self.connection = random.Random(f"{seed} client {number}"), None

    def run(self):
        try:
            while not self.stop.is_set():
                drawn = self.random.random()
                if drawn < 0.05:
                    self.scenario("layer", self.traffic.of_a_layer(self.number, self.random.randrange(8)))
                elif drawn < 0.10:
                    self.scenario("cache", self.traffic.of_a_cache(self.number, self.random.randrange(8)))
                else:
                    kind, request = self.random.choice(self.traffic.single)
                    self.scenario(kind, [request])
        except Exception:  # noqa: BLE001: a client that falls silent must not look like a good run
            self.tally.accuse(f"client {self.number} broke off: {traceback.format_exc()}")
        self.leave()

    def scenario(self, kind, requests):
        mark = self.stage.mark()
        for request in requests:
            outcome = self.answer(request)
            self.tally.count(self.tally.asked, kind)
            if outcome.status is not None and outcome.status >= 400:
                self.tally.count(self.tally.refused, outcome.status)
            if kind == "cache" and self.stage.has_changed_since(mark):
                return  # caches end with their server
            wrong = self.traffic.judge(request, outcome)
            if wrong:
                self.tally.accuse(f"{request.name}: {wrong}")
                return

    def answer(self, request):
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            mark, (outcome, was_kept) = self.stage.mark(), self.once(request)
            # Who was let in is answered, also by a server that ends: a new connection that is closed is no excuse.
            may_retry = (outcome.status == 503 or was_kept and outcome.how in ("closed", "reset")
                         or outcome.how == "refused" and self.stage.has_changed_since(mark))
            if not may_retry or time.monotonic() > end:
                return outcome
            if outcome.status:
                self.tally.count(self.tally.refused, outcome.status)
            with self.tally.lock:
                self.tally.sent_again += 1
            time.sleep(float(outcome.headers.get("retry-after", 0.05)))

    def once(self, request):
        """(outcome, whether the connection was an old one, which its server may have ended)"""
        was_kept = self.connection is not None
        if was_kept:
            self.connection.again(request)
        else:
            self.connection = Kept(self.stage.port, request, PATIENCE_SECONDS)
        outcome = self.connection.read(PATIENCE_SECONDS)
        if not outcome.status or outcome.headers.get("connection") == "close" or self.random.random() < 0.1:
            self.leave()
        return outcome, was_kept

    def leave(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None


# ---- clients that misbehave: each way returns the outcome, or None when it did not wait for one ----

def post_head(length, *fields, path="/v1/attention"):
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", f"Content-Length: {length}", *fields]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


class Raw:
    def __init__(self, data):
        self.bytes = data


class BadClient(threading.Thread):
    WAYS = {"left in a body": (), "drips a head": (), "drips a body": (), "half closed": (200,),
            "garbage": (400, 405, 408, 413, 414, 431, 501, 505), "gone while computing": (),
            "oversized": (400, 413, 414, 431), "wrong key": (401, 403, 429, 200), "broken gzip": (400,)}

    def __init__(self, number, stage, tally, seed, stop):
        super().__init__(daemon=True)
        self.stage, self.tally, self.stop = stage, tally, stop
        self.random = random.Random(f"{seed} bad client {number}")
        self.field = f"X-API-Key: {stage.key['worker']}"
        self.small = text(inputs={"query": [[1, 2]]})
        self.long = text(inputs={"query": packed([40000, 1], 1)}, options={"return": ["output"], "format": "base64"})
        self.torn = gzip.compress(self.small * 50, mtime=0)

    def run(self):
        while not self.stop.is_set():
            way, mark = self.random.choice(list(self.WAYS)), self.stage.mark()
            try:
                outcome = getattr(self, way.replace(" ", "_"))()
            except OSError:
                outcome = None  # cut while it was sending
            except Exception:  # noqa: BLE001: a client that falls silent must not look like a good run
                self.tally.accuse(f"bad client: {traceback.format_exc()}")
                return
            self.tally.count(self.tally.bad, way)
            if outcome is not None:
                self.judge(way, outcome, mark)
            time.sleep(self.random.random() / 5)

    def judge(self, way, outcome, mark):
        if outcome.status and outcome.status >= 400:
            self.tally.count(self.tally.refused, outcome.status)
        is_restart = self.stage.has_changed_since(mark)
        if outcome.status is None:
            if outcome.how in ("silent", "garbage") or outcome.how == "refused" and not is_restart:
                self.tally.accuse(f"bad client, {way}: {outcome.how}")
        elif outcome.status != 503 and outcome.status not in (*self.WAYS[way], 408):
            self.tally.accuse(f"bad client, {way}: status {outcome.status}: {outcome.body[:200]!r}")

    def send(self, data):
        return Exchange(self.stage.port, Raw(data), PATIENCE_SECONDS)

    def sent(self, data):
        return ask(self.stage.port, Raw(data), PATIENCE_SECONDS)

    def leave(self, exchange):
        """Closes, by a reset as often as not."""
        if exchange.socket is not None and self.random.random() < 0.5:
            exchange.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        exchange.close()

    def left_in_a_body(self):
        body = self.random.choice((self.small, self.long))
        self.leave(self.send(post_head(len(body), self.field) + body[:self.random.randrange(len(body))]))

    def drip(self, first, drop):
        """Sends on and on; the server has to end it."""
        exchange, end = self.send(first), time.monotonic() + PATIENCE_SECONDS
        try:
            while time.monotonic() < end:
                outcome = exchange.read(0.2)
                if outcome.how != "silent":
                    return outcome
                exchange.socket.sendall(drop)
            return outcome
        finally:
            exchange.close()

    def drips_a_head(self):
        return self.drip(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX: ", b"a")

    def drips_a_body(self):
        return self.drip(post_head(100000, self.field), b" ")

    def half_closed(self):
        exchange = self.send(post_head(len(self.small), self.field) + self.small)
        if exchange.socket is not None:
            exchange.socket.shutdown(socket.SHUT_WR)
        outcome = exchange.read(PATIENCE_SECONDS)
        exchange.close()
        return outcome

    def garbage(self):
        noise = self.random.randbytes(self.random.randrange(1, 3000))
        return self.sent(self.random.choice((b"", b"POST /v1/attention HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: localhost\r\n"))
                         + noise + b"\r\n\r\n")

    def gone_while_computing(self):
        exchange = self.send(post_head(len(self.long), self.field) + self.long)
        time.sleep(self.random.uniform(0.02, 0.2))
        self.leave(exchange)

    def oversized(self):
        shapes = [[1 << 40, 1 << 40], [1 << 62, 4], [1 << 31, 1], [10 ** 30, 1]]
        body = text(inputs={"query": {"shape": self.random.choice(shapes), "dtype": "float32", "base64": "AAAA"}})
        return self.sent(self.random.choice((
            post_head(10 ** 15, self.field), post_head(10 ** 30, self.field), post_head(-1, self.field),
            post_head(2, self.field, "X: " + "a" * 200000) + b"{}",
            post_head(2, self.field, path="/" + "a" * 100000) + b"{}",
            post_head(len(body), self.field) + body)))

    def wrong_key(self):
        keys = self.stage.key
        key = self.random.choice(("", "x" * 5000, keys["worker"][:-1], keys["watcher"], keys["few"], keys["spare"]))
        return self.sent(post_head(len(self.small), f"X-API-Key: {key}") + self.small)

    def broken_gzip(self):
        body = bytearray(self.torn[:self.random.randrange(20, len(self.torn))])
        body[self.random.randrange(10, len(body))] ^= 0xff
        return self.sent(post_head(len(body), self.field, "Content-Encoding: gzip") + bytes(body))


# ---- what is measured ----

class Life:
    """Samples of one server: memory in KiB by seconds since it was ready."""

    def __init__(self, number):
        self.number, self.begun, self.samples, self.largest = number, time.monotonic(), [], 0

    def sample(self, stage):
        resident = stage.resident_kib()
        self.samples.append((time.monotonic() - self.begun, resident))
        self.largest = max(self.largest, resident)

    def floors(self):
        """The minimum of every FLOOR_SECONDS: the memory between requests, without that of running ones."""
        least = {}
        for seconds, resident in self.samples:
            part = int(seconds // FLOOR_SECONDS)
            least[part] = min(least.get(part, resident), resident)
        return [((part + 0.5) * FLOOR_SECONDS / 60, resident) for part, resident in sorted(least.items())
                if part * FLOOR_SECONDS >= WARM_SECONDS]

    def slope(self):
        """KiB a minute by least squares; None after a life too short to tell."""
        floors = self.floors()
        if len(floors) * FLOOR_SECONDS < SHORTEST_SECONDS:
            return None
        return statistics.linear_regression(*zip(*floors)).slope


def live(stage, tally, seconds):
    """One life of the server: reloads and samples until its time is over, or it is gone."""
    life, reloads, next_reload = Life(stage.life), 0, time.monotonic() + RELOAD_SECONDS
    while time.monotonic() - life.begun < seconds:
        if stage.server.process.poll() is not None:
            break
        try:
            life.sample(stage)
        except (OSError, ProcessLookupError):
            break
        if time.monotonic() > next_reload:
            stage.reload(reloads)
            reloads, next_reload = reloads + 1, time.monotonic() + RELOAD_SECONDS
        time.sleep(SAMPLE_SECONDS)
    return life, reloads


def soak(options, stage, traffic, tally):
    stage.start()
    for request in traffic.at_first:
        outcome = ask(stage.port, request, PATIENCE_SECONDS)
        if outcome.status not in (200, 201):
            raise StartError(f"{request.name}: {outcome.word} {outcome.body!r}")
    for _, request in traffic.single:
        wrong = traffic.judge(request, ask(stage.port, request, PATIENCE_SECONDS))
        if wrong:
            tally.accuse(f"{request.name}, before the traffic: {wrong}")
    time.sleep(1)
    at_start, begun, stop = stage.descriptors(), time.monotonic(), threading.Event()
    clients = [Client(i, stage, traffic, tally, options.seed, stop) for i in range(options.clients)]
    clients += [BadClient(i, stage, tally, options.seed, stop) for i in range(BAD_CLIENTS)]
    for client in clients:
        client.start()
    lives, reloads, end = [], 0, begun + 60 * options.minutes
    while True:
        left = end - time.monotonic()
        life, its_reloads = live(stage, tally, left if left < 1.5 * options.life else options.life)
        lives.append(life)
        reloads += its_reloads
        if time.monotonic() >= end:
            break
        restart(stage, tally)
    minutes = (time.monotonic() - begun) / 60
    stop.set()
    for client in clients:
        client.join()
    at_end = settled_descriptors(stage, at_start)
    crash = stage.stop()
    if crash:
        tally.crashes.append(crash)
    return minutes, lives, reloads, (at_start, at_end)


def restart(stage, tally):
    crash = stage.stop()
    if crash:
        tally.crashes.append(crash)
    stage.start()


def settled_descriptors(stage, at_start):
    if stage.server.process.poll() is not None:
        return at_start  # it crashed, which is told elsewhere
    end = time.monotonic() + SETTLE_SECONDS
    while stage.descriptors() > at_start and time.monotonic() < end:
        time.sleep(0.2)
    return stage.descriptors()


def listed(counter):
    return ", ".join(f"{name} {counter[name]}" for name in sorted(counter, key=str)) or "none"


def report(minutes, lives, reloads, descriptors, tally):
    """Prints the table; returns what failed."""
    slopes = [life.slope() for life in lives]
    known = [slope for slope in slopes if slope is not None]
    middle = statistics.median(known) if known else None
    bound = SLOPE_BOUND if len(known) > 2 else FEW * SLOPE_BOUND
    total = sum(tally.asked.values())
    rows = [("minutes", f"{minutes:.1f}"), ("requests", f"{total} ({total / minutes / 60:.0f} a second)"),
            ("by kind", listed(tally.asked)), ("bad clients", f"{sum(tally.bad.values())}: {listed(tally.bad)}"),
            ("refusals by status", listed(tally.refused)), ("sent again", tally.sent_again),
            ("wrong answers", len(tally.wrong)), ("crashes", len(tally.crashes)), ("restarts", len(lives) - 1),
            ("reloads", reloads),
            ("memory slope, KiB a minute", "no life was long enough" if middle is None else
             f"median {middle:.0f} (bound {bound}); lives: "
             + ", ".join("-" if slope is None else f"{slope:.0f}" for slope in slopes)),
            ("descriptors, idle", f"{descriptors[0]} at the start, {descriptors[1]} at the end"),
            ("largest RSS, MiB", ", ".join(f"{life.largest / 1024:.0f}" for life in lives))]
    width = max(len(name) for name, _ in rows)
    print("\n".join(f"| {name:<{width}} | {value} |" for name, value in rows))
    failed = [f"CRASH {how}" for how in tally.crashes] + [f"WRONG {sentence}" for sentence in tally.wrong[:20]]
    if total == 0:
        failed.append("nothing was asked")
    if middle is not None and middle > bound:
        failed.append(f"memory grows by {middle:.0f} KiB a minute")
    if descriptors[1] > descriptors[0]:
        failed.append(f"{descriptors[1] - descriptors[0]} descriptors stay open")
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attnd", required=True)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--clients", type=int, default=2)
    parser.add_argument("--life", type=float, default=60, help="seconds until the server is started anew")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tally, stage = Tally(), Stage(options.attnd, folder)
        traffic = Traffic(options.seed, stage.key["worker"])
        try:
            failed = report(*soak(options, stage, traffic, tally), tally)
        finally:
            if stage.server is not None and stage.server.process.poll() is None:
                stage.server.process.kill()
    for what in failed:
        print(what)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
