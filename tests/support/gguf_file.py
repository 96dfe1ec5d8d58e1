"""
gguf_file.py: writes GGUF files by their specification, and tells what the numbers of quantised blocks are, with only Python's
standard library. Blocks are drawn at random, so that every bit of them counts.
"""

import struct

ALIGNMENT = 32
# name: (code, numbers of a block, bytes of a block)
TYPES = {"F32": (0, 1, 4), "F16": (1, 1, 2), "BF16": (30, 1, 2), "Q8_0": (8, 32, 34), "Q4_0": (2, 32, 18), "Q4_K": (12, 256, 144),
         "Q5_K": (13, 256, 176), "Q6_K": (14, 256, 210)}
U32, I32, F32, BOOL, TEXT, LIST = 4, 5, 6, 7, 8, 9


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def value_of(value):
    """A value with its type in front, which follows from Python's."""
    if isinstance(value, bool):
        return struct.pack("<IB", BOOL, value)
    if isinstance(value, int):
        return struct.pack("<II", U32, value)
    if isinstance(value, float):
        return struct.pack("<If", F32, value)
    if isinstance(value, str):
        return struct.pack("<I", TEXT) + text(value)
    items = {str: (TEXT, lambda item: text(item)), float: (F32, lambda item: struct.pack("<f", item)),
             int: (I32, lambda item: struct.pack("<i", item))}[type(value[0])]
    return struct.pack("<IIQ", LIST, items[0], len(value)) + b"".join(map(items[1], value))


def write(metadata, tensors):
    """tensors: {name: (type, shape row-major, data)}."""
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(metadata))
    for key, value in metadata.items():
        head += text(key) + value_of(value)
    body = b""
    for name, (kind, shape, data) in tensors.items():
        body += bytes(-len(body) % ALIGNMENT)
        head += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), TYPES[kind][0], len(body))
        body += data
    return head + bytes(-len(head) % ALIGNMENT) + body


# ---- numbers ----


def half(block, at):
    return struct.unpack_from("<e", block, at)[0]


def scales_of(packed):
    """The scales and minima of the eight parts of a block, 6 bits each."""
    return [(packed[i] & 63, packed[i + 4] & 63) if i < 4 else
            (packed[i + 4] & 15 | packed[i - 4] >> 6 << 4, packed[i + 4] >> 4 | packed[i] >> 6 << 4) for i in range(8)]


def q8_0(block):
    return [half(block, 0) * q for q in struct.unpack_from("<32b", block, 2)]


def q4_0(block):
    return [half(block, 0) * ((byte >> shift & 15) - 8) for shift in (0, 4) for byte in block[2:18]]


def by_scales(block, quant):
    d, least = half(block, 0), half(block, 2)
    return [d * scale * quant(part, i) - least * low for part, (scale, low) in enumerate(scales_of(block[4:16])) for i in range(32)]


def q4_k(block):
    return by_scales(block, lambda part, i: block[16 + part // 2 * 32 + i] >> part % 2 * 4 & 15)


def q5_k(block):
    return by_scales(block, lambda part, i: block[48 + part // 2 * 32 + i] >> part % 2 * 4 & 15 | (block[16 + i] >> part & 1) << 4)


def q6_k(block):
    numbers = []
    for n in range(256):
        side, rest = divmod(n, 128)
        quarter, i = divmod(rest, 32)
        low = block[side * 64 + quarter % 2 * 32 + i] >> quarter // 2 * 4 & 15
        high = block[128 + side * 32 + i] >> 2 * quarter & 3
        (scale,) = struct.unpack_from("<b", block, 192 + n // 16)
        numbers.append(half(block, 208) * scale * ((low | high << 4) - 32))
    return numbers


def draw_block(kind, source, spread):
    """A block of random bits, whose scales make numbers of about that size."""
    def scale(value):
        return struct.pack("<e", value)

    block = source.randbytes(TYPES[kind][2])
    if kind in ("Q8_0", "Q4_0"):
        return scale(spread / (74 if kind == "Q8_0" else 4.6)) + block[2:]
    if kind == "Q6_K":
        return block[:208] + scale(spread / 1400)
    most = 15 if kind == "Q4_K" else 31
    return scale(spread / (16 * most)) + scale(spread / 32) + block[4:]


WIDEN = {"Q8_0": q8_0, "Q4_0": q4_0, "Q4_K": q4_k, "Q5_K": q5_k, "Q6_K": q6_k}


def draw(kind, count, source, spread, middle=0):
    """The data of a tensor of random numbers, and the numbers that it holds."""
    if kind in WIDEN:
        blocks = [draw_block(kind, source, spread) for _ in range(count // TYPES[kind][1])]
        return b"".join(blocks), [number for block in blocks for number in WIDEN[kind](block)]
    numbers = [middle + spread * (2 * source.random() - 1) for _ in range(count)]
    if kind == "BF16":
        data = b"".join(struct.pack("<f", number)[2:] for number in numbers)
        return data, [struct.unpack("<f", b"\0\0" + data[i:i + 2])[0] for i in range(0, 2 * count, 2)]
    data = struct.pack(f"<{count}{'f' if kind == 'F32' else 'e'}", *numbers)
    return data, list(struct.unpack(f"<{count}{'f' if kind == 'F32' else 'e'}", data))
