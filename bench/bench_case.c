/* bench_case.c: what is measured: shapes, the numbers in them, and samples of results. */
#include "bench_case.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST_DIMENSION = 1 << 20 };
static const size_t largest_count = (size_t)1 << 32; /* elements of any tensor: the generator counts to 2^32 */

static bool is_measurable(const bench_case *c)
{
    if (c->variant == VARIANT_GROUPED && (c->is_layer || c->heads % BENCH_GROUP != 0))
        return false;
    const size_t sizes[] = {c->threads, c->batch, c->heads, c->q_len, c->kv_len, c->dim};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i] == 0 || sizes[i] > LARGEST_DIMENSION)
            return false;
    size_t count;
    const attn_tensor maps = bench_maps_shape(c), output = bench_output_shape(c);
    const size_t keys[] = {c->batch, c->heads, c->kv_len, c->dim};
    return attn_shape_count(4, maps.shape, &count) && count <= largest_count &&
           attn_shape_count(output.rank, output.shape, &count) && count <= largest_count &&
           attn_shape_count(4, keys, &count) && count <= largest_count && (!c->is_layer || c->q_len == c->kv_len) &&
           ((!c->is_causal && c->window == 0) || c->q_len <= c->kv_len) &&
           (c->variant != VARIANT_DOCUMENTS || c->q_len == c->kv_len);
}

static bool read_variant(bench_case *c, const char *word)
{
    static const char *const words[] = {"", "alibi", "sinks", "documents", "grouped", "rope", "padded", "odd"};
    for (size_t v = 0; v < sizeof words / sizeof *words; v++)
        if (strcmp(word, words[v]) == 0) {
            c->variant = (bench_variant)v;
            return true;
        }
    return false;
}

bool bench_case_read(bench_case *c, const char *text)
{
    char kind[16], dtype[16], variant[16] = "";
    unsigned causal, maps;
    *c = (bench_case){0};
    if (sscanf(text, "%15s %15s %zu %zu %zu %zu %zu %zu %u %zu %u %15s", kind, dtype, &c->threads, &c->batch, &c->heads,
               &c->q_len, &c->kv_len, &c->dim, &causal, &c->window, &maps, variant) < 11 ||
        !read_variant(c, variant))
        return false;
    c->is_layer = strcmp(kind, "layer") == 0;
    c->is_gradients = strcmp(kind, "gradients") == 0;
    c->dtype = attn_dtype_from_name(dtype);
    c->is_causal = causal != 0;
    c->with_maps = maps != 0;
    return (c->is_layer || c->is_gradients || strcmp(kind, "attention") == 0) &&
           (c->dtype == ATTN_F32 || c->dtype == ATTN_F64) && is_measurable(c);
}

/* ---- data ---- */

size_t bench_kv_heads(const bench_case *c)
{
    return c->variant == VARIANT_GROUPED ? c->heads / BENCH_GROUP : c->heads;
}

static attn_tensor shape_of(const bench_case *c, int rank, const size_t *shape)
{
    return attn_tensor_view(NULL, c->dtype, rank, shape);
}

bool bench_stream_is_used(const bench_case *c, bench_stream stream)
{
    if (stream == STREAM_GRAD_OUTPUT)
        return c->is_gradients;
    return c->is_layer ? stream == STREAM_Q || stream >= STREAM_W_Q : stream <= STREAM_V;
}

attn_tensor bench_stream_shape(const bench_case *c, bench_stream stream)
{
    const size_t features = c->heads * c->dim;
    const bool is_of_queries = stream == STREAM_Q || stream == STREAM_GRAD_OUTPUT;
    if (stream >= STREAM_W_Q && stream <= STREAM_W_O)
        return shape_of(c, 2, (size_t[]){features, features});
    if (c->is_layer)
        return shape_of(c, 3, (size_t[]){c->batch, c->q_len, features});
    const size_t heads = is_of_queries ? c->heads : bench_kv_heads(c);
    return shape_of(c, 4, (size_t[]){c->batch, heads, is_of_queries ? c->q_len : c->kv_len, c->dim});
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

attn_tensor bench_stream_make(const bench_case *c, bench_stream stream)
{
    const double gain = stream >= STREAM_W_Q && stream <= STREAM_W_O ? 1.0 / 16 : 2;
    attn_tensor tensor = bench_stream_shape(c, stream);
    const size_t count = attn_tensor_count(&tensor);
    tensor.data = malloc(count * attn_dtype_bytes(c->dtype));
    if (tensor.data == NULL)
        return tensor;
    for (size_t n = 0; n < count; n++) {
        const double value = gain * value_at(stream, n);
        if (c->dtype == ATTN_F32)
            ((float *)tensor.data)[n] = (float)value;
        else
            ((double *)tensor.data)[n] = value;
    }
    return tensor;
}

/* ---- results ---- */

attn_tensor bench_output_shape(const bench_case *c)
{
    return bench_stream_shape(c, STREAM_Q);
}

attn_tensor bench_maps_shape(const bench_case *c)
{
    return shape_of(c, 4, (size_t[]){c->batch, c->heads, c->q_len, c->kv_len});
}

double bench_sink_of(size_t h)
{
    return 0.5 * (double)h;
}

size_t bench_document_of(size_t n, size_t len)
{
    return n * BENCH_DOCUMENTS / len;
}

void bench_keys_of(const bench_case *c, size_t i, size_t *from, size_t *to)
{
    const size_t end = i + 1 + c->kv_len - c->q_len; /* bottom right: the last query sees every key */
    *to = c->is_causal ? end : c->kv_len;
    *from = c->window != 0 && end > c->window ? end - c->window : 0;
    if (c->variant != VARIANT_DOCUMENTS)
        return;
    while (bench_document_of(*from, c->kv_len) < bench_document_of(i, c->kv_len))
        (*from)++;
    while (bench_document_of(*to - 1, c->kv_len) > bench_document_of(i, c->kv_len))
        (*to)--;
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
