"""
made_weights.py: the weights of the models in kinds.tar.xz, which are not stored: they follow from the names of the tensors.

A number of a matrix is even in -a .. a with a = 1.6 / sqrt(numbers of a row), one of a bias in -0.3 .. 0.3, and one of a
gain in 0.6 .. 1.4, drawn by random.Random(name of the tensor) and rounded to float32.
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


def tensors(shapes):
    """As tensor_file.write takes them."""
    return {name: ("F32", shape, numbers(name, shape)) for name, shape in shapes.items()}
