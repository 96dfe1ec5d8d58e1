"""tensor_file.py: reads and writes safetensors files by their specification, with only Python's standard library."""

import json
import struct

BITS = {"F64": 64, "F32": 32, "F16": 16, "BF16": 16, "I64": 64, "I32": 32, "U8": 8, "BOOL": 8}
CODES = {"F64": "d", "F32": "f", "F16": "e", "I64": "q", "I32": "i", "U8": "B", "BOOL": "?"}


def write(tensors, metadata=None):
    """tensors: {name: (dtype, shape, flat list of numbers)}."""
    header, data = {"__metadata__": metadata} if metadata else {}, b""
    for name, (dtype, shape, numbers) in tensors.items():
        start = len(data)
        data += packed(dtype, numbers)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [start, len(data)]}
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def packed(dtype, numbers):
    if dtype == "BF16":  # the upper halves of float32
        return b"".join(struct.pack("<f", number)[2:] for number in numbers)
    return struct.pack(f"<{len(numbers)}{CODES[dtype]}", *numbers)


def read(body):
    """The tensors, as in write, and the metadata; raises ValueError when body breaks a rule of the format."""
    (length,) = struct.unpack("<Q", body[:8])
    header = json.loads(body[8 : 8 + length])
    data, metadata, tensors, covered = body[8 + length :], header.pop("__metadata__", {}), {}, 0
    for name, info in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        start, end = info["data_offsets"]
        count = 1
        for dimension in info["shape"]:
            count *= dimension
        if start != covered or (end - start) * 8 != count * BITS[info["dtype"]]:
            raise ValueError(f"{name}: offsets {start}, {end} after {covered} for {info['shape']} {info['dtype']}")
        covered = end
        tensors[name] = (info["dtype"], info["shape"], numbers_of(info["dtype"], count, data[start:end]))
    if covered != len(data):
        raise ValueError(f"{len(data) - covered} bytes behind the last tensor")
    return tensors, metadata


def numbers_of(dtype, count, data):
    if dtype == "BF16":  # the upper half of a float32
        return [struct.unpack("<f", b"\0\0" + data[i : i + 2])[0] for i in range(0, 2 * count, 2)]
    return list(struct.unpack(f"<{count}{CODES[dtype]}", data))
