/* test_mxfp4.c: tests of server/codec/tensor/mxfp4.c: every number with every scale. */
#include "codec/tensor/mxfp4.h"

#include <math.h>

#include "check_main.h"

/* A number of 4 bits by its definition: sign, two bits of exponent with bias 1, one of mantissa. */
static double number_of(unsigned bits)
{
    const unsigned exponent = bits >> 1 & 3, mantissa = bits & 1;
    const double size = exponent == 0 ? mantissa * 0.5 : ldexp(1 + mantissa * 0.5, (int)exponent - 1);
    return bits & 8 ? -size : size;
}

/* A block with each number twice: in the lower and in the upper half of a byte. */
static void fill(uint8_t block[MXFP4_BYTES])
{
    for (unsigned n = 0; n < MXFP4_BYTES; n++)
        block[n] = (uint8_t)(n | (15 - n) << 4);
}

START_TEST(every_number_has_its_value)
{
    uint8_t block[MXFP4_BYTES];
    fill(block);
    for (unsigned scale = 0; scale < 255; scale++) {
        const uint8_t scales[] = {(uint8_t)scale};
        double wide[MXFP4_NUMBERS];
        uint16_t narrow[MXFP4_NUMBERS];
        float single[MXFP4_NUMBERS];
        mxfp4_widen(block, scales, 1, ATTN_F64, wide);
        mxfp4_widen(block, scales, 1, ATTN_BF16, narrow);
        ck_assert(attn_convert(single, ATTN_F32, narrow, ATTN_BF16, MXFP4_NUMBERS, NULL) == ATTN_OK);
        for (unsigned n = 0; n < MXFP4_NUMBERS; n++) {
            const double wanted = ldexp(number_of(n % 2 == 0 ? n / 2 : 15 - n / 2), (int)scale - 127);
            ck_assert(wide[n] == wanted && signbit(wide[n]) == signbit(wanted));
            ck_assert((double)single[n] == (double)(float)wanted);
        }
    }
}
END_TEST

START_TEST(the_last_scale_is_nan)
{
    uint8_t block[2 * MXFP4_BYTES];
    const uint8_t scales[] = {127, 255};
    double wide[2 * MXFP4_NUMBERS];
    fill(block);
    fill(block + MXFP4_BYTES);
    mxfp4_widen(block, scales, 2, ATTN_F64, wide);
    for (unsigned n = 0; n < MXFP4_NUMBERS; n++)
        ck_assert(!isnan(wide[n]) && isnan(wide[MXFP4_NUMBERS + n]));
}
END_TEST

CHECK_MAIN("mxfp4")
{
    tcase_add_test(tests, every_number_has_its_value);
    tcase_add_test(tests, the_last_scale_is_nan);
}
