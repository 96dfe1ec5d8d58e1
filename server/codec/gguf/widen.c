/*
 * widen.c: the types of tensors in GGUF files, and the numbers of quantised blocks.
 *
 * Each block has scales as float16. The K types have blocks of 256 numbers, and scales of 6 or 8 bits for each 16 or 32
 * of them. https://github.com/ggml-org/ggml/blob/master/src/ggml-quants.c has the equations.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "codec/gguf/gguf.h"

enum { SMALL = 32, LARGE = 256 /* numbers of a block */ };

/* The float16 at that place. Subnormal numbers are mantissa * 2^-24. */
static float half_at(const unsigned char *at)
{
    const uint32_t bits = (uint32_t)at[0] | (uint32_t)at[1] << 8, exponent = bits >> 10 & 31, mantissa = bits & 1023;
    const uint32_t sign = (bits & 0x8000) << 16;
    if (exponent == 0)
        return (sign != 0 ? -0x1p-24F : 0x1p-24F) * (float)mantissa;
    const uint32_t wide = sign | (exponent == 31 ? 255 : exponent + 112) << 23 | mantissa << 13;
    float number;
    memcpy(&number, &wide, sizeof number);
    return number;
}

/* Q4_0: number = d (q - 8), of 4 bits each; the low halves of the bytes come first. */
static void widen_q4_0(const unsigned char *block, float *to)
{
    const float d = half_at(block);
    for (size_t i = 0; i < SMALL / 2; i++) {
        to[i] = (float)((block[2 + i] & 15) - 8) * d;
        to[i + SMALL / 2] = (float)((block[2 + i] >> 4) - 8) * d;
    }
}

/* Q8_0: number = d q, of 8 bits with a sign. */
static void widen_q8_0(const unsigned char *block, float *to)
{
    const float d = half_at(block);
    for (size_t i = 0; i < SMALL; i++)
        to[i] = (float)(int8_t)block[2 + i] * d;
}

/* The scale and the minimum of 32 numbers, 6 bits each: those of the last four lie in the high bits of the others. */
static void read_scale(const unsigned char *scales, size_t i, float *scale, float *min)
{
    const unsigned low = i < 4 ? scales[i] & 63U : (scales[i + 4] & 15U) | (scales[i - 4] >> 6 & 3U) << 4;
    const unsigned high = i < 4 ? scales[i + 4] & 63U : (unsigned)scales[i + 4] >> 4 | (scales[i] >> 6 & 3U) << 4;
    *scale = (float)low;
    *min = (float)high;
}

/* Q4_K: number = d scale q - dmin min, q of 4 bits; 32 bytes have 32 numbers in their low halves and 32 in the high. */
static void widen_q4_k(const unsigned char *block, float *to)
{
    const float d = half_at(block), dmin = half_at(block + 2);
    const unsigned char *scales = block + 4, *q = block + 16;
    for (size_t i = 0; i < LARGE / 32; i++) {
        const unsigned char *from = q + i / 2 * 32;
        float scale, min;
        read_scale(scales, i, &scale, &min);
        const float by = d * scale, less = dmin * min;
        if (i % 2 == 0)
            for (size_t j = 0; j < 32; j++)
                to[32 * i + j] = by * (float)(from[j] & 15) - less;
        else
            for (size_t j = 0; j < 32; j++)
                to[32 * i + j] = by * (float)(from[j] >> 4) - less;
    }
}

/* Q5_K: as Q4_K, with a fifth bit: bit i of byte j belongs to number j of the i-th 32. */
static void widen_q5_k(const unsigned char *block, float *to)
{
    const float d = half_at(block), dmin = half_at(block + 2);
    const unsigned char *scales = block + 4, *fifth = block + 16, *q = block + 48;
    for (size_t i = 0; i < LARGE / 32; i++) {
        const unsigned char *from = q + i / 2 * 32;
        const unsigned shift = i % 2 == 0 ? 0 : 4;
        float scale, min;
        read_scale(scales, i, &scale, &min);
        const float by = d * scale, less = dmin * min;
        for (size_t j = 0; j < 32; j++)
            to[32 * i + j] = by * (float)((from[j] >> shift & 15) | (fifth[j] >> i & 1) << 4) - less;
    }
}

/* Q6_K: number = d scale (q - 32), a scale of 8 bits for each 16; q has 4 bits in one list and 2 in another. */
static void widen_q6_k(const unsigned char *block, float *to)
{
    const unsigned char *low = block, *high = block + 128, *scales = block + 192;
    const float d = half_at(block + 208);
    for (size_t i = 0; i < LARGE / 16; i++) {
        const size_t half = i / 8, quarter = i % 8 / 2, first = i % 2 * 16;
        const unsigned char *four = low + 64 * half + 32 * (quarter % 2) + first, *two = high + 32 * half + first;
        const unsigned shift = quarter < 2 ? 0 : 4;
        const float by = d * (float)(int8_t)scales[i];
        for (size_t j = 0; j < 16; j++)
            to[16 * i + j] = by * (float)(((four[j] >> shift & 15) | (two[j] >> 2 * quarter & 3) << 4) - 32);
    }
}

static const struct gguf_type types[] = {
    {"F32", 0, 1, 4, ATTN_F32, NULL},
    {"F16", 1, 1, 2, ATTN_F16, NULL},
    {"BF16", 30, 1, 2, ATTN_BF16, NULL},
    {"Q8_0", 8, SMALL, 2 + 32, ATTN_DTYPE_COUNT, widen_q8_0},
    {"Q4_0", 2, SMALL, 2 + 16, ATTN_DTYPE_COUNT, widen_q4_0},
    {"Q4_K", 12, LARGE, 4 + 12 + 128, ATTN_DTYPE_COUNT, widen_q4_k},
    {"Q5_K", 13, LARGE, 4 + 12 + 32 + 128, ATTN_DTYPE_COUNT, widen_q5_k},
    {"Q6_K", 14, LARGE, 128 + 64 + 16 + 2, ATTN_DTYPE_COUNT, widen_q6_k},
};

/* Names of the other types, for messages. */
static const char *const others[] = {
    [3] = "Q4_1",   [6] = "Q5_0",     [7] = "Q5_1",    [9] = "Q8_1",     [10] = "Q2_K",  [11] = "Q3_K",
    [15] = "Q8_K",  [16] = "IQ2_XXS", [17] = "IQ2_XS", [18] = "IQ3_XXS", [19] = "IQ1_S", [20] = "IQ4_NL",
    [21] = "IQ3_S", [22] = "IQ2_S",   [23] = "IQ4_XS", [24] = "I8",      [25] = "I16",   [26] = "I32",
    [27] = "I64",   [28] = "F64",     [29] = "IQ1_M",  [34] = "TQ1_0",   [35] = "TQ2_0", [39] = "MXFP4",
};

const struct gguf_type *gguf_type_of(uint32_t code)
{
    for (size_t i = 0; i < ARRAY_LENGTH(types); i++)
        if (types[i].code == code)
            return &types[i];
    return NULL;
}

const char *gguf_other_type(uint32_t code)
{
    return code < ARRAY_LENGTH(others) ? others[code] : NULL;
}

const char *gguf_type_names(char *text, size_t size)
{
    size_t length = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(types) && length < size; i++)
        length += (size_t)snprintf(text + length, size - length, "%s%s", i > 0 ? ", " : "", types[i].name);
    return text;
}

/* ---- whole tensors ---- */

enum { TASK_NUMBERS = 1 << 16, BUFFER = 4 * LARGE };

struct widening {
    const struct gguf_tensor *tensor;
    attn_dtype dtype;
    char *to;
    attn_status *outcomes; /* one for each worker */
};

/* A few blocks at a time, so that rounding to float16 reads the cache. */
static void widen_task(void *argument, size_t index, size_t worker)
{
    const struct widening *widening = argument;
    const struct gguf_type *type = widening->tensor->type;
    const size_t first = index * TASK_NUMBERS, left = widening->tensor->count - first,
                 count = left < TASK_NUMBERS ? left : TASK_NUMBERS, bytes = attn_dtype_bytes(widening->dtype);
    const unsigned char *from = (const unsigned char *)widening->tensor->data + first / type->block * type->block_bytes;
    char *to = widening->to + first * bytes;
    float numbers[BUFFER];
    for (size_t done = 0; done < count;) {
        size_t some = 0;
        for (; some < BUFFER && done + some < count; some += type->block, from += type->block_bytes)
            type->widen(from, numbers + some);
        const attn_status status = attn_convert(to + done * bytes, widening->dtype, numbers, ATTN_F32, some, NULL);
        if (status != ATTN_OK)
            widening->outcomes[worker] = status;
        done += some;
    }
}

attn_status gguf_widen(const struct gguf_tensor *tensor, attn_dtype dtype, const attn_runtime *runtime, void *to,
                       attn_error *err)
{
    attn_status outcomes[ATTN_POOL_THREADS_MAX] = {ATTN_OK};
    struct widening widening = {tensor, dtype, to, outcomes};
    assert(tensor->type->widen != NULL && runtime->threads <= ATTN_POOL_THREADS_MAX);
    runtime->run(runtime->context, (tensor->count + TASK_NUMBERS - 1) / TASK_NUMBERS, widen_task, &widening);
    for (size_t i = 0; i < runtime->threads; i++)
        if (outcomes[i] != ATTN_OK)
            return attn_fail(err, ATTN_ERR_VALUE, NULL, "the tensor %s has a number that does not fit %s", tensor->name,
                             attn_dtype_name(dtype));
    return ATTN_OK;
}
