/*
 * reduce.h: reduces maps before they are sent: options.pool, top_k and dtype of a request.
 *
 *   pool   Merges the n selected rows into R rows, and columns likewise. Row r is made from the rows from
 *          floor(r n / R) to before floor((r + 1) n / R). A cell is the maximum, or the mean, of its source cells that
 *          the mask allows. A cell whose source cells are all hidden is 0, -infinity in a map of scores, and false in
 *          the mask. When R is larger than n, the n rows stay. attention_mean and difference count a
 *          cell that some head of theirs allows.
 *   top_k  Replaces the attention map by the k largest weights of every row, in falling order; among equals, the lower
 *          key comes first. The weights take the map's place. The positions of their keys (in the whole sequence, also
 *          with a selection) are an int64 tensor beside it. Hidden keys are left out. Where a row has fewer than k
 *          keys, the position is -1 and the weight is 0. When k exceeds the number of keys, all keys are shown.
 *   dtype  Converts maps to another type, rounded to nearest. uint8 is round(255 w). Other outputs stay as they are.
 *
 * The reductions apply in this order, after the heads, queries and keys of the options have selected.
 */
#ifndef CODEC_ANSWER_REDUCE_H
#define CODEC_ANSWER_REDUCE_H

#include "attn/multihead.h"
#include "codec/request/envelope.h"

/*
 * Makes *shown: the plan with the steps that the answer shows, in the shapes and types of the answer. steps is a subset
 * of the computed steps. is_binary says whether the answer has tensors as bytes.
 *   ATTN_ERR_FIELD dtype is set, but the answer is text
 */
ATTN_MUST_CHECK attn_status reduce_plan(const struct envelope *envelope, const attn_plan *plan, attn_steps steps,
                                        bool is_binary, attn_plan *shown, attn_error *err);
/* Whether top_k replaces the map of that step. */
bool reduce_keeps_top(const struct envelope_reduction *reduction, int step);
/* The most arena bytes that reduce_result takes. */
double reduce_bytes(const struct envelope *envelope, const attn_plan *shown, size_t threads);
/*
 * Replaces the whole maps by the reduced ones, and writes the positions of top_k to envelope->reduction. The result
 * does not depend on the number of threads.
 *   ATTN_ERR_VALUE a number that dtype cannot hold; ATTN_ERR_NO_MEMORY, ATTN_ERR_CANCELLED
 */
ATTN_MUST_CHECK attn_status reduce_result(struct envelope *envelope, const attn_plan *plan, const attn_plan *shown,
                                          const attn_runtime *runtime, attn_arena *arena, attn_result *result,
                                          attn_error *err);

#endif
