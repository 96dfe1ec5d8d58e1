"""
made_audio.py: the sounds of the tests, which are not stored: 16 kHz, one channel, rounded to float32.

"tones" are three notes with pauses, "chirp" rises from 100 Hz to 7 kHz, "noise" is random and grows louder, "silence" is 0.
"""

import math
import random
import struct

RATE = 16000


def tones(at, count):
    place = 3 * at / count
    return 0.4 * math.sin(2 * math.pi * (220, 523.25, 1760)[int(place)] * at / RATE) if place % 1 < 0.7 else 0


def chirp(at, count):
    t, whole = at / RATE, count / RATE
    return 0.5 * math.sin(2 * math.pi * (100 * t + 6900 * t * t / (2 * whole)))


def samples(name, count):
    source = random.Random(name)
    if name == "noise":
        numbers = [(2 * source.random() - 1) * at / count for at in range(count)]
    elif name == "silence":
        numbers = [0.0] * count
    else:
        numbers = [(tones if name == "tones" else chirp)(at, count) for at in range(count)]
    return list(struct.unpack(f"<{count}f", struct.pack(f"<{count}f", *numbers)))


def wav(numbers, rate=RATE, channels=1, kind=1, bits=16):
    """A WAV file of these samples: of 16 bits, or of another kind and size that struct can write."""
    if kind == 1:
        data = struct.pack(f"<{len(numbers)}h", *(max(-32768, min(32767, round(x * 32768))) for x in numbers))
    else:
        data = struct.pack(f"<{len(numbers)}{'f' if bits == 32 else 'd'}", *numbers)
    block = channels * bits // 8
    head = struct.pack("<HHIIHH", kind, channels, rate, rate * block, block, bits)
    chunks = b"fmt " + struct.pack("<I", len(head)) + head + b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(chunks) + 4) + b"WAVE" + chunks
