/*
 * operations.inc.h: vectors of REAL for one instruction set, by the vector extension of the compiler. A few operations that
 * the extension does not express well are intrinsics. Part of a kernel.
 */
#ifndef ATTN_KERNEL_VECTOR_OPERATIONS_INC_H
#define ATTN_KERNEL_VECTOR_OPERATIONS_INC_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

/* An editor reads a part without its translation unit: then the part is the portable kernel in float. */
#ifndef REAL
#define VECTOR_BYTES  16
#define REGISTER_ROWS 6
#include "kernel/vector/real.inc.h"
#endif

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* A loop over registers, unrolled. Clang keeps the registers only if it is told to unroll the whole loop. */
#if defined(__clang__)
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#define UNROLLED _Pragma("GCC unroll 16")
#endif
#define UNROLLED_FOR(i, n) UNROLLED for (int i = 0; i < (n); i++)

typedef REAL vec __attribute__((vector_size(VECTOR_BYTES)));
typedef REAL loose_vec __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(REAL)), may_alias));
typedef INTEGER ivec __attribute__((vector_size(VECTOR_BYTES)));
typedef uint8_t byte_vec __attribute__((vector_size(VECTOR_BYTES / sizeof(REAL)), aligned(1), may_alias));

#define LANES (VECTOR_BYTES / (REAL_BITS / 8))

static inline vec load(const REAL *from)
{
    return *(const loose_vec *)from;
}

static inline void store(REAL *to, vec x)
{
    *(loose_vec *)to = x;
}

/* Stores a vector at an aligned address past the caches. drain_streams makes it visible to other threads. */
static inline void stream(REAL *to, vec x)
{
#if VECTOR_BYTES == 64
    _mm512_stream_si512((void *)to, (__m512i)x);
#elif VECTOR_BYTES == 32
    _mm256_stream_si256((void *)to, (__m256i)x);
#else
    store(to, x);
#endif
}

static inline void drain_streams(void)
{
#if VECTOR_BYTES >= 32
    _mm_sfence();
#endif
}

static inline vec splat(REAL x)
{
    return x - (vec){0};
}

/*
 * a b + c: one rounding where the instruction set has fused multiply-add, two in the portable kernel of x86-64. The
 * source says where to fuse, and the compiler is told not to contract. So the bits of a sum do not depend on the loop
 * or on the compiler.
 */
static inline vec fma_vec(vec a, vec b, vec c)
{
#if VECTOR_BYTES == 64 && REAL_BITS == 32
    return (vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif VECTOR_BYTES == 64
    return (vec)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif VECTOR_BYTES == 32 && REAL_BITS == 32
    return (vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif VECTOR_BYTES == 32
    return (vec)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#elif defined(__aarch64__) && REAL_BITS == 32
    return (vec)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#elif defined(__aarch64__)
    return (vec)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#else
    return a * b + c;
#endif
}

/* The same with a scalar a, or with scalars b and c. */
static inline vec fma_scalar(REAL a, vec b, vec c)
{
    return fma_vec(splat(a), b, c);
}

static inline vec fma_scalars(vec a, REAL b, REAL c)
{
    return fma_vec(a, splat(b), splat(c));
}

/* The lanes of a where mask is all ones, of b where mask is 0. */
static inline vec blend(ivec mask, vec a, vec b)
{
    return (vec)(((ivec)a & mask) | ((ivec)b & ~mask));
}

/* The larger of each lane; m where x is NaN. */
static inline vec max_vec(vec x, vec m)
{
#if defined(__AVX512F__) && REAL_BITS == 32
    return (vec)_mm512_max_ps((__m512)x, (__m512)m);
#elif defined(__AVX512F__)
    return (vec)_mm512_max_pd((__m512d)x, (__m512d)m);
#elif defined(__AVX2__) && REAL_BITS == 32
    return (vec)_mm256_max_ps((__m256)x, (__m256)m);
#elif defined(__AVX2__)
    return (vec)_mm256_max_pd((__m256d)x, (__m256d)m);
#else
    return blend(x > m, x, m);
#endif
}

/* The smaller of each lane; m where x is NaN. */
static inline vec min_vec(vec x, vec m)
{
#if defined(__AVX512F__) && REAL_BITS == 32
    return (vec)_mm512_min_ps((__m512)x, (__m512)m);
#elif defined(__AVX512F__)
    return (vec)_mm512_min_pd((__m512d)x, (__m512d)m);
#elif defined(__AVX2__) && REAL_BITS == 32
    return (vec)_mm256_min_ps((__m256)x, (__m256)m);
#elif defined(__AVX2__)
    return (vec)_mm256_min_pd((__m256d)x, (__m256d)m);
#else
    return blend(x < m, x, m);
#endif
}

static inline vec abs_vec(vec x)
{
    return (vec)((ivec)x & ~(ivec)splat((REAL)-0.0));
}

/* Lane i of the result is lane (i + by) % LANES of x. */
#define LANE(i)          ((i) % LANES)
#define ROTATED_2(x, by) __builtin_shufflevector(x, x, LANE(by), LANE((by) + 1))
#define ROTATED_4(x, by) __builtin_shufflevector(x, x, LANE(by), LANE((by) + 1), LANE((by) + 2), LANE((by) + 3))
#define ROTATED_8(x, by)                                                                                               \
    __builtin_shufflevector(x, x, LANE(by), LANE((by) + 1), LANE((by) + 2), LANE((by) + 3), LANE((by) + 4),            \
                            LANE((by) + 5), LANE((by) + 6), LANE((by) + 7))
#define ROTATED_16(x, by)                                                                                              \
    __builtin_shufflevector(x, x, LANE(by), LANE((by) + 1), LANE((by) + 2), LANE((by) + 3), LANE((by) + 4),            \
                            LANE((by) + 5), LANE((by) + 6), LANE((by) + 7), LANE((by) + 8), LANE((by) + 9),            \
                            LANE((by) + 10), LANE((by) + 11), LANE((by) + 12), LANE((by) + 13), LANE((by) + 14),       \
                            LANE((by) + 15))
#if LANES == 16
#define ROTATED ROTATED_16
#elif LANES == 8
#define ROTATED ROTATED_8
#elif LANES == 4
#define ROTATED ROTATED_4
#else
#define ROTATED ROTATED_2
#endif

ALWAYS_INLINE vec rotate_lanes(vec x, const int by)
{
    return by == 8 ? ROTATED(x, 8) : by == 4 ? ROTATED(x, 4) : by == 2 ? ROTATED(x, 2) : ROTATED(x, 1);
}

/* The largest lane; no lane is NaN. */
static inline REAL max_lane(vec x)
{
#pragma GCC unroll 4
    for (int width = LANES / 2; width > 0; width /= 2)
        x = max_vec(x, rotate_lanes(x, width));
    return x[0];
}

/* The sum of the lanes, in the order of a fixed tree: every build has the same bits. */
static inline REAL sum_lanes(vec x)
{
#pragma GCC unroll 4
    for (int width = LANES / 2; width > 0; width /= 2)
        x += rotate_lanes(x, width);
    return x[0];
}

/* *sum = alpha *sum + term, with the rounding error added to *low: Knuth's two-sum. */
static inline void add_compensated(REAL *sum, REAL *low, REAL alpha, REAL term)
{
    const REAL before = alpha * *sum, after = before + term, added = after - before;
    *low = alpha * *low + ((before - (after - added)) + (term - added));
    *sum = after;
}

/* The same for n numbers, in whole vectors. */
static inline void add_row_compensated(REAL *sum, REAL *low, REAL alpha, const REAL *term, size_t n)
{
    for (size_t d = 0; d < n; d += LANES) {
        const vec before = alpha * load(sum + d), more = load(term + d), after = before + more;
        const vec added = after - before;
        store(low + d, alpha * load(low + d) + ((before - (after - added)) + (more - added)));
        store(sum + d, after);
    }
}

/* All ones in lanes whose byte is not 0. */
static inline ivec mask_from_bytes(const uint8_t *from)
{
#if defined(__AVX512F__) && REAL_BITS == 32
    return (ivec)_mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)from)) != 0;
#elif defined(__AVX2__) && REAL_BITS == 32
    return (ivec)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)from)) != 0;
#else
    return __builtin_convertvector(*(const byte_vec *)from, ivec) != 0;
#endif
}

/*
 * e^x to within about 1 ulp: exactly 1 at 0, 0 at -infinity, NaN at NaN. Cody and Waite, "Software Manual for the
 * Elementary Functions", 1980: x = n ln 2 + r with |r| <= ln 2 / 2, a polynomial for e^r, and 2^n by the exponent.
 * exp_up_to_highest is for x <= EXP_HIGHEST, as in a softmax. exp_normal has the same bits for EXP_NORMAL <= x, and is 0
 * at -infinity; between them it is either.
 */
#if defined(__AVX512F__) && REAL_BITS == 32
/*
 * A register holds the table 2^(i/16). So n counts sixteenths, r is smaller, and a third of the polynomial is enough:
 * Tang, "Table-driven implementation of the exponential function", 1989.
 */
static inline vec exp_up_to_highest(vec x)
{
    const vec power = {
        0x1p+0f,        0x1.0b5586p+0f, 0x1.172b84p+0f, 0x1.2387a6p+0f, 0x1.306fep+0f,  0x1.3dea64p+0f,
        0x1.4bfdaep+0f, 0x1.5ab07ep+0f, 0x1.6a09e6p+0f, 0x1.7a1148p+0f, 0x1.8ace54p+0f, 0x1.9c4918p+0f,
        0x1.ae89fap+0f, 0x1.c199bep+0f, 0x1.d5818ep+0f, 0x1.ea4afap+0f,
    };
    const __mmask16 is_not_0 = _mm512_cmp_ps_mask((__m512)x, (__m512)splat(EXP_LOWEST), _CMP_NLT_UQ); /* NaN is not */
    vec shifted = fma_scalars(x, (REAL)1.44269504088896340736, ROUNDING_SHIFT / 16); /* the sum rounds to sixteenths */
    vec n = shifted - ROUNDING_SHIFT / 16;
    vec r = fma_scalar((REAL)-LN2_HIGH, n, x);
    r = fma_scalar((REAL) - (LN2_LOW), n, r);
    vec p = fma_vec(fma_scalars(r, (REAL)(1.0 / 6), (REAL)0.5), r * r, r); /* e^r - 1 */
    vec two = (vec)_mm512_permutexvar_ps((__m512i)shifted, (__m512)power); /* the lowest bits are n modulo 1 */
    return (vec)_mm512_maskz_scalef_ps(is_not_0, (__m512)fma_vec(two, p, two), (__m512)n); /* scalef rounds n down */
}
static inline vec exp_normal(vec x)
{
    return exp_up_to_highest(x);
}
#else
/* e^x = (1 + the result) 2^n. The lowest bits of *shifted are n + EXPONENT_BIAS: the exponent of 2^n. */
static const REAL exponent_shift = ROUNDING_SHIFT + EXPONENT_BIAS;
static inline vec exp_less_1(vec x, vec *shifted)
{
    const REAL shift = exponent_shift;
    *shifted = fma_scalars(x, (REAL)1.44269504088896340736, shift); /* the sum rounds to an integer */
    const vec n = *shifted - shift;
    vec r = fma_scalar((REAL)-LN2_HIGH, n, x);
    r = fma_scalar((REAL) - (LN2_LOW), n, r);
    static const REAL coefficient[] = {EXP_COEFFICIENTS};
    vec p = splat(coefficient[0]);
    for (size_t c = 1; c < sizeof coefficient / sizeof *coefficient; c++)
        p = fma_vec(p, r, splat(coefficient[c]));
    return fma_vec(p, r * r, r);
}

/* 2^n for a normal result. */
static inline vec power_of_2(ivec n)
{
    return (vec)((n + EXPONENT_BIAS) << MANTISSA_BITS);
}

static inline vec exp_up_to_highest(vec x)
{
    vec shifted;
    const vec p = exp_less_1(max_vec(splat(EXP_LOWEST), x), &shifted); /* in this order of arguments NaN stays NaN */
    /* Two factors, because 2^n alone may be out of range; only the second product can round. */
    const ivec n = (ivec)shifted - (ivec)splat(exponent_shift), half = n >> 1;
    const vec first = power_of_2(half);
    return fma_vec(p, first, first) * power_of_2(n - half);
}

static inline vec exp_normal(vec x)
{
    vec shifted;
    const vec p = exp_less_1(x, &shifted), factor = (vec)((ivec)shifted << MANTISSA_BITS); /* drops the higher bits */
    return (vec)((ivec)fma_vec(p, factor, factor) & ~(x < splat(EXP_NORMAL)));             /* NaN stays NaN */
}
#endif

static inline vec exp_vec(vec x)
{
    return exp_up_to_highest(min_vec(splat(EXP_HIGHEST), x)); /* in this order of arguments NaN stays NaN */
}

/* tanh is an odd function: it is computed for |x|. A polynomial near 0, where 1 - 2 / (e^2x + 1) would lose digits. */
static inline vec tanh_vec(vec x)
{
#if REAL_BITS == 64
    vec y = x;
    for (int lane = 0; lane < LANES; lane++)
        y[lane] = tanh(x[lane]);
    return y;
#else
    /* Moshier, Cephes, tanhf: the polynomial is for |x| < 0.625. */
    vec a = abs_vec(x), z = x * x;
    vec p = fma_scalars(z, -5.70498872745e-3f, 2.06390887954e-2f);
    p = fma_vec(p, z, splat(-5.37397155531e-2f));
    p = fma_vec(p, z, splat(1.33314422036e-1f));
    p = fma_vec(p, z, splat(-3.33332819422e-1f));
    vec near = fma_vec(p * z, x, x);
    vec far = 1 - 2 / (exp_vec(a + a) + 1);
    far = blend(x < 0, -far, far);
    return blend(a < splat(0.625f), near, far);
#endif
}

#endif
