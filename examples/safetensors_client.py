#!/usr/bin/env python3
"""
safetensors_client.py [FILE]: tensors as bytes both ways, no decimal text: for anything large. Standard library only.

Arrays are NumPy's where NumPy is installed, else memoryviews of floats with the shape beside them. With a FILE in the
safetensors format, its tensors "query", "key" and "value" are attended over; else some of its own. ATTND_URL names
another server.
"""

import array
import json
import math
import os
import struct
import sys
import urllib.error
import urllib.request

try:
    import numpy
except ImportError:
    numpy = None

URL = os.environ.get("ATTND_URL", "http://127.0.0.1:8080")
MEDIA_TYPE = "application/vnd.attnd.safetensors"


class AttentionError(Exception):
    """The server's refusal: where in the request, and why."""


class Floats:
    """A tensor where there is no NumPy: float32, row-major, and its shape."""

    def __init__(self, data, shape):
        self.data, self.shape = memoryview(data).cast("B").cast("f"), tuple(shape)

    def tobytes(self):
        return self.data.tobytes()


def tensor(values, shape):
    """A tensor of float32 from a flat list of numbers."""
    if numpy is not None:
        return numpy.array(values, numpy.float32).reshape(shape)
    return Floats(array.array("f", values), shape)


def pack(tensors, **metadata):
    """A safetensors file: eight bytes of length, a header in JSON, then the bytes, one tensor after the other."""
    header, offset = {"__metadata__": metadata} if metadata else {}, 0
    for name, item in tensors.items():
        size = 4 * math.prod(item.shape)
        header[name] = {"dtype": "F32", "shape": list(item.shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 8) % 64)
    return b"".join([struct.pack("<Q", len(text)), text, *(item.tobytes() for item in tensors.values())])


def unpack(body):
    """(tensors by name, metadata); the tensors lie in the body, nothing is copied."""
    view = memoryview(body)
    (length,) = struct.unpack_from("<Q", view)
    header, data = json.loads(bytes(view[8:8 + length])), view[8 + length:]
    metadata, tensors = header.pop("__metadata__", {}), {}
    for name, entry in header.items():
        if entry["dtype"] != "F32":
            raise ValueError(f"{name} is {entry['dtype']}; this example reads F32")
        begin, end = entry["data_offsets"]
        part = data[begin:end]
        tensors[name] = (numpy.frombuffer(part, numpy.float32).reshape(entry["shape"]) if numpy is not None
                         else Floats(part, entry["shape"]))
    return tensors, metadata


def attention(tensors, url=URL, path="/v1/attention", **request):
    """POST to the path. Tensors by path ("inputs.query"), options and masks by name; tensors and metadata back."""
    body = pack(tensors, request=json.dumps(request))
    call = urllib.request.Request(url + path, body, {"Content-Type": MEDIA_TYPE, "Accept": MEDIA_TYPE})
    try:
        with urllib.request.urlopen(call) as reply:
            return unpack(reply.read())
    except urllib.error.HTTPError as refusal:
        if refusal.code in (502, 503):  # not the request's fault: the caller may try again
            raise
        problem = json.load(refusal)
        raise AttentionError(f"{problem.get('pointer', '')}: {problem['error']}") from None


def read_file(path):
    with open(path, "rb") as file:
        return unpack(file.read())[0]


def main():
    if len(sys.argv) > 1:
        inputs = read_file(sys.argv[1])
    else:
        inputs = {"query": tensor([0.3, 0.8, 1.2, 0.4, 1.2, 1.3], (3, 2)),
                  "key": tensor([0.8, 0.3, 0.4, 1.2, 1.3, 1.2], (3, 2)),
                  "value": tensor([0.2, 0.7, 0.9, 0.1, 0.4, 0.5], (3, 2))}
    answer, _ = attention({f"inputs.{name}": item for name, item in inputs.items()}, masks={"causal": True})
    for name, item in sorted(answer.items()):
        width = item.shape[-1]
        values = struct.unpack(f"<{math.prod(item.shape)}f", item.tobytes())
        print(name, tuple(item.shape))
        for start in range(0, len(values), width):
            print(" ".join(f"{value:.4f}" for value in values[start:start + width]))


if __name__ == "__main__":
    main()
