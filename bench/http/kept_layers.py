#!/usr/bin/env python3
"""
kept_layers.py: what kept layers cost, on this machine, now: a request over what is computed in it, a start with many of
them, a list of many, and an upload beside what the disk writes by itself.

    bench/http/kept_layers.py [--attnd PROGRAM] [--directory DIR]
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
sys.path.insert(0, str(HERE.parents[1] / "tests" / "support"))

from attnd import Server  # noqa: E402

TENSORS = "application/vnd.attnd.safetensors"


def packed(numbers, dtype):
    if dtype == "BF16":
        return b"".join(struct.pack("<f", number)[2:] for number in numbers)
    return struct.pack(f"<{len(numbers)}{'e' if dtype == 'F16' else 'f'}", *numbers)


def tensor_file(tensors, request, dtype="F32"):
    """tensors: {name: shape}, of numbers that are neither 0 nor alike."""
    header, data = {"__metadata__": {"request": json.dumps(request)}}, []
    at, size = 0, 4 if dtype == "F32" else 2
    for name, shape in tensors.items():
        count = 1
        for dimension in shape:
            count *= dimension
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size * count]}
        row = packed([((7919 * i + len(name)) % 1009 - 504) / 8192 for i in range(min(count, 1 << 16))], dtype)
        data.append((row * (size * count // len(row) + 1))[:size * count])
        at += size * count
    text = json.dumps(header).encode()
    text += b" " * (-(8 + len(text)) % 64)
    return struct.pack("<Q", len(text)) + text + b"".join(data)


def layer(width, heads, dtype="F32", layout="out_in"):
    parts = ("query", "key", "value", "output")
    tensors = {f"weights.{part}.weight": [width, width] for part in parts}
    tensors.update({f"weights.{part}.bias": [width] for part in parts})
    return tensor_file(tensors, {"weights": {"layout": layout}, "options": {"num_heads": heads}}, dtype)


def timings(reply):
    return {name: float(ms) for name, ms in re.findall(r"(\w+);dur=([0-9.]+)", reply.headers["Server-Timing"])}


def a_request(program, folder):
    kinds = [("F32", "out_in"), ("F32", "in_out"), ("F16", "out_in"), ("BF16", "out_in")]
    with Server(program, environment={"ATTND_LAYERS": str(folder)}) as server:
        client, headers = server.client(), {"Content-Type": TENSORS, "Accept": TENSORS}
        for dtype, layout in kinds:
            client.send("PUT", f"/v1/layers/{dtype}-{layout}", layer(768, 12, dtype, layout), {"Content-Type": TENSORS})
        for tokens in (1, 16, 128, 512):
            body = tensor_file({"inputs.query": [tokens, 768]}, {"options": {"return": ["output"]}})
            spent = {kind: [] for kind in kinds}
            for _ in range(100):
                for dtype, layout in kinds:
                    reply = client.send("POST", f"/v1/layers/{dtype}-{layout}/attention", body, headers)
                    assert reply.status == 200, reply.body
                    spent[dtype, layout].append(timings(reply))
            for dtype, layout in kinds:
                tell_request(tokens, dtype, layout, spent[dtype, layout])


def tell_request(tokens, dtype, layout, spent):
    compute = statistics.median(one["compute"] for one in spent)
    parse = statistics.median(one["parse"] for one in spent)
    total = statistics.median(sum(one.values()) for one in spent)
    share = statistics.median(sum(one.values()) / one["compute"] for one in spent)
    print(f"request, d_model 768, 12 heads, {tokens} tokens, weights {dtype} {layout}: {total:.2f} ms, {parse:.2f} of "
          f"them reading, {compute:.2f} computing: {share:.3f} times")


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


def synchronised(path, content):
    """Milliseconds to write it and have it on the disk."""
    since = time.monotonic()
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return 1e3 * (time.monotonic() - since)


def an_upload(program, folder):
    content = layer(2560, 20)
    plain, put, spent = [], [], []
    with Server(program, environment={"ATTND_LAYERS": str(folder), "ATTND_MAX_BODY": "256M"}) as server:
        client = server.client()
        for i in range(12):
            before = synchronised(folder / f".plain{i}", content)
            since = time.monotonic()
            reply = client.send("PUT", "/v1/layers/big", content, {"Content-Type": TENSORS})
            assert reply.status == 201, reply.body
            put.append(1e3 * (time.monotonic() - since))
            spent.append(timings(reply))
            client.send("DELETE", "/v1/layers/big")
            plain.append((before + synchronised(folder / f".plain{i}", content)) / 2)
            os.unlink(folder / f".plain{i}")
    receive, write = (statistics.median(one[name] for one in spent) for name in ("receive", "write"))
    print(f"{len(content) / 1e6:.0f} MB: written and synchronised in {statistics.median(plain):.0f} ms, PUT in "
          f"{statistics.median(put):.0f} ms ({receive:.0f} receiving, {write:.0f} writing from then on): "
          f"{statistics.median(a / b for a, b in zip(plain, put)):.2f} of the disk's own speed")


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().split("\n", maxsplit=1)[0])
    parser.add_argument("--attnd", default=str(HERE.parents[1] / "build" / "release" / "attnd"), help="server to start")
    parser.add_argument("--directory", help="where to put layers: on the disk that matters")
    parser.add_argument("--only", choices=("requests", "many", "start", "upload"), help="one of the measurements")
    options = parser.parse_args()
    measures = {"requests": a_request, "many": many, "start": a_large_start, "upload": an_upload}
    for measure in [measures[options.only]] if options.only else measures.values():
        with tempfile.TemporaryDirectory(dir=options.directory) as folder:
            measure(options.attnd, pathlib.Path(folder))


if __name__ == "__main__":
    main()
