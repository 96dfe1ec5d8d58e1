/*
 * request.h: what a request asks for, its checks, and its plan on other data.
 *
 * Errors name the member that is wrong. Checks that read many numbers ask request->watch whether to stop. field is the
 * path of a member in the request.
 */
#ifndef ATTN_REQUEST_REQUEST_H
#define ATTN_REQUEST_REQUEST_H

#include "base/check.h"

/* ---- what it asks for ---- */

static inline bool attn_wants(const attn_options *options, attn_step step)
{
    return (options->want >> step & 1) != 0;
}

static inline bool attn_affine_is_given(const attn_affine *affine)
{
    return affine->weight != NULL || affine->bias != NULL;
}

static inline bool attn_feed_forward_is_given(const attn_feed_forward_weights *w)
{
    return attn_affine_is_given(&w->up) || attn_affine_is_given(&w->gate) || attn_affine_is_given(&w->down) ||
           attn_affine_is_given(&w->norm) || attn_affine_is_given(&w->branch_norm) || w->experts.count > 0;
}

/* Whether the block has a feed-forward network: one for all tokens, experts, or both. */
static inline bool attn_has_feed_forward(const attn_dims *dims)
{
    return dims->d_ff > 0 || dims->experts > 0;
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

/* Whether a stage stands between the heads and concat: factors of heads, or differences of pairs. */
static inline bool attn_combines_heads(const attn_options *options)
{
    return options->head_scale != NULL || options->differential != NULL;
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

/* Whether the score has a term of the table of keys, or of that of queries, of relative positions. */
static inline bool attn_has_relative_key(const attn_request *request)
{
    return request->options.relative_position.key != NULL || request->weights.relative_key.weight != NULL;
}

static inline bool attn_has_relative_query(const attn_request *request)
{
    return request->options.relative_position.query != NULL || request->weights.relative_query.weight != NULL;
}

/* Whether a layer has latents of queries or keys, or features that key heads share. */
static inline bool attn_has_latents(const attn_dims *dims)
{
    return dims->d_query_latent + dims->d_key_latent + dims->d_shared > 0;
}

/* The features of a token that the weights of queries take, and those of keys and values. */
static inline size_t attn_query_inner(const attn_dims *dims)
{
    return dims->d_query_latent > 0 ? dims->d_query_latent : dims->d_query;
}

static inline size_t attn_key_inner(const attn_dims *dims)
{
    return dims->d_key_latent > 0 ? dims->d_key_latent : dims->d_key;
}

static inline size_t attn_value_inner(const attn_dims *dims)
{
    return dims->d_key_latent > 0 ? dims->d_key_latent : dims->d_value;
}

/* A tensor with the rows of the tables. NULL: no score has such a term. */
static inline const attn_tensor *attn_relative_table(const attn_request *request)
{
    const attn_relative_position *own = &request->options.relative_position;
    if (own->key != NULL || own->query != NULL)
        return own->key != NULL ? own->key : own->query;
    return attn_has_relative_key(request) || attn_has_relative_query(request) ? own->embedding : NULL;
}

/* ---- dimensions ---- */

/*
 * The largest element count of a tensor, and of the working memory of a run. Sums of such counts, and their bytes, do
 * not overflow a size_t. No machine has that much memory.
 */
#define ATTN_NUMBERS_MAX ((size_t)1 << 48)

/* dims.c: fills *dims from the shapes of inputs and weights; start.c: of a request that starts at scores or weights. */
ATTN_MUST_CHECK bool attn_dims_read(const attn_request *request, attn_dims *dims, struct attn_check *check);
ATTN_MUST_CHECK bool attn_dims_read_start(const attn_request *request, attn_dims *dims, struct attn_check *check);
/*
 * Whether past has the shape wanted: (batch, kv_heads, axes), or the same without the batch for a query of rank 2. Where
 * wanted[2] is 0, there is no token, and the last axis may be 0, too.
 */
ATTN_MUST_CHECK bool attn_check_past(const attn_tensor *past, const char *field, const char *axes,
                                     const size_t wanted[4], const attn_dims *dims, struct attn_check *check);
/* The features of a token that enters the feed-forward network. */
size_t attn_feed_forward_d_in(const attn_request *request, const attn_dims *dims);
/*
 * A matrix of the feed-forward network, called name ("up") below weights.feed_forward in errors, of that layout: from in
 * features, which giver gives, to *out.
 */
ATTN_MUST_CHECK bool attn_matrix_read(const attn_affine *affine, const char *name, const attn_request *request,
                                      attn_layout layout, size_t in, const char *giver, size_t *out,
                                      struct attn_check *check);
/* What gives a token to the network, at the beginning of a message. */
static inline const char *attn_feed_forward_giver(const attn_request *request)
{
    return request->options.feed_forward.parallel ? "query has" : "the attention gives";
}
/* experts.c, after attn_dims_read: dims->experts and d_expert; and d_out, unless another network or residual gives it. */
ATTN_MUST_CHECK bool attn_experts_read(const attn_request *request, attn_dims *dims, struct attn_check *check);
/* A gain or shift of rows of length numbers, of rank 1; NULL is fine. */
ATTN_MUST_CHECK bool attn_check_row(const attn_tensor *vector, const char *field, attn_dtype compute, size_t length,
                                    struct attn_check *check);

/* tensors.c: whether a tensor is of the compute type, row-major without gaps, and not too large. */
ATTN_MUST_CHECK bool attn_check_tensor(const attn_tensor *tensor, const char *field, attn_dtype compute,
                                       struct attn_check *check);
/* The same, but it may be of 16 bits where the type is float32: a projection's weight. */
ATTN_MUST_CHECK bool attn_check_matrix(const attn_tensor *tensor, const char *field, attn_dtype compute,
                                       struct attn_check *check);
/* The same, but it may lie anywhere with its features side by side: tokens of attention, and a cache. */
ATTN_MUST_CHECK bool attn_check_tokens(const attn_tensor *tensor, const char *field, attn_dtype compute,
                                       struct attn_check *check);
/* Whether tensor has wanted of what on that axis, as the input other ("inputs.key") has. */
ATTN_MUST_CHECK bool attn_check_same(const attn_tensor *tensor, const char *field, int axis, size_t wanted,
                                     const char *other, const char *what, struct attn_check *check);
/* Whether there are heads, and the key heads divide them. */
ATTN_MUST_CHECK bool attn_check_groups(const attn_dims *dims, struct attn_check *check);
/* Whether an option asked (not 0) for as many heads as were found. */
ATTN_MUST_CHECK bool attn_check_heads(size_t asked, size_t found, const char *field, struct attn_check *check);
/* *each = features / heads; option is the name of what gave the heads. */
ATTN_MUST_CHECK bool attn_split_features(size_t features, size_t heads, const char *field, const char *option,
                                         size_t *each, struct attn_check *check);

/* ---- options ---- */

/* options.c: that members of an enumeration's type hold one of its values, and numbers on their own. */
ATTN_MUST_CHECK bool attn_options_check_alone(const attn_request *request, struct attn_check *check);
/*
 * All options against plan->dims and the rest of the request; calls the next three checks. Writes into *plan how many
 * heads, queries and keys the selections of maps keep.
 */
ATTN_MUST_CHECK bool attn_options_check(const attn_request *request, attn_plan *plan, struct attn_check *check);
/* norms.c: the feed-forward network of a block, the norms and the factor of branches; qk_norm and latent_norm. */
ATTN_MUST_CHECK bool attn_feed_forward_check(const attn_request *request, const attn_dims *dims,
                                             struct attn_check *check);
/* experts.c: the options of a mixture of experts. */
ATTN_MUST_CHECK bool attn_experts_check(const attn_request *request, const attn_dims *dims, struct attn_check *check);
ATTN_MUST_CHECK bool attn_qk_check(const attn_request *request, const attn_dims *dims, struct attn_check *check);
ATTN_MUST_CHECK bool attn_check_eps(double eps, const char *field, struct attn_check *check);
/* recurrence.c: an update_rule, and the inputs decay, beta and past_state. */
ATTN_MUST_CHECK bool attn_recurrence_check(const attn_request *request, const attn_dims *dims,
                                           struct attn_check *check);
/* bias.c: relative_position. */
ATTN_MUST_CHECK bool attn_relative_check(const attn_request *request, const attn_dims *dims, struct attn_check *check);
/* rope.c: rope; fills in plan->rope_dim and plan->rope_length. */
ATTN_MUST_CHECK bool attn_rope_check(const attn_request *request, attn_plan *plan, struct attn_check *check);
/* bias.c: alibi, relative_bias, sinks, head_scale and differential against the heads and the mask. */
ATTN_MUST_CHECK bool attn_score_bias_check(const attn_request *request, const attn_plan *plan,
                                           struct attn_check *check);

/* Whether something lies between the scaled and the masked score, so that their gradients differ. */
bool attn_caps_scores(const attn_options *options);

/* ---- bindings.c ---- */

/* A plan for one run. Its inputs point to tensors, so it stays where it is. */
struct attn_bound {
    attn_plan plan;
    attn_tensor tensors[10];
};

/*
 * *bound = plan with the data of bindings (NULL: none). ATTN_ERR_FIELD names an input that the request does not have, or
 * that has no data. grad_output is not read.
 */
ATTN_MUST_CHECK attn_status attn_bind(const attn_plan *plan, const attn_bindings *bindings, struct attn_bound *bound,
                                      attn_error *err);

#endif
