"""tensors.py: requests and answers as safetensors: NumPy arrays go out as they are, and those of an answer lie in its bytes."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

import numpy as np

DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "U8": "|u1", "BOOL": "|b1"}
NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items() if name != "BF16"}
WORDS = {"F64": "float64", "F32": "float32", "F16": "float16", "I64": "int64", "I32": "int32", "U8": "uint8", "BOOL": "bool"}
CODES = {**{word: code for code, word in WORDS.items()}, "bfloat16": "BF16"}


def sendable(array: np.ndarray) -> np.ndarray:
    """The array itself where the server reads its type and order, else a copy: other integers as int64."""
    if array.dtype.newbyteorder("<") not in NAMES:
        if array.dtype.kind not in "iu":
            raise TypeError(f"an array of {array.dtype} cannot be sent")
        array = array.astype("<i8")
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<"))


def plain(value: Any) -> Any:
    """What json cannot write by itself: NumPy's numbers, and arrays within lists."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be sent")


def _is_tensor(value: Any, path: str) -> bool:
    """Integers among the options are selections: lists of heads, queries, layers."""
    return isinstance(value, np.ndarray) and not (path.startswith("options.") and value.dtype.kind in "iu")


def packed(request: dict[str, Any]) -> list[Any]:
    """The request as buffers: length, header, then each array's own memory."""
    header: dict[str, Any] = {}
    buffers: list[Any] = []
    end = 0

    def rest(value: Any, path: str) -> Any:
        nonlocal end
        if isinstance(value, dict):
            left = {name: rest(inner, f"{path}.{name}" if path else name) for name, inner in value.items()}
            return {name: inner for name, inner in left.items() if inner is not None}
        if not _is_tensor(value, path):
            return value
        array = sendable(value)
        header[path] = {"dtype": NAMES[array.dtype], "shape": array.shape, "data_offsets": [end, end + array.nbytes]}
        end += array.nbytes
        if array.nbytes:
            buffers.append(memoryview(array.reshape(-1).view(np.uint8)))
        return None

    header["__metadata__"] = {"request": json.dumps(rest(request, ""), default=plain)}
    text = json.dumps(header).encode()
    return [struct.pack("<Q", len(text)) + text, *buffers]


def written(request: Any) -> bytes:
    """The request as JSON, for what reads JSON alone: arrays in base64, but those of integers, such as ids, as lists."""
    def tensor(value: Any) -> Any:
        if not isinstance(value, np.ndarray) or value.dtype.kind in "iu":
            return plain(value)
        array = sendable(value)
        return {"shape": array.shape, "dtype": WORDS[NAMES[array.dtype]], "base64": base64.b64encode(array).decode()}
    return json.dumps(request, default=tensor).encode()


def read_json(text: bytes) -> Any:
    """An answer in JSON, with its base64 as arrays."""
    def tensor(item: dict[str, Any]) -> Any:
        if "base64" not in item or item.get("dtype") not in CODES:
            return item
        return _array(bytearray(base64.b64decode(item["base64"])), CODES[item["dtype"]], item["shape"])
    return json.loads(text, object_hook=tensor)


def _array(data: Any, code: str, shape: Any) -> np.ndarray:
    array = np.frombuffer(data, DTYPES[code]).reshape(shape)  # NumPy has no bfloat16: the upper half of a float32
    return (array.astype("<u4") << 16).view("<f4") if code == "BF16" else array


def unpacked(body: bytearray) -> tuple[dict[str, Any], dict[str, Any]]:
    """Outputs by name, nested where a name has a dot, and what the answer says beside them."""
    view = memoryview(body)
    (size,) = struct.unpack_from("<Q", view)
    header, data = json.loads(bytes(view[8:8 + size])), view[8 + size:]
    facts = {name: json.loads(text) for name, text in header.pop("__metadata__", {}).items()}
    outputs: dict[str, Any] = {}
    for name, entry in header.items():
        *folders, last = name.split(".")
        place = outputs
        for folder in folders:
            place = place.setdefault(folder, {})
        begin, end = entry["data_offsets"]
        place[last] = _array(data[begin:end], entry["dtype"], entry["shape"])
    return outputs, facts
