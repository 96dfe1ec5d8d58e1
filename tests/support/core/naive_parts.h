/*
 * naive_parts.h: parts of naive_attention.c: the weights of mechanisms other than softmax, by the equations of
 * attn/mechanism.h, and one head.
 */
#ifndef TESTS_NAIVE_PARTS_H
#define TESTS_NAIVE_PARTS_H

#include "naive_attention.h"

/*
 * naive_features.c: weights[0 .. kv_len) of one query for a mechanism that is not softmax: q is (d_k), k (kv_len, d_k);
 * mask holds 0 for keys that are hidden; key_max is what naive_key_max gives.
 */
void naive_feature_weights(const attn_request *request, const naive_result *r, const double *q, const double *k,
                           const double *mask, double key_max, double *weights);

/* performer: the largest projection of a key that is not 0 in seen (kv_len). */
double naive_key_max(const attn_request *request, const naive_result *r, const double *k, const double *seen);

/* naive_head.c: the steps of head h in item b, from queries and keys to the context. */
void naive_head(const attn_request *request, naive_result *r, const uint8_t *keep, size_t b, size_t h);

#endif
