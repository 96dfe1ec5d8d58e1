#!/usr/bin/env python3
"""
kept_layers.py: what kept layers cost, on this machine, now: a request over what is computed in it, a start with many of
them, a list of many, and an upload beside what the disk writes by itself.

    bench/kept_layers.py [--attnd PROGRAM] [--directory DIR]
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import struct
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "support"))

from attnd import Server  # noqa: E402

TENSORS = "application/vnd.attnd.safetensors"


def tensor_file(tensors, request):
    """tensors: {name: shape}, of float32 that are neither 0 nor alike."""
    header, data = {"__metadata__": {"request": json.dumps(request)}}, []
    at = 0
    for name, shape in tensors.items():
        count = 1
        for dimension in shape:
            count *= dimension
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + 4 * count]}
        row = [((7919 * i + len(name)) % 1009 - 504) / 8192 for i in range(min(count, 1 << 16))]
        packed = struct.pack(f"<{len(row)}f", *row)
        data.append((packed * (4 * count // len(packed) + 1))[:4 * count])
        at += 4 * count
    text = json.dumps(header).encode()
    text += b" " * (-(8 + len(text)) % 64)
    return struct.pack("<Q", len(text)) + text + b"".join(data)


def layer(width, heads):
    parts = ("query", "key", "value", "output")
    tensors = {f"weights.{part}.weight": [width, width] for part in parts}
    tensors.update({f"weights.{part}.bias": [width] for part in parts})
    return tensor_file(tensors, {"weights": {"layout": "out_in"}, "options": {"num_heads": heads}})


def timings(reply):
    return {name: float(ms) for name, ms in re.findall(r"(\w+);dur=([0-9.]+)", reply.headers["Server-Timing"])}


def a_request(program, folder):
    with Server(program, environment={"ATTND_LAYERS": str(folder)}) as server:
        client, headers = server.client(), {"Content-Type": TENSORS, "Accept": TENSORS}
        client.send("PUT", "/v1/layers/a", layer(768, 12), {"Content-Type": TENSORS})
        body = tensor_file({"inputs.query": [128, 768]}, {"options": {"return": ["output"]}})
        shares, totals, computes = [], [], []
        for _ in range(200):
            reply = client.send("POST", "/v1/layers/a/attention", body, headers)
            assert reply.status == 200, reply.body
            spent = timings(reply)
            total = sum(spent.values())
            shares.append(total / spent["compute"])
            totals.append(total)
            computes.append(spent["compute"])
    print(f"request, d_model 768, 12 heads, 128 tokens: {statistics.median(totals):.2f} ms, "
          f"{statistics.median(computes):.2f} of them computing: {statistics.median(shares):.3f} times")


def many(program, folder):
    content = layer(16, 2)
    for i in range(1000):
        (folder / f"l{i:05}.safetensors").write_bytes(content)
    print(f"start with 1,000 layers: {started(program, folder, 'lazily'):.0f} ms; looked into at once: "
          f"{started(program, folder, 'at-start'):.0f} ms")
    for i in range(1000, 10000):
        (folder / f"l{i:05}.safetensors").write_bytes(content)
    with Server(program, environment={"ATTND_LAYERS": str(folder)}) as server:
        for what in ("first", "second"):
            client, after, count, since = server.client(), "", 0, time.monotonic()
            while after is not None:
                page = client.get("/v1/layers?limit=1000" + (f"&after={after}" if after else "")).json()
                count, after = count + len(page["layers"]), page["next"]
            print(f"list of {count} layers, {what} time: {1e3 * (time.monotonic() - since):.0f} ms")


def started(program, folder, verify):
    """Milliseconds until the log says that it listens."""
    found = []
    for _ in range(5):
        environment = {**os.environ, "ATTND_LISTEN": "127.0.0.1:0", "ATTND_LAYERS": str(folder),
                       "ATTND_LAYERS_VERIFY": verify, "ATTND_DRAIN_DELAY": "0"}
        since = time.monotonic()
        with subprocess.Popen([program], env=environment, stderr=subprocess.PIPE, text=True) as process:
            for line in process.stderr:
                if "listening" in line:
                    break
            found.append(1e3 * (time.monotonic() - since))
            process.terminate()
    return statistics.median(found)


def a_large_start(program, folder):
    """Files with holes: 10 GB that are on no disk."""
    shape = [16384, 16384]
    header = {f"weights.{part}.weight": {"dtype": "F32", "shape": shape, "data_offsets": [i << 30, (i + 1) << 30]}
              for i, part in enumerate(("query", "key", "value"))}
    header["__metadata__"] = {"request": '{"options": {"num_heads": 16}}'}
    text = json.dumps(header).encode()
    for i in range(4):
        with open(folder / f"big{i}.safetensors", "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            file.truncate(8 + len(text) + (3 << 30))
    print(f"start with 4 layers of 12 GiB in all, looked into at once: {started(program, folder, 'at-start'):.0f} ms")


def an_upload(program, folder):
    content = layer(2560, 20)
    plain, put = [], []
    with Server(program, environment={"ATTND_LAYERS": str(folder), "ATTND_MAX_BODY": "256M"}) as server:
        client = server.client()
        for i in range(5):
            since = time.monotonic()
            with open(folder / f".plain{i}", "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            plain.append(time.monotonic() - since)
            since = time.monotonic()
            reply = client.send("PUT", f"/v1/layers/big{i}", content, {"Content-Type": TENSORS})
            assert reply.status == 201, reply.body
            put.append(time.monotonic() - since)
    size = len(content) / 1e6
    print(f"{size:.0f} MB: written and synchronised in {1e3 * statistics.median(plain):.0f} ms, PUT in "
          f"{1e3 * statistics.median(put):.0f} ms: "
          f"{statistics.median(a / b for a, b in zip(plain, put)):.2f} of the disk's own speed")


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().split("\n", maxsplit=1)[0])
    parser.add_argument("--attnd", default=str(HERE.parent / "build" / "release" / "attnd"), help="server to start")
    parser.add_argument("--directory", help="where to put layers: on the disk that matters")
    options = parser.parse_args()
    for measure in (a_request, many, a_large_start, an_upload):
        with tempfile.TemporaryDirectory(dir=options.directory) as folder:
            measure(options.attnd, pathlib.Path(folder))


if __name__ == "__main__":
    main()
