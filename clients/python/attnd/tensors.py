"""tensors.py: requests and answers as safetensors: NumPy arrays go out as they are, and those of an answer lie in its bytes."""

from __future__ import annotations

import base64
import json
import math
import struct
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: What JSON calls them.
WORDS = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64", "int32": "I32", "uint8": "U8", "bool": "BOOL"}
DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "U8": "|u1", "BOOL": "|b1"}
NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items() if name != "BF16"}


def sendable(array: NDArray[Any]) -> NDArray[Any]:
    """The array itself where the server reads its type and order, else a copy: other integers as int64."""
    if array.dtype.newbyteorder("<") not in NAMES:
        if array.dtype.kind not in "iu":
            raise TypeError(f"an array of {array.dtype} cannot be sent")
        array = array.astype("<i8")
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<"))


def array_of(value: Any) -> NDArray[Any] | None:
    """An array of NumPy, torch, jax, pandas, xarray or any other that NumPy can read; None for all else."""
    return np.asarray(value) if hasattr(value, "__array__") else None


def plain(value: Any) -> Any:
    """What json cannot write by itself: arrays, ranges, and mappings that are no dict."""
    array = array_of(value)
    if array is not None:
        return array.tolist()
    if isinstance(value, (range, Mapping)):
        return list(value) if isinstance(value, range) else dict(value)
    raise TypeError(f"{type(value).__name__} cannot be sent")


def _spelt(value: Any) -> Any:
    """With the words that the server reads for NaN and infinities."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {name: _spelt(inner) for name, inner in value.items()}
    return [_spelt(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def _text(request: Any, default: Callable[[Any], Any]) -> str:
    try:
        return json.dumps(request, default=default, allow_nan=False)
    except ValueError:  # JSON has no such number
        return json.dumps(_spelt(request), default=lambda value: _spelt(default(value)))


def _is_list(array: NDArray[Any], path: str = "") -> bool:
    """Numbers, words, and integers: ids, those among the options, and in one dimension among the masks (window)."""
    is_index = array.dtype.kind in "iu" and (path in ("inputs.ids", "inputs.target_ids") or path.startswith("options.")
                                             or (path.startswith("masks.") and array.ndim == 1))
    return array.ndim == 0 or array.dtype.kind in "USO" or is_index


def packed(request: dict[str, Any]) -> list[Any]:
    """The request as buffers: length, header, then each array's own memory."""
    header: dict[str, Any] = {}
    buffers: list[Any] = []
    end = 0

    def rest(value: Any, path: str) -> Any:
        nonlocal end
        if isinstance(value, Mapping):
            left = {name: rest(inner, f"{path}.{name}" if path else name) for name, inner in value.items()}
            return {name: inner for name, inner in left.items() if inner is not None}
        array = array_of(value)
        if array is None or _is_list(array, path):
            return value
        array = sendable(array)
        header[path] = {"dtype": NAMES[array.dtype], "shape": array.shape, "data_offsets": [end, end + array.nbytes]}
        end += array.nbytes
        if array.nbytes:
            buffers.append(array.reshape(-1).view(np.uint8).data)
        return None

    header["__metadata__"] = {"request": _text(rest(request, ""), plain)}
    text = json.dumps(header).encode()
    return [struct.pack("<Q", len(text)) + text, *buffers]


def written(request: Any) -> bytes:
    """The request as JSON, for what takes no tensors."""
    return _text(request, plain).encode()


def _array(data: Any, code: str, shape: Any) -> NDArray[Any]:
    array = np.frombuffer(data, DTYPES[code]).reshape(shape)  # NumPy has no bfloat16: the upper half of a float32
    return (array.astype("<u4") << 16).view("<f4") if code == "BF16" else array


def unpacked(body: bytearray) -> tuple[dict[str, Any], dict[str, Any]]:
    """Outputs by name, nested where a name has a dot, and what the answer says beside them."""
    view = memoryview(body)
    (size,) = struct.unpack_from("<Q", view)
    header, data = json.loads(bytes(view[8:8 + size])), view[8 + size:]
    facts = {name: json.loads(text) for name, text in header.pop("__metadata__", {}).items()}
    outputs: dict[str, Any] = {}

    def place(name: str, value: Any) -> None:
        *folders, last = name.split(".")
        folder = outputs
        for one in folders:
            folder = folder.setdefault(one, {})
        folder[last] = value

    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        place(name, _array(data[begin:end], entry["dtype"], entry["shape"]))
    for name in [name for name in facts if "." in name]:  # words, which are no tensor: "predictions.tokens"
        place(name, facts.pop(name))
    return outputs, facts


def decoded(content: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The same of an answer in JSON whose tensors are in base64."""

    def arrays(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if "base64" in value:
            return _array(bytearray(base64.b64decode(value["base64"])), WORDS[value["dtype"]], value["shape"])
        return {name: arrays(inner) for name, inner in value.items()}

    outputs = arrays(content.pop("outputs", {}))
    return {**outputs, **arrays({"gradients": content.pop("gradients")} if "gradients" in content else {})}, content
