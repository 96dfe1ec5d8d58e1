/*
 * feature_keys.h: what the mask means for linear and performer, and the projection of performer (attn/mechanism.h has
 * the equations).
 */
#ifndef ATTN_ATTENTION_FEATURE_KEYS_H
#define ATTN_ATTENTION_FEATURE_KEYS_H

#include "attn/runtime.h"
#include "mask/resolved.h"

/*
 * *is_running: the mask is a range from key 0 for every query, and padding. Only then are there running sums.
 * *is_prefix: besides, the ranges of an item end at different keys. watch as in attn_mask_pairs.
 */
void attn_find_running_sums(const attn_mask *mask, const attn_runtime *watch, bool *is_running, bool *is_prefix);
/* Whether padding leaves key j of item b visible. */
bool attn_feature_is_real(const attn_mask *mask, size_t b, size_t j);
/*
 * P of performer, given or drawn: (m, d_k), and d_k numbers of scratch memory behind it. False when the run was
 * cancelled.
 */
bool attn_feature_projection(const attn_mechanism *mechanism, attn_dtype compute, size_t d_k,
                             const attn_runtime *runtime, double *projection);

#endif
