/*
 * contender_plain.c: attention as one would write it with a BLAS at hand: for each head
 *
 *     scores = q k^T    a product;   weights = softmax(scale scores)    row by row, with the C library's exp
 *     out = weights v   a product
 *
 * One buffer of scores serves all heads unless the maps are wanted; a layer multiplies all heads at once. The hidden
 * scores of a causal mask or a window are computed and thrown away. The threads are those of OpenBLAS. Norms, gates and
 * activations are passes of their own (plain_parts.h).
 */
#include <cblas.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn/mechanism.h"
#include "attn/position_bias.h"
#include "contender.h"
#include "plain_parts.h"

/* A matrix inside an array: where, and how far from row to row. */
struct matrix {
    void *data;
    size_t stride;
};

struct plain {
    bench_case c;
    attn_tensor stream[STREAM_COUNT];
    void *projected[3], *context; /* of a layer; under rope, copies of queries and keys that are turned */
    void *normed, *gate, *wide;   /* where a layer has a norm before, a gate, a feed-forward network */
    float *projection, *work;     /* of performer; of linear attention */
    void *output, *scores, *maps; /* maps: of the heads, or their mean */
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

static void hide_padding(const bench_case *c, void *row)
{
    for (size_t j = 0; j < c->kv_len; j += BENCH_PADDING)
        if (c->dtype == ATTN_F32)
            ((float *)row)[j] = -INFINITY;
        else
            ((double *)row)[j] = -(double)INFINITY;
}

static void softmax_rows(const bench_case *c, size_t h, void *scores)
{
    const double slope = bench_has(c, WORD_ALIBI) ? attn_alibi_slope(c->heads, h) : 0;
    const double sink = bench_has(c, WORD_SINKS) ? bench_sink_of(h) : -(double)INFINITY;
    for (size_t i = 0; i < c->q_len; i++) {
        size_t from, to;
        const double p = (double)(i + c->kv_len) - (double)c->q_len;
        void *row = (char *)scores + i * c->kv_len * attn_dtype_bytes(c->dtype);
        bench_keys_of(c, i, &from, &to);
        if (bench_has(c, WORD_PADDED))
            hide_padding(c, row);
        if (c->dtype == ATTN_F32)
            softmax_row_f32(row, c->kv_len, from, to, (float)slope, (float)p, (float)sink);
        else
            softmax_row_f64(row, c->kv_len, from, to, slope, p, sink);
    }
}

static void *at(const struct plain *plain, void *data, size_t elements)
{
    return (char *)data + elements * attn_dtype_bytes(plain->c.dtype);
}

/* Head h of item b: rows of an array that is (batch, heads, len, dim), or (batch, len, heads * dim) in a layer. */
static struct matrix head_of(const struct plain *plain, void *data, size_t heads, size_t len, size_t b, size_t h)
{
    const bench_case *c = &plain->c;
    const size_t features = heads * c->dim;
    if (c->is_layer)
        return (struct matrix){at(plain, data, b * len * features + h * c->dim), features};
    return (struct matrix){at(plain, data, (b * heads + h) * len * c->dim), c->dim};
}

static void attend_head(struct plain *plain, void *q, void *k, void *v, void *out, size_t b, size_t h)
{
    const bench_case *c = &plain->c;
    const size_t size = c->q_len * c->kv_len, kv_heads = bench_kv_heads(c), kv_head = h * kv_heads / c->heads;
    const struct matrix queries = head_of(plain, q, c->heads, c->q_len, b, h);
    const struct matrix keys = head_of(plain, k, kv_heads, c->kv_len, b, kv_head);
    const struct matrix values = head_of(plain, v, kv_heads, c->kv_len, b, kv_head);
    const struct matrix to = head_of(plain, out, c->heads, c->q_len, b, h);
    if (plain->work != NULL) {
        plain_linear(c, queries.data, keys.data, values.data, plain->projection, plain->work, to.data);
        return;
    }
    const struct matrix scores = {c->with_maps ? at(plain, plain->maps, (b * c->heads + h) * size) : plain->scores,
                                  c->kv_len};
    multiply(c->dtype, c->q_len, c->kv_len, c->dim, 1 / sqrt((double)c->dim), queries, keys, true, scores);
    softmax_rows(c, h, scores.data);
    multiply(c->dtype, c->q_len, c->dim, c->kv_len, 1, scores, values, false, to);
    if (bench_has(c, WORD_MEAN))
        cblas_saxpy(narrow(size), 1 / (float)c->heads, scores.data, 1, (float *)plain->maps + b * size, 1);
}

static void attend(struct plain *plain, void *q, void *k, void *v, void *out)
{
    const bench_case *c = &plain->c;
    if (bench_has(c, WORD_MEAN))
        memset(plain->maps, 0, c->batch * c->q_len * c->kv_len * sizeof(float));
    for (size_t b = 0; b < c->batch; b++)
        for (size_t h = 0; h < c->heads; h++)
            attend_head(plain, q, k, v, out, b, h);
}

/* y = x W for all rows, of so many features */
static void project(const struct plain *plain, size_t rows, void *x, bench_stream weight, void *y)
{
    const attn_tensor *w = &plain->stream[weight];
    multiply(plain->c.dtype, rows, w->shape[1], w->shape[0], 1, (struct matrix){x, w->shape[0]},
             (struct matrix){w->data, w->shape[1]}, false, (struct matrix){y, w->shape[1]});
}

/* Queries, or keys behind the past. */
static void project_heads(const struct plain *plain, void *x, bench_stream weight, void *y)
{
    const bench_case *c = &plain->c;
    const size_t features = c->heads * c->dim, past = weight == STREAM_W_Q ? 0 : bench_past_len(c);
    if (past == 0) {
        project(plain, c->batch * c->q_len, x, weight, y);
        return;
    }
    for (size_t b = 0; b < c->batch; b++)
        project(plain, c->q_len, at(plain, x, b * c->q_len * features), weight,
                at(plain, y, (b * c->kv_len + past) * features));
}

static void rotate(const struct plain *plain, void *x, size_t heads, size_t len)
{
    const bench_case *c = &plain->c;
    for (size_t b = 0; b < c->batch; b++)
        for (size_t h = 0; h < heads; h++) {
            const struct matrix head = head_of(plain, x, heads, len, b, h);
            plain_rotate(head.data, len, head.stride, c->dim, c->kv_len - len);
        }
}

static void rotate_queries_and_keys(const struct plain *plain)
{
    rotate(plain, plain->projected[0], plain->c.heads, plain->c.q_len);
    rotate(plain, plain->projected[1], bench_kv_heads(&plain->c), plain->c.kv_len);
}

static void run_attention(struct plain *plain)
{
    const attn_tensor *stream = plain->stream;
    void *q = stream[STREAM_Q].data, *k = stream[STREAM_K].data;
    if (bench_has(&plain->c, WORD_ROPE)) {
        q = memcpy(plain->projected[0], q, attn_tensor_count(&stream[STREAM_Q]) * sizeof(float));
        k = memcpy(plain->projected[1], k, attn_tensor_count(&stream[STREAM_K]) * sizeof(float));
        rotate_queries_and_keys(plain);
    }
    attend(plain, q, k, stream[STREAM_V].data, plain->output);
}

static bool has_norm(const bench_case *c)
{
    return !bench_has(c, WORD_BARE) &&
           (c->is_block || bench_has(c, WORD_LAYERNORM) || bench_has(c, WORD_RMSNORM) || bench_has(c, WORD_PRENORM));
}

/* x, or its norm where that comes first. */
static void *norm_before(struct plain *plain, void *x)
{
    const bench_case *c = &plain->c;
    if (!has_norm(c) || !bench_has(c, WORD_PRENORM))
        return x;
    plain_norm(plain->normed, x, c->batch * c->q_len, c->heads * c->dim, bench_has(c, WORD_RMSNORM));
    return plain->normed;
}

/* output += x, and its norm where that comes last */
static void close_branch(struct plain *plain, const void *x)
{
    const bench_case *c = &plain->c;
    const size_t rows = c->batch * c->q_len, features = c->heads * c->dim;
    if (!has_norm(c))
        return;
    plain_add(plain->output, x, rows * features);
    if (!bench_has(c, WORD_PRENORM))
        plain_norm(plain->output, plain->output, rows, features, bench_has(c, WORD_RMSNORM));
}

static void feed_forward(struct plain *plain)
{
    const bench_case *c = &plain->c;
    const size_t rows = c->batch * c->q_len, wide = rows * bench_ff_features(c);
    project(plain, rows, norm_before(plain, plain->output), STREAM_W_UP, plain->wide);
    (bench_has(c, WORD_BARE) ? plain_relu : plain_gelu)(plain->wide, wide);
    memcpy(plain->context, plain->output, rows * c->heads * c->dim * sizeof(float));
    project(plain, rows, plain->wide, STREAM_W_DOWN, plain->output);
    close_branch(plain, plain->context);
}

static void run_layer(struct plain *plain)
{
    const bench_case *c = &plain->c;
    const size_t rows = c->batch * c->q_len;
    void *x = norm_before(plain, plain->stream[STREAM_Q].data);
    for (int i = 0; i < 3; i++)
        project_heads(plain, x, (bench_stream)(STREAM_W_Q + i), plain->projected[i]);
    if (bench_has(c, WORD_ROPE))
        rotate_queries_and_keys(plain);
    attend(plain, plain->projected[0], plain->projected[1], plain->projected[2], plain->context);
    if (plain->stream[STREAM_W_GATE].data != NULL) {
        project(plain, rows, x, STREAM_W_GATE, plain->gate);
        plain_gate(plain->context, plain->gate, rows * c->heads * c->dim);
    }
    project(plain, rows, plain->context, STREAM_W_O, plain->output);
    close_branch(plain, plain->stream[STREAM_Q].data);
    if (c->is_block)
        feed_forward(plain);
}

static bool run(void *state)
{
    struct plain *plain = state;
    (plain->c.is_layer ? run_layer : run_attention)(plain);
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
    void *const buffers[] = {plain->projected[0], plain->projected[1], plain->projected[2], plain->context,
                             plain->normed,       plain->gate,         plain->wide,         plain->projection,
                             plain->work,         plain->output,       plain->scores,       plain->maps};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        free(buffers[i]);
    free(plain);
}

static void *take(const struct plain *plain, size_t elements, bool *is_complete)
{
    void *data = malloc(elements * attn_dtype_bytes(plain->c.dtype));
    *is_complete = *is_complete && data != NULL;
    return data;
}

static void draw_projection(struct plain *plain)
{
    const size_t count = ATTN_PERFORMER_FEATURES * plain->c.dim;
    double *drawn = malloc((count + plain->c.dim) * sizeof *drawn);
    if (drawn == NULL)
        return;
    attn_performer_projection(0, ATTN_PERFORMER_FEATURES, plain->c.dim, drawn + count, drawn);
    for (size_t n = 0; n < count; n++)
        plain->projection[n] = (float)drawn[n];
    free(drawn);
}

/* Cached keys and values come first in the rows of their item. */
static void place_past(struct plain *plain)
{
    const bench_case *c = &plain->c;
    const size_t past = bench_past_len(c), row = c->dim * attn_dtype_bytes(c->dtype);
    for (int i = 1; i < 3; i++)
        for (size_t bh = 0; bh < c->batch * c->heads; bh++) {
            const struct matrix to =
                head_of(plain, plain->projected[i], c->heads, c->kv_len, bh / c->heads, bh % c->heads);
            const char *from = plain->stream[STREAM_Q + i].data;
            for (size_t j = 0; j < past; j++)
                memcpy(at(plain, to.data, j * to.stride), from + (bh * past + j) * row, row);
        }
}

/* The results and what a caller would keep from call to call. */
static bool take_buffers(struct plain *plain)
{
    const bench_case *c = &plain->c;
    bool is_complete = true;
    const attn_tensor output = bench_output_shape(c), maps = bench_maps_shape(c);
    const size_t count = attn_tensor_count(&output), keys = c->batch * c->kv_len * c->heads * c->dim;
    plain->output = take(plain, count, &is_complete);
    plain->scores = take(plain, c->q_len * c->kv_len, &is_complete);
    if (bench_has_maps(c))
        plain->maps = take(plain, attn_tensor_count(&maps), &is_complete);
    for (int i = 0; i < 3 && (c->is_layer || bench_has(c, WORD_ROPE)); i++)
        plain->projected[i] = take(plain, i == 0 ? count : keys, &is_complete);
    if (c->is_layer) {
        plain->context = take(plain, count, &is_complete);
        plain->normed = take(plain, count, &is_complete);
        plain->gate = take(plain, count, &is_complete);
    }
    if (c->is_block)
        plain->wide = take(plain, c->batch * c->q_len * bench_ff_features(c), &is_complete);
    if (bench_has(c, WORD_LINEAR) || bench_has(c, WORD_PERFORMER))
        plain->work = take(plain, plain_linear_floats(c), &is_complete);
    if (bench_has(c, WORD_PERFORMER))
        plain->projection = take(plain, ATTN_PERFORMER_FEATURES * c->dim, &is_complete);
    return is_complete;
}

static bool make_streams(struct plain *plain)
{
    for (int s = 0; s < STREAM_COUNT; s++) {
        if (!bench_stream_is_used(&plain->c, (bench_stream)s))
            continue;
        plain->stream[s] = bench_stream_make(&plain->c, (bench_stream)s, true);
        if (plain->stream[s].data == NULL)
            return false;
    }
    return true;
}

/* float64 is attention and bare layers here. */
static bool is_possible(const bench_case *c)
{
    static const bench_word in_both[] = {WORD_ALIBI, WORD_SINKS, WORD_DOCUMENTS, WORD_GROUPED, WORD_PADDED, WORD_PAST};
    uint32_t known = 0;
    for (size_t i = 0; i < sizeof in_both / sizeof *in_both; i++)
        known |= UINT32_C(1) << in_both[i];
    return !bench_has(c, WORD_GRADIENTS) && !bench_has(c, WORD_DROPOUT) && !bench_has(c, WORD_ODD) &&
           !bench_has(c, WORD_BF16_PRODUCTS) && (c->dtype == ATTN_F32 || (!c->is_block && (c->words & ~known) == 0));
}

static void *prepare(const bench_case *c)
{
    struct plain *plain = is_possible(c) ? calloc(1, sizeof *plain) : NULL;
    if (plain == NULL)
        return NULL;
    plain->c = *c;
    openblas_set_num_threads((int)narrow(c->threads));
    if (!make_streams(plain) || !take_buffers(plain)) {
        release(plain);
        return NULL;
    }
    if (plain->projection != NULL)
        draw_projection(plain);
    if (c->is_layer)
        place_past(plain);
    return plain;
}

static bool enter(void *state, void (*work)(void *argument), void *argument)
{
    (void)state;
    work(argument);
    return true;
}

static size_t results(const void *state, bench_result result[BENCH_RESULTS_MAX])
{
    const struct plain *plain = state;
    result[0] = (bench_result){"output", bench_output_shape(&plain->c)};
    result[0].tensor.data = plain->output;
    if (!bench_has_maps(&plain->c))
        return 1;
    result[1] = (bench_result){"maps", bench_maps_shape(&plain->c)};
    result[1].tensor.data = plain->maps;
    return 2;
}

static const char *description(void)
{
    return openblas_get_config();
}

const contender contender_plain = {prepare, enter, run, results, release, description};
