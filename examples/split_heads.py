#!/usr/bin/env python3
"""
split_heads.py URL…: one request too large for one server, split by ranges of heads over several, and merged exactly.

Heads do not see each other: head h of the answer comes from head h of query, key and value alone (with grouped queries,
from its group's). So each server gets a range of heads of all three and gives back the same range of the output, to the
bit what one server would have sent. Standard library only; safetensors_client.py says how tensors travel.
"""

import concurrent.futures
import random
import sys
import time
import urllib.error

from safetensors_client import Floats, attention, tensor

ATTEMPTS = 5


def ranges(heads, parts):
    """[from, to) of each part, as even as can be."""
    edges = [heads * part // parts for part in range(parts + 1)]
    return [(begin, end) for begin, end in zip(edges, edges[1:]) if begin < end]


def heads_of(item, begin, end):
    """Heads [begin, end) of a tensor (1, heads, len, dim): they lie side by side, so nothing is copied."""
    heads = item.shape[1]
    size = len(memoryview(item.data).cast("B")) // heads
    return Floats(memoryview(item.data).cast("B")[begin * size:end * size], (1, end - begin, *item.shape[2:]))


def one_range(urls, first, inputs, begin, end, request):
    """A range from one server; from the next one when that is busy or gone: each would answer the same bytes."""
    part = {f"inputs.{name}": heads_of(item, begin, end) for name, item in inputs.items()}
    for attempt in range(ATTEMPTS):
        try:
            return attention(part, urls[(first + attempt) % len(urls)], **request)[0]
        except urllib.error.URLError:
            if attempt == ATTEMPTS - 1:
                raise
            time.sleep(0.2 * (attempt + 1))
    raise AssertionError("unreachable")


def split_attention(urls, inputs, **request):
    """Every output of the request by name, as bytes of float32 and its shape, merged along the heads."""
    heads = inputs["query"].shape[1]
    with concurrent.futures.ThreadPoolExecutor(len(urls)) as pool:
        calls = [pool.submit(one_range, urls, at, inputs, begin, end, request)
                 for at, (begin, end) in enumerate(ranges(heads, len(urls)))]
        parts = [call.result() for call in calls]
    merged = {}
    for name in parts[0]:
        shape = (1, heads, *parts[0][name].shape[2:])
        merged[name] = Floats(bytearray(b"".join(part[name].tobytes() for part in parts)), shape)
    return merged


def main():
    urls = sys.argv[1:] or ["http://127.0.0.1:8080"]
    heads, length, width = 6, 96, 32
    values = random.Random(1)
    inputs = {name: tensor([values.uniform(-1, 1) for _ in range(heads * length * width)], (1, heads, length, width))
              for name in ("query", "key", "value")}
    request = {"masks": {"causal": True}, "options": {"return": ["output", "attention"]}}
    merged = split_attention(urls, inputs, **request)
    whole, _ = attention({f"inputs.{name}": item for name, item in inputs.items()}, urls[0], **request)
    for name, item in sorted(whole.items()):
        same = item.tobytes() == merged[name].tobytes() and tuple(item.shape) == merged[name].shape
        print(f"{name} {tuple(item.shape)} from {len(ranges(heads, len(urls)))} parts:",
              "the same bytes as from one" if same else "DIFFERENT")


if __name__ == "__main__":
    main()
