"""
bodies.py: answers as values that can be compared, by their media type.

An example in the document has JSON and text as "value". Any other body is "value" in base64, and "x-coding" says so. The comparison of
pictures ignores the parts that depend on the fonts of a machine.
"""

import base64
import collections
import contextlib
import csv
import io
import json
import pathlib
import struct
import sys
import xml.etree.ElementTree
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

import tensor_file  # noqa: E402
from attnd import parse_json  # noqa: E402
from oip import read_answer  # noqa: E402

CODING = "x-coding"
PADDING = 64
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def read_inference(body):
    """JSON, padded with spaces, and the tensors behind it."""
    _, end = json.JSONDecoder().raw_decode(body.decode("latin-1"))
    return read_answer(body, -(-end // PADDING) * PADDING)


def read_tensors(body):
    tensors, metadata = tensor_file.read(body)
    about = {name: parse_json(text) if text[:1] in "{[" else text for name, text in metadata.items()}
    return {"tensors": {name: list(tensor) for name, tensor in tensors.items()}, **about}


def read_png(body):
    """The names of its chunks, each once."""
    if not body.startswith(PNG_SIGNATURE):
        raise ValueError("a PNG without its signature")
    names, at = {}, len(PNG_SIGNATURE)
    while at < len(body):
        length, name = struct.unpack_from(">I4s", body, at)
        (sum_given,) = struct.unpack_from(">I", body, at + 8 + length)
        if sum_given != zlib.crc32(body[at + 4:at + 8 + length]):
            raise ValueError(f"a chunk {name} with a wrong sum")
        names[name.decode()], at = True, at + 12 + length
    return names


def read_svg(body):
    """How many elements of each name."""
    return dict(collections.Counter(element.tag for element in xml.etree.ElementTree.fromstring(body).iter()))


def read_csv(body):
    return [[as_number(cell) for cell in row] for row in csv.reader(io.StringIO(body.decode(), newline=""))]


def as_number(text):
    with contextlib.suppress(ValueError):
        return float(text)
    return text


BINARY_READERS = {"application/octet-stream": read_inference, "application/vnd.attnd.safetensors": read_tensors,
                  "image/png": read_png}
TEXT_READERS = {"text/csv": read_csv, "image/svg+xml": read_svg}


def read_body(media, body):
    if media.endswith("json"):
        return parse_json(body)
    reader = {**BINARY_READERS, **TEXT_READERS}.get(media)
    return reader(body) if reader else body.decode()


def recorded(media, example):
    if CODING in example:
        return read_body(media, base64.b64decode(example["value"]))
    return read_body(media, example["value"].encode()) if media in TEXT_READERS else example["value"]


def record(media, body, example):
    if media in BINARY_READERS:
        example |= {"value": base64.b64encode(body).decode(), CODING: "base64"}
    else:
        example["value"] = parse_json(body) if media.endswith("json") else body.decode()
