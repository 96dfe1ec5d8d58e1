/*
 * checks.h: the checks of a request, besides the shapes that dims.h reads. Each check has a file of its own. Its error
 * names the member that is wrong. Checks that read many numbers ask request->watch whether to stop.
 */
#ifndef ATTN_REQUEST_CHECKS_H
#define ATTN_REQUEST_CHECKS_H

#include "base/check.h"

/* check_words.c: that members of an enumeration's type hold one of its values. */
ATTN_MUST_CHECK bool attn_words_check(const attn_request *request, struct attn_check *check);
/* check_options.c: numbers on their own. */
ATTN_MUST_CHECK bool attn_options_check_numbers(const attn_options *options, struct attn_check *check);
/*
 * All options against plan->dims and the rest of the request; calls the five checks below. Writes into *plan how many
 * heads, queries and keys the selections of maps keep.
 */
ATTN_MUST_CHECK bool attn_options_check(const attn_request *request, attn_plan *plan, struct attn_check *check);

/* check_start.c: what does not go with inputs.scores or inputs.attention. */
ATTN_MUST_CHECK bool attn_start_check(const attn_request *request, struct attn_check *check);
/* check_feed_forward.c: the feed-forward network of a block, and the norms and the factor of branches. */
ATTN_MUST_CHECK bool attn_feed_forward_check(const attn_request *request, const attn_dims *dims,
                                             struct attn_check *check);
/* check_qk.c: qk_norm and its weights. */
ATTN_MUST_CHECK bool attn_qk_check(const attn_request *request, const attn_dims *dims, struct attn_check *check);
/* check_rope.c: rope; fills in plan->rope_dim and plan->rope_length. */
ATTN_MUST_CHECK bool attn_rope_check(const attn_request *request, attn_plan *plan, struct attn_check *check);
/* check_mechanism.c: linear and performer, and the options that they exclude. */
ATTN_MUST_CHECK bool attn_mechanism_check(const attn_request *request, const attn_dims *dims, struct attn_check *check);

/* check_bias.c: alibi, relative_bias, sinks and head_scale against the heads and the mask. */
ATTN_MUST_CHECK bool attn_score_bias_check(const attn_request *request, const attn_plan *plan,
                                           struct attn_check *check);

#endif
