/* formulas.h: what the options say of position biases and feature maps (attn/position_bias.h, attn/mechanism.h). */
#ifndef ATTN_FORMULAS_FORMULAS_H
#define ATTN_FORMULAS_FORMULAS_H

#include <stddef.h>
#include <stdint.h>

#include "attn/plan.h"

bool attn_has_alibi(const attn_options *options);
/* The slope of head h; 0 without ALiBi. */
double attn_slope_of(const attn_options *options, size_t heads, size_t h);

static inline bool attn_is_recurrent(const attn_options *options)
{
    return options->mechanism.type == ATTN_LINEAR && options->mechanism.update_rule != ATTN_RULE_NONE;
}

static inline bool attn_has_feature_maps(const attn_options *options)
{
    return options->mechanism.type != ATTN_SOFTMAX && !attn_is_recurrent(options);
}

/* Whether the state of a recurrence forgets, and whether it is asked before it learns. */
static inline bool attn_has_decay(const attn_mechanism *mechanism)
{
    return mechanism->update_rule == ATTN_RULE_GATED || mechanism->update_rule == ATTN_RULE_GATED_DELTA;
}

static inline bool attn_has_beta(const attn_mechanism *mechanism)
{
    return mechanism->update_rule == ATTN_RULE_DELTA || mechanism->update_rule == ATTN_RULE_GATED_DELTA;
}

/*
 * attn_performer_projection in pieces, so that a run can be cancelled between them. First the direction of each row r,
 * in order, because it depends on the rows before it. Then the lengths of all rows. The third function returns the cost
 * of both.
 */
void attn_performer_direction(uint64_t seed, size_t r, size_t d_k, double *projection);
void attn_performer_lengths(uint64_t seed, size_t features, size_t d_k, double *work, double *projection);
double attn_performer_flops(size_t features, size_t d_k);

/*
 * ---- philox.c ----
 *
 * The generator of dropout, of random features and of random blocks. Which elements dropout keeps is a
 * function of (seed, stream, position) alone; the kernels decide it (kernel/dropout.inc.h).
 *
 * Philox4x32-10, a counter-based generator: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3",
 * SC 2011. The key is the seed; the counter is (position / 4, stream); word position % 4 of the block decides. There is
 * no state, so every thread gets the same answer for an element.
 */

/* Two independent sequences from one seed. */
enum { DROPOUT_ATTENTION = 0, DROPOUT_RESIDUAL = 1 };

/* One block of the generator. */
void attn_philox(uint64_t seed, uint64_t stream, uint64_t counter, uint32_t block[4]);

#endif
