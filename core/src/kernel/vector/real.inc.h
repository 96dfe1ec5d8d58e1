/* real.inc.h: the constants of a kernel in float, or in double with KERNEL_f64. */
#ifndef ATTN_KERNEL_VECTOR_REAL_INC_H
#define ATTN_KERNEL_VECTOR_REAL_INC_H

#include <float.h>

#if defined(KERNEL_f64)
#define REAL           double
#define INTEGER        int64_t
#define REAL_BITS      64
#define EXPONENT_BIAS  1023
#define MANTISSA_BITS  52
#define ROUNDING_SHIFT 6755399441055744.0 /* 1.5 * 2^52 */
#define EXP_LOWEST     -746.0
#define EXP_NORMAL     -670.0 /* from here on e^x and the rounding error of its last product are normal numbers */
#define EXP_HIGHEST    710.0
#define LN2_HIGH       6.93147180369123816490e-01
#define LN2_LOW        1.90821492927058770002e-10
#define REAL_LARGEST   DBL_MAX
/* The series of e^r: 1/13! … 1/2!; the first omitted term is below 5e-18. */
#define EXP_COEFFICIENTS                                                                                               \
    1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0, 1.0 / 40320.0,           \
        1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5
#else
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

#endif
