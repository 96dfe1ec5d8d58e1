"""tensors.py: small tensors in plain Python: shapes, their JSON forms, comparison with a tolerance."""

import base64
import itertools
import math
import struct

WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf, None: -math.inf}
PACKED = {"float64": "d", "float32": "f", "float16": "e", "int64": "q", "int32": "i", "uint8": "B", "bool": "?"}
BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4, "uint8": 1, "bool": 1}


class Tensor:
    """Row-major numbers with a shape. data is a flat list and is never changed in place."""

    def __init__(self, shape, data, dtype="float32"):
        self.shape, self.data, self.dtype = tuple(shape), list(data), dtype
        if math.prod(self.shape) != len(self.data):
            raise ValueError(f"{len(self.data)} elements do not fill {self.shape}")

    @staticmethod
    def filled(shape, value, dtype="float32"):
        return Tensor(shape, [value] * math.prod(shape), dtype)

    @staticmethod
    def from_json(value):
        """From any of the three forms, or from a test vector; null reads as -infinity, the masked score."""
        if not isinstance(value, dict):
            return from_nested(value)
        dtype = value.get("dtype", "float32")
        if "base64" in value:
            return Tensor(value["shape"], unpack(base64.b64decode(value["base64"], validate=True), dtype), dtype)
        return Tensor(value["shape"], [number(item) for item in value["data"]], dtype)

    def nested(self):
        return self._nested(0, 0)[0]

    def _nested(self, axis, at):
        if axis == len(self.shape):
            return written(self.data[at]), at + 1
        items = []
        for _ in range(self.shape[axis]):
            item, at = self._nested(axis + 1, at)
            items.append(item)
        return items, at

    def flat(self):
        return {"shape": list(self.shape), "data": [written(item) for item in self.data]}

    def packed(self):
        return {"shape": list(self.shape), "dtype": self.dtype,
                "base64": base64.b64encode(pack(self.data, self.dtype)).decode()}

    def reshape(self, *shape):
        return Tensor(shape, self.data, self.dtype)

    def strides(self):
        return [math.prod(self.shape[axis + 1:]) for axis in range(len(self.shape))]

    def transpose(self, *axes):
        strides = self.strides()
        shape = [self.shape[axis] for axis in axes]
        moved = [strides[axis] for axis in axes]
        indices = itertools.product(*(range(size) for size in shape))
        return Tensor(shape, [self.data[sum(map(int.__mul__, index, moved))] for index in indices], self.dtype)

    def rows(self, length):
        """The data in runs of that length."""
        return [self.data[at:at + length] for at in range(0, len(self.data), length)]

    def concat(self, other, axis):
        """Self, then other, along axis."""
        mine = self.rows(math.prod(self.shape[axis:]))
        theirs = other.rows(math.prod(other.shape[axis:]))
        shape = list(self.shape)
        shape[axis] += other.shape[axis]
        return Tensor(shape, itertools.chain.from_iterable(a + b for a, b in zip(mine, theirs)), self.dtype)

    def pad_last(self, size, value):
        """Widened to size along the last axis."""
        more = [value] * (size - self.shape[-1])
        return Tensor((*self.shape[:-1], size),
                      itertools.chain.from_iterable(row + more for row in self.rows(self.shape[-1])), self.dtype)

    def slice_first(self, start, stop):
        size = math.prod(self.shape[1:])
        return Tensor((stop - start, *self.shape[1:]), self.data[start * size:stop * size], self.dtype)

    def map(self, function):
        return Tensor(self.shape, map(function, self.data), self.dtype)


def number(item):
    return WORDS[item] if item is None or isinstance(item, str) else item


def written(item):
    """As JSON can write it."""
    if isinstance(item, float) and not math.isfinite(item):
        return "NaN" if math.isnan(item) else "Infinity" if item > 0 else "-Infinity"
    return item


def from_nested(value):
    shape, items = [], [value]
    while items and isinstance(items[0], list):
        shape.append(len(items[0]))
        if any(not isinstance(item, list) or len(item) != shape[-1] for item in items):
            raise ValueError("a ragged array")
        items = [inner for item in items for inner in item]
    if not items:
        shape = shape_of_empty(value)
    return Tensor(shape, [number(item) for item in items])


def shape_of_empty(value):
    shape = []
    while isinstance(value, list):
        shape.append(len(value))
        value = value[0] if value else None
    return shape


def pack(data, dtype):
    if dtype == "bfloat16":
        return b"".join(to_bfloat16(item) for item in data)
    return struct.pack(f"<{len(data)}{PACKED[dtype]}", *data)


def to_bfloat16(value):
    """The upper half of the float32, rounded to the nearest, ties to even."""
    bits, = struct.unpack("<I", struct.pack("<f", value))
    if math.isfinite(value):
        bits += 0x7FFF + (bits >> 16 & 1)
    return struct.pack("<H", bits >> 16)


def unpack(text, dtype):
    count = len(text) // BYTES[dtype]
    if dtype == "bfloat16":
        return [struct.unpack("<f", b"\0\0" + text[at:at + 2])[0] for at in range(0, len(text), 2)]
    return list(struct.unpack(f"<{count}{PACKED[dtype]}", text))


def worst_excess(got, wanted, rtol, atol):
    """
    None when got equals wanted everywhere within atol + rtol |wanted|, else a sentence about the worst place. NaN
    equals NaN only, and an infinity only itself.
    """
    if got.shape != wanted.shape:
        return f"shape {list(got.shape)}, expected {list(wanted.shape)}"
    worst, place = 0.0, None
    for at, (mine, theirs) in enumerate(zip(got.data, wanted.data)):
        excess = excess_of(float(mine), float(theirs), rtol, atol)
        if excess > worst:
            worst, place = excess, at
    if place is None:
        return None
    return f"element {place} of {len(got.data)} is {got.data[place]!r}, expected {wanted.data[place]!r}"


def excess_of(mine, theirs, rtol, atol):
    if math.isnan(mine) or math.isnan(theirs):
        return 0.0 if math.isnan(mine) and math.isnan(theirs) else math.inf
    if math.isinf(mine) or math.isinf(theirs):
        return 0.0 if mine == theirs else math.inf
    return max(0.0, abs(mine - theirs) - atol - rtol * abs(theirs))
