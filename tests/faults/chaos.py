#!/usr/bin/env python3
"""
chaos.py: a network between clients and server that cuts, delays, splits and stalls; every 2xx that arrives whole must be
the right answer, and afterwards the server is as before.

--seconds N, --seed N. What a connection goes through is drawn for each anew.
"""

import argparse
import asyncio
import collections
import os
import pathlib
import random
import socket
import struct
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))

from asked import all_requests, at_first  # noqa: E402
from attnd import Server  # noqa: E402
from exchange import ask  # noqa: E402

WAYS = ["clean", "late", "sliced", "narrow", "reset request", "reset answer", "cut request", "cut answer", "half closed",
        "stalled"]
CLIENTS, PATIENCE_SECONDS, SETTLE_SECONDS = 6, 4, 10
SLICED_MAX = 2000  # bytes of what comes at once
# They change what others are answered.
LEFT_OUT = ("put again", "put tensors", "put large", "delete", "load", "unload", "models", "list", "statistics",
            "index", "step", "caches", "forget")


class Proxy:
    """One way for each connection; both directions of it in one thread's event loop."""

    def __init__(self, upstream, seed):
        self.upstream, self.random, self.seen = upstream, random.Random(seed), collections.Counter()
        self.loop, self.listening = asyncio.new_event_loop(), threading.Event()
        self.tasks = set()  # the loop itself holds on to none
        threading.Thread(target=self.run, daemon=True).start()
        self.listening.wait()

    def run(self):
        asyncio.set_event_loop(self.loop)
        server = self.loop.run_until_complete(asyncio.start_server(self.connect, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        self.listening.set()
        self.loop.run_forever()

    async def connect(self, reader, writer):
        self.tasks.add(asyncio.current_task())
        try:
            await self.connected(reader, writer)
        finally:
            self.tasks.discard(asyncio.current_task())

    async def connected(self, reader, writer):
        way = self.random.choice(WAYS)
        self.seen[way] += 1
        try:
            to_server = await asyncio.open_connection("127.0.0.1", self.upstream)
        except OSError:
            writer.close()
            return
        await asyncio.gather(self.carry(reader, to_server[1], writer, way, "request"),
                             self.carry(to_server[0], writer, to_server[1], way, "answer"), return_exceptions=True)
        writer.close()
        to_server[1].transport.abort()

    async def carry(self, reader, writer, back, way, side):
        """Copies bytes from reader to writer with the faults of the connection."""
        left = self.random.randrange(1, self.random.choice((40, 300, 5000)))
        try:
            while data := await reader.read(65536):
                if way == "late":
                    await asyncio.sleep(self.random.random() / 5)
                if way in (f"reset {side}", f"cut {side}") or (way == "stalled" and side == "request"):
                    writer.write(data[:left])
                    left -= len(data[:left])
                    if left == 0:
                        await self.end(writer, back, way)
                        return
                elif way in ("sliced", "narrow"):
                    await self.trickle(writer, data, way)
                else:
                    writer.write(data)
                await writer.drain()
                if way == "half closed" and side == "request" and b"\r\n\r\n" in data:
                    writer.write_eof()
                    return
            writer.write_eof()
        except OSError:
            pass

    async def trickle(self, writer, data, way):
        """A client that checks for the end after each slice would need hours for a large answer."""
        whole = len(data)
        while data:
            size = self.random.randrange(1, 8) if way == "sliced" else 3000
            if way == "sliced" and whole - len(data) > SLICED_MAX:
                size = len(data)
            writer.write(data[:size])
            data = data[size:]
            await writer.drain()
            await asyncio.sleep(0 if way == "sliced" else 0.01)

    async def end(self, writer, back, way):
        if way == "stalled":
            await asyncio.sleep(2 * PATIENCE_SECONDS)
        for end in (writer, back):
            sock = end.get_extra_info("socket")
            if way.startswith("reset") and sock is not None:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            end.transport.abort()


class Client(threading.Thread):
    def __init__(self, port, requests, references, end, seed):
        super().__init__(daemon=True)
        self.port, self.requests, self.references, self.end = port, requests, references, end
        self.random, self.seen, self.wrong = random.Random(seed), collections.Counter(), []

    def run(self):
        while time.monotonic() < self.end:
            request = self.random.choice(self.requests)
            outcome = ask(self.port, request, PATIENCE_SECONDS)
            self.seen[outcome.word] += 1
            if outcome.status and outcome.content != self.references[request.name].content and outcome.status < 300:
                self.wrong.append(f"{request.name}: a wrong answer with status {outcome.status}")
            if outcome.how == "garbage" or (outcome.status or 0) >= 500 and outcome.status not in (503, 504):
                self.wrong.append(f"{request.name}: {outcome.word}")


def descriptors(server):
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


def run(options, server):
    port = int(server.url.rsplit(":", 1)[1])
    for first in at_first():
        ask(port, first)
    requests = [request for request in all_requests() if request.name not in LEFT_OUT]
    references = {request.name: ask(port, request) for request in requests}
    time.sleep(0.2)
    base = descriptors(server)
    proxy = Proxy(port, options.seed)
    end = time.monotonic() + options.seconds
    clients = [Client(proxy.port, requests, references, end, f"{options.seed} {i}") for i in range(CLIENTS)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    seen, wrong = collections.Counter(), []
    for client in clients:
        seen += client.seen
        wrong += client.wrong
    for request in requests:
        if ask(port, request).content != references[request.name].content:
            wrong.append(f"{request.name}: another answer than before, once the network is quiet")
    quiet = time.monotonic() + SETTLE_SECONDS + 2 * PATIENCE_SECONDS
    while descriptors(server) > base and time.monotonic() < quiet:
        time.sleep(0.1)
    if descriptors(server) > base:
        wrong.append(f"{descriptors(server) - base} descriptors more than before")
    print(f"chaos: {sum(seen.values())} requests, {dict(proxy.seen)}: {dict(seen)}; {len(wrong)} wrong")
    return wrong, seen


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attnd", required=True)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with Server(options.attnd) as server:
        wrong, seen = run(options, server)
    for what in wrong[:20]:
        print(f"WRONG {what}")
    sys.exit(1 if wrong or seen["200"] == 0 else 0)


if __name__ == "__main__":
    main()
