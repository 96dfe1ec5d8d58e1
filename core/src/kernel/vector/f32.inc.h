/* f32.inc.h: the constants of a kernel in float. */
#ifndef ATTN_KERNEL_VECTOR_F32_INC_H
#define ATTN_KERNEL_VECTOR_F32_INC_H

#include <float.h>

#define REAL           float
#define INTEGER        int32_t
#define REAL_BITS      32
#define EXPONENT_BIAS  127
#define MANTISSA_BITS  23
#define ROUNDING_SHIFT 12582912.0f /* 1.5 * 2^23 */
#define EXP_LOWEST     -104.0f     /* e^-104 rounds to 0 */
#define EXP_NORMAL     -70.0f      /* from here on e^x and the rounding error of its last product are normal numbers */
#define EXP_HIGHEST    89.0f       /* e^89 is infinite */
#define LN2_HIGH       0.693359375f
#define LN2_LOW        -2.12194440e-4f
#define REAL_LARGEST   FLT_MAX
/* Moshier, Cephes, expf: (e^r - 1 - r) / r^2 on |r| <= ln 2 / 2 */
#define EXP_COEFFICIENTS                                                                                               \
    1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f

#endif
