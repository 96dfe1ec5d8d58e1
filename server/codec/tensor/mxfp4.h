/*
 * mxfp4.h: numbers of 4 bits that share a scale, block by block: MXFP4 of "OCP Microscaling Formats (MX) Specification",
 * 2023, sections 5.2 and 5.4.
 *
 *     x = v 2^(scale - 127),   v = 0, 0.5, 1, 1.5, 2, 3, 4, 6 or the same below 0, by the bits s e e m
 *
 * A block has 32 numbers in 16 bytes; of the two numbers of a byte, the first has the lower bits. The scale 255 is NaN.
 */
#ifndef CODEC_TENSOR_MXFP4_H
#define CODEC_TENSOR_MXFP4_H

#include <stddef.h>
#include <stdint.h>

#include "attn/tensor.h"

enum { MXFP4_BYTES = 16, MXFP4_NUMBERS = 32 };

/*
 * Widens count blocks to count * MXFP4_NUMBERS numbers of the type ATTN_BF16 or ATTN_F64. Both hold every number exactly,
 * except that bfloat16 has infinity for those above its range (scale 254 with |v| of 4 and more).
 */
void mxfp4_widen(const uint8_t *blocks, const uint8_t *scales, size_t count, attn_dtype dtype, void *to);

#endif
