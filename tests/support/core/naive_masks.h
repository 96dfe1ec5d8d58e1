/*
 * naive_masks.h: the reference for masks and biases, for naive_attention.h.
 *
 * It shares the structs of the public headers with the core. The only shared code is the generator of philox.c, which
 * has a test with known answers.
 */
#ifndef TESTS_NAIVE_MASKS_H
#define TESTS_NAIVE_MASKS_H

#include "attn/plan.h"

/* Whether masks let query i of head h in item b attend to key j; a bias of -infinity does not. */
bool naive_allows(const attn_masks *masks, size_t q_len, size_t kv_len, size_t b, size_t h, size_t i, size_t j);

/* The bias of ALiBi and the relative bias of options for a distance (key - query, in positions). */
double naive_position_bias(const attn_options *options, double distance, size_t heads, size_t h);

/* The row of that distance in tables of relative positions. */
size_t naive_relative_row(const attn_relative_position *relative, size_t rows, double distance);

/* The offset of item b: query i has position i + offset. */
double naive_offset(const attn_masks *masks, size_t q_len, size_t kv_len, size_t b);

#endif
