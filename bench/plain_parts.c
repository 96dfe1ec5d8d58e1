/* plain_parts.c: the parts of a layer as one would write them: loops over rows, the C library's functions, a BLAS. */
#include "plain_parts.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

#include "attn/mechanism.h"
#include "attn/rope.h"

void plain_rotate(float *x, size_t rows, size_t stride, size_t dim, size_t first)
{
    for (size_t i = 0; i < dim / 2; i++) {
        const double speed = pow(ATTN_ROPE_THETA, -2.0 * (double)i / (double)dim);
        for (size_t row = 0; row < rows; row++) {
            float *pair = x + row * stride + i;
            const double angle = (double)(first + row) * speed;
            const float sine = (float)sin(angle), cosine = (float)cos(angle), x1 = pair[0], x2 = pair[dim / 2];
            pair[0] = x1 * cosine - x2 * sine;
            pair[dim / 2] = x2 * cosine + x1 * sine;
        }
    }
}

void plain_norm(float *to, const float *x, size_t rows, size_t features, bool is_rms)
{
    for (size_t row = 0; row < rows; row++, x += features, to += features) {
        float mean = 0, squares = 0;
        for (size_t d = 0; d < features && !is_rms; d++)
            mean += x[d] / (float)features;
        for (size_t d = 0; d < features; d++)
            squares += (x[d] - mean) * (x[d] - mean);
        const float factor = 1 / sqrtf(squares / (float)features + (float)BENCH_NORM_EPS);
        for (size_t d = 0; d < features; d++)
            to[d] = (x[d] - mean) * factor;
    }
}

void plain_add(float *to, const float *x, size_t count)
{
    for (size_t n = 0; n < count; n++)
        to[n] += x[n];
}

void plain_gate(float *to, const float *x, size_t count)
{
    for (size_t n = 0; n < count; n++)
        to[n] /= 1 + expf(-x[n]);
}

void plain_relu(float *x, size_t count)
{
    for (size_t n = 0; n < count; n++)
        x[n] = x[n] > 0 ? x[n] : 0;
}

void plain_gelu(float *x, size_t count)
{
    for (size_t n = 0; n < count; n++)
        x[n] *= 0.5F * (1 + erff(x[n] * (float)M_SQRT1_2));
}

/* ---- linear ---- */

static size_t features_of(const bench_case *c)
{
    return bench_has(c, WORD_PERFORMER) ? ATTN_PERFORMER_FEATURES : c->dim;
}

size_t plain_linear_floats(const bench_case *c)
{
    return (c->q_len + c->kv_len + c->dim + 1) * features_of(c);
}

/* phi of linear: elu(x) + 1 */
static void map_linear(const float *x, size_t count, float *phi)
{
    for (size_t n = 0; n < count; n++)
        phi[n] = x[n] > 0 ? x[n] + 1 : expf(x[n]);
}

static float largest(const float *x, size_t count)
{
    float max = x[0];
    for (size_t n = 1; n < count; n++)
        max = x[n] > max ? x[n] : max;
    return max;
}

/* phi of performer; the largest is taken of each row, or of all. A factor of all features falls out of the quotient. */
static void map_performer(const float *x, const float *projection, size_t rows, size_t dim, bool by_rows, float *phi)
{
    enum { M = ATTN_PERFORMER_FEATURES };
    const float scale = 1 / sqrtf((float)dim);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (blasint)rows, M, (blasint)dim, sqrtf(scale), x, (blasint)dim,
                projection, (blasint)dim, 0, phi, M);
    const float of_all = by_rows ? 0 : largest(phi, rows * M);
    for (size_t row = 0; row < rows; row++, phi += M, x += dim) {
        const float half = scale / 2 * cblas_sdot((blasint)dim, x, 1, x, 1);
        const float max = by_rows ? largest(phi, M) : of_all;
        for (size_t n = 0; n < M; n++)
            phi[n] = expf(phi[n] - half - max) + (float)BENCH_PERFORMER_EPS;
    }
}

/* sums += phi(k)^T v and total += the sum of phi(k), over some keys */
static void add_keys(const float *phi_k, const float *v, size_t keys, size_t m, size_t dim, float *sums, float *total)
{
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (blasint)m, (blasint)dim, (blasint)keys, 1, phi_k, (blasint)m,
                v, (blasint)dim, 1, sums, (blasint)dim);
    for (size_t j = 0; j < keys; j++)
        plain_add(total, phi_k + j * m, m);
}

static void ask_queries(const float *phi_q, size_t queries, size_t m, size_t dim, const float *sums, const float *total,
                        float *out)
{
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (blasint)queries, (blasint)dim, (blasint)m, 1, phi_q,
                (blasint)m, sums, (blasint)dim, 0, out, (blasint)dim);
    for (size_t i = 0; i < queries; i++)
        cblas_sscal((blasint)dim, 1 / cblas_sdot((blasint)m, phi_q + i * m, 1, total, 1), out + i * dim, 1);
}

void plain_linear(const bench_case *c, const float *q, const float *k, const float *v, const float *projection,
                  float *work, float *out)
{
    const size_t m = features_of(c), dim = c->dim;
    float *phi_q = work, *phi_k = phi_q + c->q_len * m, *sums = phi_k + c->kv_len * m, *total = sums + m * dim;
    if (projection == NULL) {
        map_linear(q, c->q_len * dim, phi_q);
        map_linear(k, c->kv_len * dim, phi_k);
    } else {
        map_performer(q, projection, c->q_len, dim, true, phi_q);
        map_performer(k, projection, c->kv_len, dim, false, phi_k);
    }
    memset(sums, 0, m * (dim + 1) * sizeof *sums);
    if (!c->is_causal) {
        add_keys(phi_k, v, c->kv_len, m, dim, sums, total);
        ask_queries(phi_q, c->q_len, m, dim, sums, total, out);
        return;
    }
    for (size_t i = 0; i < c->q_len; i++) {
        add_keys(phi_k + i * m, v + i * dim, 1, m, dim, sums, total);
        ask_queries(phi_q + i * m, 1, m, dim, sums, total, out + i * dim);
    }
}
