/* bench_case.c: what is measured: shapes, the numbers in them, and samples of results. */
#include "bench_case.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST_DIMENSION = 1 << 20 };
static const size_t largest_count = (size_t)1 << 32; /* elements of any tensor: the generator counts to 2^32 */

static bool fits_together(const bench_case *c)
{
    const bool is_masked = c->is_causal || c->window != 0, has_past = bench_has(c, WORD_PAST);
    const bool is_narrow = bench_has(c, WORD_FLOAT16) || bench_has(c, WORD_BFLOAT16);
    return (!bench_has(c, WORD_GROUPED) || (!c->is_layer && c->heads % BENCH_GROUP == 0)) &&
           (!bench_has(c, WORD_DOCUMENTS) || c->q_len == c->kv_len) && (!is_masked || c->q_len <= c->kv_len) &&
           (!c->is_layer || has_past || c->q_len == c->kv_len) && (!has_past || c->q_len < c->kv_len) &&
           (!is_narrow || c->dtype == ATTN_F32);
}

static bool is_measurable(const bench_case *c)
{
    const size_t sizes[] = {c->threads, c->batch, c->heads, c->q_len, c->kv_len, c->dim};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i] == 0 || sizes[i] > LARGEST_DIMENSION)
            return false;
    size_t count;
    const size_t queries[] = {c->batch, c->heads, c->q_len, c->dim}, keys[] = {c->batch, c->heads, c->kv_len, c->dim};
    const size_t maps[] = {c->batch, c->heads, c->q_len, c->kv_len};
    return attn_shape_count(4, maps, &count) && count <= largest_count && attn_shape_count(4, queries, &count) &&
           count <= largest_count && attn_shape_count(4, keys, &count) && count <= largest_count && fits_together(c);
}

static bool read_word(bench_case *c, const char *word)
{
#define BENCH_WORD_TEXT(code, text) text,
    static const char *const words[] = {BENCH_WORD_LIST(BENCH_WORD_TEXT)};
#undef BENCH_WORD_TEXT
    for (size_t w = 0; w < WORD_COUNT; w++)
        if (strcmp(word, words[w]) == 0) {
            c->words |= UINT32_C(1) << w;
            return true;
        }
    return false;
}

static bool read_kind(bench_case *c, const char *kind)
{
    c->is_block = strcmp(kind, "block") == 0;
    c->is_layer = c->is_block || strcmp(kind, "layer") == 0;
    return c->is_layer || strcmp(kind, "attention") == 0 || (strcmp(kind, "gradients") == 0 && read_word(c, kind));
}

bool bench_case_read(bench_case *c, const char *text)
{
    char kind[16], dtype[16], word[16];
    unsigned causal, maps;
    int at, length;
    *c = (bench_case){0};
    if (sscanf(text, "%15s %15s %zu %zu %zu %zu %zu %zu %u %zu %u%n", kind, dtype, &c->threads, &c->batch, &c->heads,
               &c->q_len, &c->kv_len, &c->dim, &causal, &c->window, &maps, &at) < 11)
        return false;
    for (text += at; sscanf(text, "%15s%n", word, &length) == 1; text += length)
        if (!read_word(c, word))
            return false;
    c->dtype = attn_dtype_from_name(dtype);
    c->is_causal = causal != 0;
    c->with_maps = maps != 0;
    return read_kind(c, kind) && (c->dtype == ATTN_F32 || c->dtype == ATTN_F64) && is_measurable(c);
}

/* ---- data ---- */

static size_t kv_heads_of(const bench_case *c)
{
    return bench_has(c, WORD_GROUPED) ? c->heads / BENCH_GROUP : c->heads;
}

size_t bench_past_len(const bench_case *c)
{
    return bench_has(c, WORD_PAST) ? c->kv_len - c->q_len : 0;
}

/* Features between the two products of a block's feed-forward network. */
static size_t ff_features(const bench_case *c)
{
    const size_t features = c->heads * c->dim;
    return BENCH_WIDENING * features + (bench_has(c, WORD_BARE) && bench_has(c, WORD_GATE) ? features / 2 : 0);
}

static attn_tensor shape_of(const bench_case *c, int rank, const size_t *shape)
{
    return attn_tensor_view(NULL, c->dtype, rank, shape);
}

static bool is_weight(bench_stream stream)
{
    return stream >= STREAM_W_Q && stream != STREAM_GRAD_OUTPUT;
}

bool bench_stream_is_used(const bench_case *c, bench_stream stream)
{
    switch (stream) {
    case STREAM_Q:
        return true;
    case STREAM_K:
    case STREAM_V:
        return !c->is_layer || bench_has(c, WORD_PAST);
    case STREAM_GRAD_OUTPUT:
        return bench_has(c, WORD_GRADIENTS);
    case STREAM_W_GATE:
        return c->is_layer && bench_has(c, WORD_GATE) && !bench_has(c, WORD_BARE);
    case STREAM_W_UP:
    case STREAM_W_DOWN:
        return c->is_block;
    case STREAM_W_Q:
    case STREAM_W_K:
    case STREAM_W_V:
    case STREAM_W_O:
        return c->is_layer;
    case STREAM_COUNT:
        break;
    }
    return false;
}

/* (batch, heads, len, dim), or the (batch, len, features) and (features, features) of a layer. */
static attn_tensor stream_shape(const bench_case *c, bench_stream stream)
{
    const size_t features = c->heads * c->dim, wide = ff_features(c);
    const bool is_of_queries = stream == STREAM_Q || stream == STREAM_GRAD_OUTPUT;
    if (is_weight(stream))
        return shape_of(c, 2,
                        (size_t[]){stream == STREAM_W_DOWN ? wide : features, stream == STREAM_W_UP ? wide : features});
    if (c->is_layer && is_of_queries)
        return shape_of(c, 3, (size_t[]){c->batch, c->q_len, features});
    if (c->is_layer)
        return shape_of(c, 4, (size_t[]){c->batch, c->heads, bench_past_len(c), c->dim});
    const size_t heads = is_of_queries ? c->heads : kv_heads_of(c);
    return shape_of(c, 4, (size_t[]){c->batch, heads, is_of_queries ? c->q_len : c->kv_len, c->dim});
}

/* That of the case, or 16 bits. */
static attn_dtype stream_dtype(const bench_case *c, bench_stream stream)
{
    if (c->is_layer ? !is_weight(stream) : stream != STREAM_K && stream != STREAM_V)
        return c->dtype;
    return bench_has(c, WORD_FLOAT16) ? ATTN_F16 : bench_has(c, WORD_BFLOAT16) ? ATTN_BF16 : c->dtype;
}

static double value_at(bench_stream stream, size_t n)
{
    uint32_t h = (uint32_t)n + (uint32_t)stream * UINT32_C(0x9E3779B9);
    h ^= h >> 16;
    h *= UINT32_C(0x85EBCA6B);
    h ^= h >> 13;
    h *= UINT32_C(0xC2B2AE35);
    h ^= h >> 16;
    return (h >> 9) * 0x1p-22 - 1;
}

/* The same numbers in another type. They are rounded, but stay in range. */
static attn_tensor convert(attn_tensor tensor, attn_dtype dtype)
{
    const size_t count = attn_tensor_count(&tensor);
    void *to = malloc(count * attn_dtype_bytes(dtype));
    attn_error error;
    if (to != NULL && attn_convert(to, dtype, tensor.data, tensor.dtype, count, &error) != ATTN_OK) {
        free(to);
        to = NULL;
    }
    free(tensor.data);
    return attn_tensor_view(to, dtype, tensor.rank, tensor.shape);
}

attn_tensor bench_stream_make(const bench_case *c, bench_stream stream)
{
    const double gain = is_weight(stream) ? 1.0 / 16 : 2;
    const attn_dtype dtype = stream_dtype(c, stream);
    attn_tensor tensor = stream_shape(c, stream);
    const size_t count = attn_tensor_count(&tensor);
    tensor.data = malloc(count * attn_dtype_bytes(c->dtype));
    for (size_t n = 0; tensor.data != NULL && n < count; n++) {
        const double value = gain * value_at(stream, n);
        if (c->dtype == ATTN_F32)
            ((float *)tensor.data)[n] = (float)value;
        else
            ((double *)tensor.data)[n] = value;
    }
    return tensor.data != NULL && dtype != c->dtype ? convert(tensor, dtype) : tensor;
}

/* ---- results ---- */

bool bench_has_maps(const bench_case *c)
{
    return c->with_maps || bench_has(c, WORD_MEAN);
}

double bench_sink_of(size_t h)
{
    return 0.5 * (double)h;
}

size_t bench_document_of(size_t n, size_t len)
{
    return n * BENCH_DOCUMENTS / len;
}

static double element_at(const attn_tensor *tensor, size_t flat)
{
    ptrdiff_t offset = 0;
    for (int axis = tensor->rank - 1; axis >= 0; axis--) {
        offset += (ptrdiff_t)(flat % tensor->shape[axis]) * tensor->stride[axis];
        flat /= tensor->shape[axis];
    }
    return tensor->dtype == ATTN_F32 ? (double)((const float *)tensor->data)[offset]
                                     : ((const double *)tensor->data)[offset];
}

void bench_print_samples(const attn_tensor *tensor)
{
    const size_t count = attn_tensor_count(tensor);
    double sum = 0;
    assert(count > 0);
    for (size_t n = 0; n < count; n++)
        sum += fabs(element_at(tensor, n));
    printf(" %.17g", sum / (double)count);
    for (uint64_t sample = 0; sample < BENCH_SAMPLES; sample++)
        printf(" %.17g", element_at(tensor, (size_t)(sample * UINT64_C(2654435761) % count)));
}
