/*
 * contender_plain.c: attention as one would write it with a BLAS at hand: for each head
 *
 *     scores = q k^T    a product;   weights = softmax(scale scores)    row by row, with the C library's exp
 *     out = weights v   a product
 *
 * One buffer of scores serves all heads unless the maps are wanted; a layer multiplies all heads at once. The hidden
 * scores of a causal mask or a window are computed and thrown away. The threads are those of OpenBLAS.
 */
#include <cblas.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "attn/position_bias.h"
#include "contender.h"

/* A matrix inside an array: where, and how far from row to row. */
struct matrix {
    void *data;
    size_t stride;
};

struct plain {
    bench_case c;
    attn_tensor stream[STREAM_COUNT];
    void *projected[3], *context; /* of a layer */
    void *output, *maps;
};

static blasint narrow(size_t n)
{
    return n > INT_MAX ? INT_MAX : (blasint)n;
}

/* z = gain x y, or gain x y^T; a single row is a matrix-vector product. */
static void multiply(attn_dtype dtype, size_t rows, size_t columns, size_t inner, double gain, struct matrix x,
                     struct matrix y, bool transpose_y, struct matrix z)
{
    const blasint m = narrow(rows), n = narrow(columns), k = narrow(inner);
    const blasint ldx = narrow(x.stride), ldy = narrow(y.stride), ldz = narrow(z.stride);
    const CBLAS_TRANSPOSE way = transpose_y ? CblasTrans : CblasNoTrans;
    const CBLAS_TRANSPOSE row_way = transpose_y ? CblasNoTrans : CblasTrans;
    const blasint y_rows = transpose_y ? n : k, y_columns = transpose_y ? k : n;
    if (dtype == ATTN_F32 && rows == 1)
        cblas_sgemv(CblasRowMajor, row_way, y_rows, y_columns, (float)gain, y.data, ldy, x.data, 1, 0, z.data, 1);
    else if (dtype == ATTN_F32)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, way, m, n, k, (float)gain, x.data, ldx, y.data, ldy, 0, z.data, ldz);
    else if (rows == 1)
        cblas_dgemv(CblasRowMajor, row_way, y_rows, y_columns, gain, y.data, ldy, x.data, 1, 0, z.data, 1);
    else
        cblas_dgemm(CblasRowMajor, CblasNoTrans, way, m, n, k, gain, x.data, ldx, y.data, ldy, 0, z.data, ldz);
}

/*
 * x[from .. to) becomes its softmax with a sink (-infinity: none), what is outside 0. slope |p - j| is taken off first:
 * ALiBi.
 */
#define DEFINE_SOFTMAX_ROW(name, real, exponential)                                                                    \
    static void name(real *x, size_t count, size_t from, size_t to, real slope, real p, real sink)                     \
    {                                                                                                                  \
        for (size_t j = from; slope != 0 && j < to; j++)                                                               \
            x[j] -= slope * (p > (real)j ? p - (real)j : (real)j - p);                                                 \
        real max = x[from] > sink ? x[from] : sink, sum;                                                               \
        for (size_t j = from; j < to; j++)                                                                             \
            max = x[j] > max ? x[j] : max;                                                                             \
        sum = exponential(sink - max);                                                                                 \
        for (size_t j = from; j < to; j++)                                                                             \
            sum += x[j] = exponential(x[j] - max);                                                                     \
        for (size_t j = 0; j < count; j++)                                                                             \
            x[j] = j >= from && j < to ? x[j] / sum : 0;                                                               \
    }
DEFINE_SOFTMAX_ROW(softmax_row_f32, float, expf)
DEFINE_SOFTMAX_ROW(softmax_row_f64, double, exp)

static void softmax_rows(const bench_case *c, size_t h, void *scores)
{
    const double slope = c->variant == VARIANT_ALIBI ? attn_alibi_slope(c->heads, h) : 0;
    const double sink = c->variant == VARIANT_SINKS ? bench_sink_of(h) : -(double)INFINITY;
    for (size_t i = 0; i < c->q_len; i++) {
        size_t from, to;
        const double p = (double)(i + c->kv_len) - (double)c->q_len;
        bench_keys_of(c, i, &from, &to);
        if (c->dtype == ATTN_F32)
            softmax_row_f32((float *)scores + i * c->kv_len, c->kv_len, from, to, (float)slope, (float)p, (float)sink);
        else
            softmax_row_f64((double *)scores + i * c->kv_len, c->kv_len, from, to, slope, p, sink);
    }
}

static void *at(const struct plain *plain, void *data, size_t elements)
{
    return (char *)data + elements * attn_dtype_bytes(plain->c.dtype);
}

/* Head h of item b: rows of an array that is (batch, heads, len, dim), or (batch, len, heads * dim) in a layer. */
static struct matrix head_of(const struct plain *plain, void *data, size_t len, size_t b, size_t h)
{
    const bench_case *c = &plain->c;
    const size_t features = c->heads * c->dim;
    if (c->is_layer)
        return (struct matrix){at(plain, data, b * len * features + h * c->dim), features};
    return (struct matrix){at(plain, data, (b * c->heads + h) * len * c->dim), c->dim};
}

static void attend_head(struct plain *plain, void *q, void *k, void *v, void *out, size_t b, size_t h)
{
    const bench_case *c = &plain->c;
    const size_t map = c->with_maps ? b * c->heads + h : 0;
    const struct matrix scores = {at(plain, plain->maps, map * c->q_len * c->kv_len), c->kv_len};
    multiply(c->dtype, c->q_len, c->kv_len, c->dim, 1 / sqrt((double)c->dim), head_of(plain, q, c->q_len, b, h),
             head_of(plain, k, c->kv_len, b, h), true, scores);
    softmax_rows(c, h, scores.data);
    multiply(c->dtype, c->q_len, c->dim, c->kv_len, 1, scores, head_of(plain, v, c->kv_len, b, h), false,
             head_of(plain, out, c->q_len, b, h));
}

static void attend(struct plain *plain, void *q, void *k, void *v, void *out)
{
    for (size_t b = 0; b < plain->c.batch; b++)
        for (size_t h = 0; h < plain->c.heads; h++)
            attend_head(plain, q, k, v, out, b, h);
}

static void project(const struct plain *plain, void *x, bench_stream weight, void *y)
{
    const size_t features = plain->c.heads * plain->c.dim;
    multiply(plain->c.dtype, plain->c.batch * plain->c.q_len, features, features, 1, (struct matrix){x, features},
             (struct matrix){plain->stream[weight].data, features}, false, (struct matrix){y, features});
}

static bool run(void *state)
{
    struct plain *plain = state;
    const attn_tensor *stream = plain->stream;
    if (!plain->c.is_layer) {
        attend(plain, stream[STREAM_Q].data, stream[STREAM_K].data, stream[STREAM_V].data, plain->output);
        return true;
    }
    for (int i = 0; i < 3; i++)
        project(plain, stream[STREAM_Q].data, (bench_stream)(STREAM_W_Q + i), plain->projected[i]);
    attend(plain, plain->projected[0], plain->projected[1], plain->projected[2], plain->context);
    project(plain, plain->context, STREAM_W_O, plain->output);
    return true;
}

/* ---- memory ---- */

static void release(void *state)
{
    struct plain *plain = state;
    if (plain == NULL)
        return;
    for (int s = 0; s < STREAM_COUNT; s++)
        free(plain->stream[s].data);
    for (int i = 0; i < 3; i++)
        free(plain->projected[i]);
    free(plain->context);
    free(plain->output);
    free(plain->maps);
    free(plain);
}

/* The results and what a caller would keep from call to call. */
static bool take_buffers(struct plain *plain)
{
    const bench_case *c = &plain->c;
    const attn_tensor output = bench_output_shape(c);
    const size_t element = attn_dtype_bytes(c->dtype), bytes = attn_tensor_count(&output) * element;
    plain->output = malloc(bytes);
    plain->maps = malloc((c->with_maps ? c->batch * c->heads : 1) * c->q_len * c->kv_len * element);
    bool is_complete = plain->output != NULL && plain->maps != NULL;
    if (!c->is_layer)
        return is_complete;
    for (int i = 0; i < 3; i++)
        is_complete = (plain->projected[i] = malloc(bytes)) != NULL && is_complete;
    plain->context = malloc(bytes);
    return is_complete && plain->context != NULL;
}

static bool make_streams(struct plain *plain)
{
    for (int s = 0; s < STREAM_COUNT; s++) {
        if (!bench_stream_is_used(&plain->c, (bench_stream)s))
            continue;
        plain->stream[s] = bench_stream_make(&plain->c, (bench_stream)s);
        if (plain->stream[s].data == NULL)
            return false;
    }
    return true;
}

static void *prepare(const bench_case *c)
{
    if (c->is_gradients)
        return NULL;
    struct plain *plain = calloc(1, sizeof *plain);
    if (plain == NULL)
        return NULL;
    plain->c = *c;
    openblas_set_num_threads((int)narrow(c->threads));
    if (make_streams(plain) && take_buffers(plain))
        return plain;
    release(plain);
    return NULL;
}

static bool enter(void *state, void (*work)(void *argument), void *argument)
{
    (void)state;
    work(argument);
    return true;
}

static void results(const void *state, attn_tensor *output, attn_tensor *maps)
{
    const struct plain *plain = state;
    *output = bench_output_shape(&plain->c);
    output->data = plain->output;
    *maps = bench_maps_shape(&plain->c);
    maps->data = plain->c.with_maps ? plain->maps : NULL;
}

static const char *description(void)
{
    return openblas_get_config();
}

const contender contender_plain = {prepare, enter, run, results, release, description};
