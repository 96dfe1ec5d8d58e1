"""
made_weights.py: the weights of the models in kinds.tar.xz, which are not stored: they follow from the names of the tensors.

A number of a matrix is even in -a .. a with a = 1.6 / sqrt(numbers of a row), one of a bias in -0.3 .. 0.3, and one of a
gain in 0.6 .. 1.4, drawn by random.Random(name of the tensor) and rounded to float32. A byte of the blocks of MXFP4 is any,
and one of their scales is in 122 .. 125.
"""

import math
import random


def numbers(name, shape):
    if len(shape) > 1:
        middle, spread = 0, 1.6 / math.sqrt(math.prod(shape[1:]))
    else:
        middle, spread = (0, 0.3) if name.endswith("bias") else (1, 0.4)
    source = random.Random(name)
    return [middle + spread * (2 * source.random() - 1) for _ in range(math.prod(shape))]


def is_packed(name):
    return name.endswith(("_blocks", "_scales"))


def packed(name, shape):
    """The bytes of blocks or scales."""
    source = random.Random(name)
    low, high = (0, 255) if name.endswith("_blocks") else (122, 125)
    return [source.randint(low, high) for _ in range(math.prod(shape))]


def widened(blocks, scales):
    """The numbers of MXFP4: 16 bytes of two numbers, sign, exponent and mantissa as s e e m, for each scale."""
    found = []
    for at, byte in enumerate(blocks):
        for bits in (byte & 15, byte >> 4):
            exponent, mantissa = bits >> 1 & 3, bits & 1
            size = mantissa / 2 if exponent == 0 else (1 + mantissa / 2) * 2 ** (exponent - 1)
            found.append((-size if bits >> 3 else size) * 2.0 ** (scales[at // 16] - 127))
    return found


def tensors(shapes):
    """As tensor_file.write takes them."""
    return {name: ("U8", shape, packed(name, shape)) if is_packed(name) else ("F32", shape, numbers(name, shape))
            for name, shape in shapes.items()}
