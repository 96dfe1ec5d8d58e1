/* mxfp4.c: widens numbers of 4 bits that share a scale. */
#include "codec/tensor/mxfp4.h"

#include <math.h>
#include <string.h>

enum { VALUES = 16, NAN_SCALE = 255, BIAS = 127 };

static const float values[VALUES] = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6, -0.0F, -0.5F, -1, -1.5F, -2, -3, -4, -6};

/* The upper half of a float32 whose lower half is 0: bfloat16 holds it exactly. */
static uint16_t bf16_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)(bits >> 16);
}

void mxfp4_widen(const uint8_t *blocks, const uint8_t *scales, size_t count, attn_dtype dtype, void *to)
{
    for (size_t block = 0; block < count; block++) {
        const uint8_t *bytes = blocks + block * MXFP4_BYTES;
        const double scale = scales[block] == NAN_SCALE ? (double)NAN : ldexp(1, scales[block] - BIAS);
        uint16_t narrow[VALUES];
        for (size_t v = 0; v < VALUES; v++)
            narrow[v] = bf16_of((float)((double)values[v] * scale));
        for (size_t n = 0; n < MXFP4_NUMBERS; n++) {
            const size_t v = n % 2 == 0 ? bytes[n / 2] & 15 : bytes[n / 2] >> 4, at = block * MXFP4_NUMBERS + n;
            if (dtype == ATTN_F64)
                ((double *)to)[at] = (double)values[v] * scale;
            else
                ((uint16_t *)to)[at] = narrow[v];
        }
    }
}
