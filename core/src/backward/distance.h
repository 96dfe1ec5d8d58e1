/*
 * distance.h: biases by distance in the backward pass: the gradient of slopes and tables from the gradient of
 * every distance.
 */
#ifndef ATTN_BACKWARD_DISTANCE_H
#define ATTN_BACKWARD_DISTANCE_H

#include "attn/plan.h"
#include "mask/resolved.h"

/*
 * grad (batch, heads, q_len + kv_len) has the gradient of each distance, in the order of distance_bias.h. slopes
 * (heads) and table (buckets, heads), of the compute type, are written; NULL: not wanted.
 */
void attn_gradient_of_distances(const attn_options *options, const attn_mask *mask, const double *grad, void *slopes,
                                void *table);

#endif
