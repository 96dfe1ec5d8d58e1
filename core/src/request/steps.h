/*
 * steps.h: which steps a request asks for, and which stages it runs.
 */
#ifndef ATTN_REQUEST_STEPS_H
#define ATTN_REQUEST_STEPS_H

#include "attn/plan.h"

static inline bool attn_wants(const attn_options *options, attn_step step)
{
    return (options->want >> step & 1) != 0;
}

/* Whether the inputs are normalised, and not the output. */
static inline bool attn_is_pre_normed(const attn_options *options)
{
    return options->norm != ATTN_NORM_NONE && options->norm_position == ATTN_NORM_PRE;
}

static inline bool attn_is_post_normed(const attn_options *options)
{
    return options->norm != ATTN_NORM_NONE && options->norm_position == ATTN_NORM_POST;
}

static inline bool attn_drops_residual(const attn_options *options)
{
    return options->dropout > 0 && options->dropout_residual;
}

/* Whether the result of a branch changes before it is added to the residual. */
static inline bool attn_changes_branch(const attn_options *options)
{
    return options->branch_norm != ATTN_NORM_NONE || (options->residual_scale != 0 && options->residual_scale != 1);
}

/* Whether the sum before a post-norm is not the result of the output projection. */
static inline bool attn_changes_sum(const attn_options *options)
{
    return options->residual || attn_drops_residual(options) || attn_changes_branch(options);
}

/* Whether queries and keys are normalised or rotated. */
static inline bool attn_qk_is_changed(const attn_options *options)
{
    return options->rope.layout != ATTN_ROPE_NONE || options->qk_norm != ATTN_NORM_NONE;
}

#endif
