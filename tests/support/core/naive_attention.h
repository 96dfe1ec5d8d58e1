/*
 * naive_attention.h: the reference for the core: equation 1 in double or better, with plain loops and no BLAS.
 *
 *     out = softmax(q k^T / sqrt(d_k)) v        with masks, biases, softcap, sinks, dropout, feature maps
 *
 * Tables of many masks, shapes and kernels are compared with it, at sizes that take the reference in Python too long.
 * That one has the rest of a request, too: tests/unit/server/codec/request/test_vectors.c.
 *
 * It shares the structs of the public headers with the core, but no code: it has its own dimensions, masks and reads of
 * strided tensors. It expects a valid request without weights and rope, and aborts without memory.
 */
#ifndef TESTS_NAIVE_ATTENTION_H
#define TESTS_NAIVE_ATTENTION_H

#include "naive_masks.h"

/*
 * Every step whole and row-major in the shape that plan.h gives it, the output as (batch, q_len, heads * d_v) whatever
 * the rank of query, except (batch, heads, q_len, d_v) for rank 4; selections are ignored.
 */
typedef struct {
    size_t batch, heads, kv_heads, q_len, kv_len, d_k, d_v;
    double scale, softcap;
    double *step[ATTN_STEP_COUNT]; /* mask holds 0 and 1 */
    /*
     * Of scores and context: the sum of the absolute values of the terms. Rounding errors are in proportion to it, not
     * to the sum. NULL for the other steps.
     */
    double *terms[ATTN_STEP_COUNT];
    /*
     * (batch, heads, q_len): the largest scale * sum |q k| + |bias| of the keys that are not hidden, and the sink. It
     * bounds the scores of the row, and their rounding errors are in proportion to it.
     */
    double *peak;
    size_t rows_without_keys;
    double largest_factor; /* the largest |head_scale|, and at least 1 */
    double max_abs_score;  /* the largest scaled score that is not hidden */
} naive_result;

/* Computes all steps of request. keep, if not NULL, is (batch, heads, q_len, kv_len): zero for dropped weights. */
naive_result naive_attention(const attn_request *request, const uint8_t *keep);
void naive_release(naive_result *result);

/*
 * naive_block.c: to[0 .. features) = the normalisation of from by its mean or its squares, with the gain and shift of
 * norm (each optional). terms, if not NULL, receives the numbers that rounding errors are proportional to.
 */
void naive_norm(attn_norm_type type, double eps, const attn_affine *norm, size_t features, const double *from,
                double *to, double *terms);

/*
 * naive_block.c: the feed-forward network of request, with norm and residual, for one token: y (d_attended) is the
 * output of the attention. Writes network (d_out), what down gives, and output (d_out). terms (d_out) receives the
 * numbers that the rounding errors of network are proportional to.
 */
void naive_feed_forward(const attn_request *request, const attn_dims *dims, size_t b, size_t i, const double *y,
                        double *network, double *output, double *terms);

/* Zeroed doubles; aborts without memory. */
double *naive_numbers(size_t count);

/* The element of tensor at the last rank indices of (a, b, c, d); a dimension of 1 is broadcast. */
double naive_read(const attn_tensor *tensor, size_t a, size_t b, size_t c, size_t d);

#endif
