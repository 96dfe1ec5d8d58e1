/*
 * distance_bias.h: the numbers that are added to a row of scaled scores: biases by distance (ALiBi, relative), and
 * masks.bias.
 *
 * A bias by distance is constant along every diagonal, so one number per diagonal is enough. Each head (and each batch
 * item, when items have offsets of their own) has a vector of q_len + kv_len - 1 numbers. The row of a query is a
 * contiguous slice of it. The tile kernel adds that slice. attn_bias_row is a slow and simple form for one row.
 * attn_mask_row (mask/resolved.h) decides whether a query may attend to a key.
 */
#ifndef ATTN_ATTENTION_DISTANCE_BIAS_H
#define ATTN_ATTENTION_DISTANCE_BIAS_H

#include "attn/plan.h"
#include "attn/runtime.h"
#include "kernel/job.h"
#include "mask/resolved.h"

bool attn_has_distance_bias(const attn_options *options);
/* Elements that attn_distance_bias_make writes, including the slack; 0 when there is no such bias. */
size_t attn_distance_bias_count(const attn_options *options, const attn_mask *mask);
/*
 * Computes the vectors into data, which has room for that many elements, with one task per vector. Describes their
 * layout.
 */
struct attn_distance_bias attn_distance_bias_make(const attn_options *options, const attn_mask *mask, void *data,
                                                  const attn_runtime *runtime);

/*
 * to[n] = the sum of all biases of query i and key from + n, for from <= key < to_key; -infinity where masks.bias is
 * -infinity. Keys that the mask hides get a number, too.
 */
void attn_bias_row(const struct attn_distance_bias *distance, const attn_mask *mask, attn_dtype compute, size_t b,
                   size_t h, size_t i, size_t from, size_t to_key, double *to);

#endif
