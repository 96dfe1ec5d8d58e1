/*
 * plain_parts.h: what the plain contender computes beside products and softmax, one pass after another, in float32.
 */
#ifndef BENCH_PLAIN_PARTS_H
#define BENCH_PLAIN_PARTS_H

#include "bench_case.h"

/* Turns rows at positions first, first + 1, … in place; a row has dim features, and stride floats to the next. */
void plain_rotate(float *x, size_t rows, size_t stride, size_t dim, size_t first);
/* LayerNorm, or RMSNorm, of each row, without gain and shift; to may be x. */
void plain_norm(float *to, const float *x, size_t rows, size_t features, bool is_rms);
void plain_add(float *to, const float *x, size_t count);
/* to = to * sigmoid(x) */
void plain_gate(float *to, const float *x, size_t count);
void plain_relu(float *x, size_t count);
void plain_gelu(float *x, size_t count);

/*
 * Linear attention or performer of one head, all keys or causal, with rows side by side; work is plain_linear_floats().
 * projection: of performer (attn/mechanism.h), else NULL.
 */
void plain_linear(const bench_case *c, const float *q, const float *k, const float *v, const float *projection,
                  float *work, float *out);
size_t plain_linear_floats(const bench_case *c);

#endif
