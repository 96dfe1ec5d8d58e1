#!/usr/bin/env python3
"""Writes powers_of_ten.inc: 10^k for k in -342 .. 324 as 128-bit mantissas, rounded up. See number.h.

    python3 server/codec/number/powers_of_ten.py > server/codec/number/powers_of_ten.inc
"""

FIRST, LAST = -342, 324


def mantissa(k):
    """The integer g in [2^127, 2^128) with (g - 1) 2^e < 10^k <= g 2^e; the power of two 2^e does not matter."""
    power = 5 ** abs(k)
    if k >= 0:
        shift = 128 - power.bit_length()
        return power << shift if shift >= 0 else -(-power >> -shift)
    return -((-1 << (power.bit_length() + 127)) // power)


def check(k, g):
    """What number.h promises beyond the rounding itself."""
    assert 1 << 127 <= g < 1 << 128
    low = g & (1 << 64) - 1
    assert (low == 0) == (0 <= k <= 27), "the low half is zero only where the high half is exact"


print("/* powers_of_ten.inc: written by powers_of_ten.py. */")
for k in range(FIRST, LAST + 1):
    g = mantissa(k)
    check(k, g)
    print(f"{{0x{g >> 64:016x}, 0x{g & (1 << 64) - 1:016x}}}, /* {k} */")
