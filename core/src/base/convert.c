/* convert.c: numbers of one element type as numbers of another. */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#include "attn/tensor.h"
#include "base/float_mode.h"
#include "base/number.h"
#include "base/size.h"

/* What an element type holds: floats by the bits of their mantissa and below 2^exponent_end, integers from min to max. */
static const struct {
    int mantissa_bits, exponent_end; /* 0: no floats */
    /* The smallest magnitude that rounds to infinity: halfway to the next number, because the tie rounds to even. */
    double infinite_from;
    int64_t min, max;
} TYPES[ATTN_DTYPE_COUNT] = {
    [ATTN_F32] = {24, 128, 0x1.ffffffp127, 0, 0},
    [ATTN_F64] = {53, 1024, (double)INFINITY, 0, 0},
    [ATTN_F16] = {11, 16, 65520.0, 0, 0},
    [ATTN_BF16] = {8, 128, 0x1.ffp127, 0, 0},
    [ATTN_I64] = {0, 0, (double)INFINITY, INT64_MIN, INT64_MAX},
    [ATTN_I32] = {0, 0, (double)INFINITY, INT32_MIN, INT32_MAX},
    [ATTN_U8] = {0, 0, (double)INFINITY, 0, UINT8_MAX},
    [ATTN_BOOL] = {0, 0, (double)INFINITY, 0, 1},
};

static bool is_float(attn_dtype dtype)
{
    return TYPES[dtype].mantissa_bits != 0;
}

/* A binary format of 16 bits: a sign, an exponent, and in the last mantissa_bits the mantissa. */
struct half_format {
    int mantissa_bits;
    int exponent_max; /* of a finite number; the smallest normal one has 1 - exponent_max */
    uint64_t infinity;
};
static const struct half_format FLOAT16 = {10, 15, 0x7C00}, BFLOAT16 = {7, 127, 0x7F80};

static double widen_f16(uint16_t half)
{
    int exponent = half >> 10 & 0x1F;
    uint64_t mantissa = half & 0x3FFu;
    double magnitude;
    if (exponent == 0) {
        magnitude = (double)mantissa * 0x1p-24;
    } else {
        uint64_t wide_exponent = exponent == 0x1F ? 0x7FF : (uint64_t)(exponent - 15 + 1023);
        uint64_t bits = wide_exponent << 52 | mantissa << 42;
        memcpy(&magnitude, &bits, sizeof magnitude);
    }
    return half >> 15 ? -magnitude : magnitude;
}

static double widen_bf16(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

/* value >> shift, rounded to nearest, ties to even; 0 < shift < 64. */
static uint64_t shift_round_even(uint64_t value, int shift)
{
    uint64_t quotient = value >> shift;
    uint64_t rest = value & ((UINT64_C(1) << shift) - 1);
    uint64_t half = UINT64_C(1) << (shift - 1);
    return quotient + (rest > half || (rest == half && (quotient & 1) != 0));
}

/* Directly from double, which rounds once. Through float32 it would round twice, and some results would be wrong. */
static uint16_t narrow(double value, const struct half_format *format)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint64_t sign = bits >> 63 << 15;
    int exponent = (int)(bits >> 52 & 0x7FF) - 1023;
    uint64_t fraction = bits & 0xFFFFFFFFFFFFF;
    if (exponent == 1024 && fraction != 0)
        return (uint16_t)(sign | format->infinity | UINT64_C(1) << (format->mantissa_bits - 1));
    if (exponent > format->exponent_max)
        return (uint16_t)(sign | format->infinity);
    /* Below the normal numbers the exponent stays the same and the mantissa loses bits. */
    int above = exponent - (1 - format->exponent_max);
    int shift = 52 - format->mantissa_bits + (above < 0 ? -above : 0);
    if (shift > 54)
        return (uint16_t)sign;
    uint64_t mantissa = shift_round_even(fraction | UINT64_C(1) << 52, shift);
    /* The leading bit of a normal mantissa, or a carry from rounding, raises the exponent by 1, up to infinity. */
    uint64_t base = above < 0 ? 0 : (uint64_t)above << format->mantissa_bits;
    return (uint16_t)(sign | (base + mantissa));
}

/*
 * Blocks are converted to the widest type of their kind (double or int64), and then to the target type. The widest type
 * holds every narrower one exactly, so n types need 2n loops instead of n * n. Elements are copied, because memory may
 * be unaligned.
 */
enum { BLOCK = 256 };

#define LOAD_LOOP(type, expression)                                                                                    \
    for (size_t i = 0; i < count; i++) {                                                                               \
        type element;                                                                                                  \
        memcpy(&element, (const char *)from + i * sizeof element, sizeof element);                                     \
        to[i] = (expression);                                                                                          \
    }                                                                                                                  \
    break

static void load_floats(double *to, attn_dtype dtype, const void *from, size_t count)
{
    switch (dtype) {
    case ATTN_F32:
        LOAD_LOOP(float, (double)element);
    case ATTN_F64:
        LOAD_LOOP(double, element);
    case ATTN_F16:
        LOAD_LOOP(uint16_t, widen_f16(element));
    case ATTN_BF16:
        LOAD_LOOP(uint16_t, widen_bf16(element));
    case ATTN_I64:
    case ATTN_I32:
    case ATTN_U8:
    case ATTN_BOOL:
    case ATTN_DTYPE_COUNT:
        break;
    }
}

static void load_integers(int64_t *to, attn_dtype dtype, const void *from, size_t count)
{
    switch (dtype) {
    case ATTN_I64:
        LOAD_LOOP(int64_t, element);
    case ATTN_I32:
        LOAD_LOOP(int32_t, element);
    case ATTN_U8:
        LOAD_LOOP(uint8_t, element);
    case ATTN_BOOL:
        LOAD_LOOP(uint8_t, element != 0);
    case ATTN_F32:
    case ATTN_F64:
    case ATTN_F16:
    case ATTN_BF16:
    case ATTN_DTYPE_COUNT:
        break;
    }
}

#define STORE_LOOP(type, expression)                                                                                   \
    for (size_t i = 0; i < count; i++) {                                                                               \
        type element = (expression);                                                                                   \
        memcpy((char *)to + i * sizeof element, &element, sizeof element);                                             \
    }                                                                                                                  \
    break

/* dtype is no integer type: attn_convert has refused those. */
static void store_floats(void *to, attn_dtype dtype, const double *from, size_t count)
{
    switch (dtype) {
    case ATTN_F32:
        STORE_LOOP(float, (float)from[i]);
    case ATTN_F64:
        STORE_LOOP(double, from[i]);
    case ATTN_F16:
        STORE_LOOP(uint16_t, narrow(from[i], &FLOAT16));
    case ATTN_BF16:
        STORE_LOOP(uint16_t, narrow(from[i], &BFLOAT16));
    case ATTN_BOOL:
        STORE_LOOP(uint8_t, from[i] != 0);
    case ATTN_I64:
    case ATTN_I32:
    case ATTN_U8:
    case ATTN_DTYPE_COUNT:
        break;
    }
}

/* The values fit: find_misfit has checked them. */
static void store_integers(void *to, attn_dtype dtype, const int64_t *from, size_t count)
{
    double wide[BLOCK];
    switch (dtype) {
    case ATTN_I64:
        STORE_LOOP(int64_t, from[i]);
    case ATTN_I32:
        STORE_LOOP(int32_t, (int32_t)from[i]);
    case ATTN_U8:
    case ATTN_BOOL:
        STORE_LOOP(uint8_t, (uint8_t)from[i]);
    case ATTN_F32:
    case ATTN_F64:
    case ATTN_F16:
    case ATTN_BF16:
        for (size_t i = 0; i < count; i++)
            wide[i] = (double)from[i];
        store_floats(to, dtype, wide, count);
        break;
    case ATTN_DTYPE_COUNT:
        break;
    }
}

#undef LOAD_LOOP
#undef STORE_LOOP

/* Whether value is an odd number below 2^mantissa_bits times a power of two, and below 2^exponent_end. */
static bool fits_float(int64_t value, int mantissa_bits, int exponent_end)
{
    uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    if (magnitude == 0)
        return true;
    int top = 64 - __builtin_clzll(magnitude);
    return top - __builtin_ctzll(magnitude) <= mantissa_bits && top <= exponent_end;
}

static bool fits(int64_t value, attn_dtype dtype)
{
    return is_float(dtype) ? fits_float(value, TYPES[dtype].mantissa_bits, TYPES[dtype].exponent_end)
                           : value >= TYPES[dtype].min && value <= TYPES[dtype].max;
}

/* Index of the first value that dtype cannot hold exactly; count when there is none. */
static size_t find_misfit(const int64_t *values, attn_dtype dtype, size_t count)
{
    size_t i = 0;
    while (i < count && fits(values[i], dtype))
        i++;
    return i;
}

/* Index of the first finite value that would become infinite; count when there is none. */
static size_t find_overflow(const double *values, attn_dtype dtype, size_t count)
{
    const double limit = TYPES[dtype].infinite_from;
    size_t i = 0;
    while (i < count && !(fabs(values[i]) >= limit && isfinite(values[i])))
        i++;
    return i;
}

static attn_status convert_floats(char *to, attn_dtype to_dtype, const char *from, attn_dtype from_dtype, size_t count,
                                  attn_error *err)
{
    double block[BLOCK] = {0};
    for (size_t done = 0; done < count; done += BLOCK) {
        size_t now = attn_min(count - done, BLOCK);
        load_floats(block, from_dtype, from + done * attn_dtype_bytes(from_dtype), now);
        size_t overflow = find_overflow(block, to_dtype, now);
        if (overflow < now)
            return attn_fail(err, ATTN_ERR_VALUE, NULL, "element %zu, %.17g, is beyond the range of %s",
                             done + overflow, block[overflow], attn_dtype_name(to_dtype));
        store_floats(to + done * attn_dtype_bytes(to_dtype), to_dtype, block, now);
    }
    return ATTN_OK;
}

static attn_status convert_integers(char *to, attn_dtype to_dtype, const char *from, attn_dtype from_dtype,
                                    size_t count, attn_error *err)
{
    int64_t block[BLOCK] = {0};
    for (size_t done = 0; done < count; done += BLOCK) {
        size_t now = attn_min(count - done, BLOCK);
        load_integers(block, from_dtype, from + done * attn_dtype_bytes(from_dtype), now);
        size_t misfit = find_misfit(block, to_dtype, now);
        if (misfit < now)
            return attn_fail(err, ATTN_ERR_VALUE, NULL, "%s cannot hold %" PRId64 " exactly (element %zu)",
                             attn_dtype_name(to_dtype), block[misfit], done + misfit);
        store_integers(to + done * attn_dtype_bytes(to_dtype), to_dtype, block, now);
    }
    return ATTN_OK;
}

/* Every request with 16-bit weights takes this path. */
static void widen_to_single(float *to, const char *from, attn_dtype from_dtype, size_t count)
{
    uint16_t half;
    if (from_dtype == ATTN_F16)
        for (size_t i = 0; i < count; i++) {
            memcpy(&half, from + i * sizeof half, sizeof half);
            to[i] = attn_single_of_f16(half);
        }
    else
        for (size_t i = 0; i < count; i++) {
            memcpy(&half, from + i * sizeof half, sizeof half);
            to[i] = attn_single_of_bf16(half);
        }
}

static uint32_t mask_of(bool is)
{
    return 0 - (uint32_t)is;
}

/* The bits of a float16 for those of a float32, rounded to nearest even. There is no branch, so loops become vectors. */
static uint16_t half_of_single(uint32_t bits)
{
    const uint32_t magnitude = bits & 0x7FFFFFFF;
    float shifted;
    uint32_t low;
    memcpy(&shifted, &magnitude, sizeof shifted);
    shifted += 0.5F; /* its last bit is that of float16 below the normal numbers: the sum is rounded there */
    memcpy(&low, &shifted, sizeof low);
    const uint32_t normal = (magnitude - (UINT32_C(112) << 23) + 0xFFF + (magnitude >> 13 & 1)) >> 13;
    const uint32_t special = 0x7C00 + (0x200 & mask_of(magnitude > 0x7F800000));
    const uint32_t is_small = mask_of(magnitude < 0x38800000), is_finite = mask_of(magnitude < 0x7F800000);
    const uint32_t finite = (is_small & (low - 0x3F000000)) | (~is_small & normal);
    return (uint16_t)((bits >> 16 & 0x8000) | (is_finite & finite) | (~is_finite & special));
}

/* Whether a finite value would become infinite. */
static bool narrow_block(uint16_t *to, const uint32_t *from)
{
    uint32_t is_beyond = 0;
    for (size_t i = 0; i < BLOCK; i++) {
        const uint32_t magnitude = from[i] & 0x7FFFFFFF;
        is_beyond |= (uint32_t)(magnitude >= 0x477FF000) & (uint32_t)(magnitude < 0x7F800000); /* 65520 and more */
        to[i] = half_of_single(from[i]);
    }
    return is_beyond != 0;
}

/* clang 14 does not know the name of F16C, so CPUID is asked, once: that takes a virtual machine microseconds. */
static bool has_f16c;

bool attn_has_f16c(void)
{
    return has_f16c;
}

/* The same in a quarter of the time. False: a number is NaN, infinite or too large, and the block is not converted. */
#if defined(__x86_64__)
__attribute__((constructor)) static void ask_for_f16c(void)
{
    unsigned eax, ebx, ecx, edx;
    __builtin_cpu_init(); /* other constructors may not have run */
    has_f16c = __builtin_cpu_supports("avx") && __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

__attribute__((target("avx,f16c"))) static bool narrow_block_by_f16c(uint16_t *to, const uint32_t *from)
{
    const __m256 sign = _mm256_set1_ps(-0.0F), limit = _mm256_set1_ps(65520);
    __m256 is_beyond = _mm256_setzero_ps();
    for (size_t i = 0; i < BLOCK; i += 8) {
        const __m256 singles = _mm256_loadu_ps((const float *)from + i), magnitudes = _mm256_andnot_ps(sign, singles);
        is_beyond = _mm256_or_ps(is_beyond, _mm256_cmp_ps(magnitudes, limit, _CMP_NLT_UQ));
        _mm_storeu_si128((__m128i *)(to + i), _mm256_cvtps_ph(singles, _MM_FROUND_TO_NEAREST_INT));
    }
    return _mm256_movemask_ps(is_beyond) == 0;
}
#else
static bool narrow_block_by_f16c(uint16_t *to, const uint32_t *from)
{
    (void)to, (void)from;
    return false;
}
#endif

/* False: a finite value would become infinite. */
static bool narrow_to_half(char *to, const char *from, size_t count)
{
    uint32_t singles[BLOCK] = {0};
    uint16_t halves[BLOCK];
    for (size_t done = 0; done < count; done += BLOCK) {
        const size_t now = attn_min(count - done, BLOCK);
        memcpy(singles, from + done * sizeof *singles, now * sizeof *singles);
        if (!(has_f16c && narrow_block_by_f16c(halves, singles)) && narrow_block(halves, singles))
            return false;
        memcpy(to + done * sizeof *halves, halves, now * sizeof *halves);
    }
    return true;
}

attn_status attn_convert(void *to, attn_dtype to_dtype, const void *from, attn_dtype from_dtype, size_t count,
                         attn_error *err)
{
    ATTN_FLOAT_MODE;
    if (from_dtype >= ATTN_DTYPE_COUNT || to_dtype >= ATTN_DTYPE_COUNT)
        return attn_fail(err, ATTN_ERR_FIELD, NULL, "expected an attn_dtype, got %d",
                         (int)(from_dtype >= ATTN_DTYPE_COUNT ? from_dtype : to_dtype));
    if (is_float(from_dtype) && !is_float(to_dtype) && to_dtype != ATTN_BOOL)
        return attn_fail(err, ATTN_ERR_FIELD, NULL, "%s does not become %s: that would cut off fractions",
                         attn_dtype_name(from_dtype), attn_dtype_name(to_dtype));
    if (!is_float(from_dtype))
        return convert_integers(to, to_dtype, from, from_dtype, count, err);
    if (to_dtype == ATTN_F32 && (from_dtype == ATTN_F16 || from_dtype == ATTN_BF16)) {
        widen_to_single(to, from, from_dtype, count);
        return ATTN_OK;
    }
    if (from_dtype == ATTN_F32 && to_dtype == ATTN_F16 && narrow_to_half(to, from, count))
        return ATTN_OK;
    if (to_dtype != from_dtype) /* also to name the element that is beyond the range */
        return convert_floats(to, to_dtype, from, from_dtype, count, err);
    if (count > 0)
        memcpy(to, from, count * attn_dtype_bytes(to_dtype));
    return ATTN_OK;
}
