/*
 * vector.inc.h: vectors of REAL for one instruction set, by the compiler's vector extension; a few operations that it
 * does not express well are given by intrinsics. Included by attend.inc.h once for float and once for double.
 */

typedef REAL FN(vec) __attribute__((vector_size(VECTOR_BYTES)));
typedef REAL FN(loose) __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(REAL)), may_alias));
typedef INTEGER FN(ivec) __attribute__((vector_size(VECTOR_BYTES)));
typedef uint8_t FN(bytes) __attribute__((vector_size(VECTOR_BYTES / sizeof(REAL)), aligned(1), may_alias));
#define vec FN(vec)
#define ivec FN(ivec)

enum { FN(LANES) = VECTOR_BYTES / sizeof(REAL) };
#define LANES FN(LANES)

static inline vec FN(load)(const REAL *from)
{
    return *(const FN(loose) *)from;
}

static inline void FN(store)(REAL *to, vec x)
{
    *(FN(loose) *)to = x;
}

static inline vec FN(splat)(REAL x)
{
    return x - (vec){0};
}

/*
 * a b + c: one rounding where the instruction set has an instruction for it, two in the portable kernel of x86-64. It is
 * said here and not left to the compiler (which is told not to contract), so that the bits of a sum follow from the
 * source, in whichever loop and by whichever compiler it is made.
 */
static inline vec FN(fma)(vec a, vec b, vec c)
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

/* The same with a number in every lane of a, or of b and c. */
static inline vec FN(fma_number)(REAL a, vec b, vec c)
{
    return FN(fma)(FN(splat)(a), b, c);
}

static inline vec FN(fma_numbers)(vec a, REAL b, REAL c)
{
    return FN(fma)(a, FN(splat)(b), FN(splat)(c));
}

/* Lanes of a where mask is all ones, of b where it is 0. */
static inline vec FN(select)(ivec mask, vec a, vec b)
{
    return (vec)(((ivec)a & mask) | ((ivec)b & ~mask));
}

/* The larger of each lane; where x is NaN, m. */
static inline vec FN(larger)(vec x, vec m)
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
    return FN(select)(x > m, x, m);
#endif
}

/* The smaller of each lane; where x is NaN, m. */
static inline vec FN(smaller)(vec x, vec m)
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
    return FN(select)(x < m, x, m);
#endif
}

static inline vec FN(absolute)(vec x)
{
    return (vec)((ivec)x & ~(ivec)FN(splat)((REAL)-0.0));
}

/* Lane i becomes lane i + by, counted round. */
#define LANE(i) ((i) % (VECTOR_BYTES / (REAL_BITS / 8)))
#define MOVED_2(x, by) __builtin_shufflevector(x, x, LANE(by), LANE((by) + 1))
#define MOVED_4(x, by) __builtin_shufflevector(x, x, LANE(by), LANE((by) + 1), LANE((by) + 2), LANE((by) + 3))
#define MOVED_8(x, by) \
    __builtin_shufflevector(x, x, LANE(by), LANE((by) + 1), LANE((by) + 2), LANE((by) + 3), LANE((by) + 4), \
                            LANE((by) + 5), LANE((by) + 6), LANE((by) + 7))
#define MOVED_16(x, by) \
    __builtin_shufflevector(x, x, LANE(by), LANE((by) + 1), LANE((by) + 2), LANE((by) + 3), LANE((by) + 4), \
                            LANE((by) + 5), LANE((by) + 6), LANE((by) + 7), LANE((by) + 8), LANE((by) + 9), \
                            LANE((by) + 10), LANE((by) + 11), LANE((by) + 12), LANE((by) + 13), LANE((by) + 14), \
                            LANE((by) + 15))
#if VECTOR_BYTES / (REAL_BITS / 8) == 16
#define MOVED MOVED_16
#elif VECTOR_BYTES / (REAL_BITS / 8) == 8
#define MOVED MOVED_8
#elif VECTOR_BYTES / (REAL_BITS / 8) == 4
#define MOVED MOVED_4
#else
#define MOVED MOVED_2
#endif

static inline __attribute__((always_inline)) vec FN(moved)(vec x, const int by)
{
    return by == 8 ? MOVED(x, 8) : by == 4 ? MOVED(x, 4) : by == 2 ? MOVED(x, 2) : MOVED(x, 1);
}
#undef MOVED
#undef MOVED_16
#undef MOVED_8
#undef MOVED_4
#undef MOVED_2
#undef LANE

/* None of them NaN. */
static inline REAL FN(largest_lane)(vec x)
{
#pragma GCC unroll 4
    for (int width = LANES / 2; width > 0; width /= 2)
        x = FN(larger)(x, FN(moved)(x, width));
    return x[0];
}

/* In the order of a fixed tree, so that every build adds alike. */
static inline REAL FN(sum_lanes)(vec x)
{
#pragma GCC unroll 4
    for (int width = LANES / 2; width > 0; width /= 2)
        x += FN(moved)(x, width);
    return x[0];
}

/* *sum = alpha *sum + term, and in *low what rounding leaves out of it: Knuth's two-sum. */
static inline void FN(add_exactly)(REAL *sum, REAL *low, REAL alpha, REAL term)
{
    const REAL before = alpha * *sum, after = before + term, added = after - before;
    *low = alpha * *low + ((before - (after - added)) + (term - added));
    *sum = after;
}

/* The same for n numbers, whole vectors of them. */
static inline void FN(add_row_exactly)(REAL *sum, REAL *low, REAL alpha, const REAL *term, size_t n)
{
    for (size_t d = 0; d < n; d += LANES) {
        const vec before = alpha * FN(load)(sum + d), more = FN(load)(term + d), after = before + more;
        const vec added = after - before;
        FN(store)(low + d, alpha * FN(load)(low + d) + ((before - (after - added)) + (more - added)));
        FN(store)(sum + d, after);
    }
}

/* All ones in lanes whose byte is not 0. */
static inline ivec FN(mask_from_bytes)(const uint8_t *from)
{
    return __builtin_convertvector(*(const FN(bytes) *)from, ivec) != 0;
}

/* 0, 1, 2, … */
static inline ivec FN(lane_numbers)(void)
{
    ivec n = {0};
    for (int lane = 0; lane < LANES; lane++)
        n[lane] = lane;
    return n;
}

/* p 2^n for whole n with p near 1: rounded once, also where the result is subnormal, infinite or 0. */
static inline vec FN(times_power_of_two)(vec p, vec n, ivec whole)
{
#if defined(__AVX512F__) && REAL_BITS == 64
    (void)whole;
    return (vec)_mm512_scalef_pd((__m512d)p, (__m512d)n);
#else
    /* In two steps, because 2^n alone may be out of range; only the second can round. */
    (void)n;
    ivec half = whole >> 1;
    vec first = (vec)((half + EXPONENT_BIAS) << MANTISSA_BITS);
    vec second = (vec)((whole - half + EXPONENT_BIAS) << MANTISSA_BITS);
    return p * first * second;
#endif
}

/*
 * e^x to within 1 ulp or so, exactly 1 at 0 and 0 at -infinity; NaN stays NaN. Cody and Waite, "Software Manual for the
 * Elementary Functions", 1980: x = n ln 2 + r with |r| <= ln 2 / 2, a polynomial for e^r, and 2^n put into the
 * exponent.
 */
#if defined(__AVX512F__) && REAL_BITS == 32
/*
 * Here a register holds 2^(i/16), so that x = n ln 2 + r with n in sixteenths, and a polynomial of a third of the length serves: Tang,
 * "Table-driven implementation of the exponential function", 1989.
 */
static inline vec FN(exp)(vec x)
{
    const vec power = {
        0x1p+0f, 0x1.0b5586p+0f, 0x1.172b84p+0f, 0x1.2387a6p+0f, 0x1.306fep+0f, 0x1.3dea64p+0f,
        0x1.4bfdaep+0f, 0x1.5ab07ep+0f, 0x1.6a09e6p+0f, 0x1.7a1148p+0f, 0x1.8ace54p+0f, 0x1.9c4918p+0f,
        0x1.ae89fap+0f, 0x1.c199bep+0f, 0x1.d5818ep+0f, 0x1.ea4afap+0f,
    };
    x = FN(larger)(FN(splat)(EXP_LOWEST), x); /* in this order NaN stays */
    x = FN(smaller)(FN(splat)(EXP_HIGHEST), x);
    vec shifted = FN(fma_numbers)(x, (REAL)1.44269504088896340736, ROUNDING_SHIFT / 16); /* which rounds to sixteenths */
    vec n = shifted - ROUNDING_SHIFT / 16;
    vec r = FN(fma_number)((REAL)-LN2_HIGH, n, x);
    r = FN(fma_number)((REAL)-(LN2_LOW), n, r);
    vec p = FN(fma)(FN(fma_numbers)(r, (REAL)(1.0 / 6), (REAL)0.5), r * r, r); /* e^r - 1 */
    vec two = (vec)_mm512_permutexvar_ps((__m512i)shifted, (__m512)power); /* by the lowest bits: n modulo 1 */
    return (vec)_mm512_scalef_ps((__m512)FN(fma)(two, p, two), (__m512)n); /* which rounds n down */
}
#else
static inline vec FN(exp)(vec x)
{
    const REAL shift = ROUNDING_SHIFT;
    x = FN(larger)(FN(splat)(EXP_LOWEST), x); /* in this order NaN stays */
    x = FN(smaller)(FN(splat)(EXP_HIGHEST), x);
    vec shifted = FN(fma_numbers)(x, (REAL)1.44269504088896340736, shift); /* the sum rounds to a whole number */
    vec n = shifted - shift;
    ivec whole = (ivec)shifted - (ivec)FN(splat)(shift);
    vec r = FN(fma_number)((REAL)-LN2_HIGH, n, x);
    r = FN(fma_number)((REAL)-(LN2_LOW), n, r);
    static const REAL coefficient[] = {EXP_COEFFICIENTS};
    vec p = FN(splat)(coefficient[0]);
    for (size_t c = 1; c < sizeof coefficient / sizeof *coefficient; c++)
        p = FN(fma)(p, r, FN(splat)(coefficient[c]));
    p = FN(fma)(p, r * r, r) + 1;
    return FN(times_power_of_two)(p, n, whole);
}
#endif

/* tanh; odd, so that only |x| is computed: a polynomial near 0, where 1 - 2 / (e^2x + 1) would lose digits. */
static inline vec FN(tanh)(vec x)
{
#if REAL_BITS == 64
    vec y = x;
    for (int lane = 0; lane < LANES; lane++)
        y[lane] = tanh(x[lane]);
    return y;
#else
    /* Moshier, Cephes, tanhf: the polynomial serves below 0.625. */
    vec a = FN(absolute)(x), z = x * x;
    vec p = FN(fma_numbers)(z, -5.70498872745e-3f, 2.06390887954e-2f);
    p = FN(fma)(p, z, FN(splat)(-5.37397155531e-2f));
    p = FN(fma)(p, z, FN(splat)(1.33314422036e-1f));
    p = FN(fma)(p, z, FN(splat)(-3.33332819422e-1f));
    vec near = FN(fma)(p * z, x, x);
    vec far = 1 - 2 / (FN(exp)(a + a) + 1);
    far = FN(select)(x < 0, -far, far);
    return FN(select)(a < FN(splat)(0.625f), near, far);
#endif
}
