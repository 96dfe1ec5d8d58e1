"""
bodies.py: answers as values that can be compared, by their media type.

An example in the document holds JSON and text as "value", and what is neither as base64 in "x-base64".
"""

import base64
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

from attnd import parse_json  # noqa: E402
from oip import read_answer  # noqa: E402

BYTES = "x-base64"
PADDING = 64


def read_inference(body):
    """JSON, padded with spaces, and the tensors behind it."""
    _, end = json.JSONDecoder().raw_decode(body.decode("latin-1"))
    return read_answer(body, -(-end // PADDING) * PADDING)


BINARY_READERS = {"application/octet-stream": read_inference}


def read_body(media, body):
    if media.endswith("json"):
        return parse_json(body)
    return BINARY_READERS[media](body) if media in BINARY_READERS else body.decode()


def recorded(media, example):
    return read_body(media, base64.b64decode(example[BYTES])) if BYTES in example else example["value"]


def record(media, body, example):
    if media in BINARY_READERS:
        example[BYTES] = base64.b64encode(body).decode()
    else:
        example["value"] = read_body(media, body)
