/*
 * reduce.h: maps made smaller before they are sent: options.pool, top_k and dtype of a request.
 *
 *   pool   Row r of R stands for the rows from floor(r n / R) to before floor((r + 1) n / R) of the n that are
 *          selected; columns likewise. Its value is the maximum, or the mean, of the cells that the mask allows: hidden
 *          ones do not count. A cell without any is 0, or -infinity in a map of scores, or false in the mask. More rows
 *          than there are give those that there are. attention_mean counts a cell when some head allows it.
 *   top_k  In place of the attention map the k largest weights of every row, falling, the lower key first among equals:
 *          the weights in the map's place, the keys' positions (in the whole sequence, whatever is selected) as int64
 *          beside it. Hidden keys are never among them; where too few are left, the position is -1 and the weight 0.
 *          k above the number of keys gives all.
 *   dtype  Maps as other numbers, rounded to nearest; uint8 is round(255 w). Other outputs stay as they are.
 *
 * They apply to what the heads, queries and keys of the options have left, in this order.
 */
#ifndef CODEC_ANSWER_REDUCE_H
#define CODEC_ANSWER_REDUCE_H

#include "attn/multihead.h"
#include "codec/request/envelope.h"

/*
 * *shown = *plan with the steps that the answer shows, a subset of those computed, in the shapes and types in which it
 * shows them. steps: a bit 1 << attn_step for each. is_binary: whether tensors go out as bytes.
 *   ATTN_ERR_FIELD dtype, and the answer is text
 */
ATTN_MUST_CHECK attn_status reduce_plan(const struct envelope *envelope, const attn_plan *plan, uint32_t steps,
                                        bool is_binary, attn_plan *shown, attn_error *err);
/* Whether a step is the map that top_k stands for. */
bool reduce_keeps_top(const struct envelope_reduction *reduction, int step);
/* Arena bytes that reduce_result takes, at most. */
double reduce_bytes(const struct envelope *envelope, const attn_plan *shown, size_t threads);
/*
 * Puts the reduced maps in the place of the whole ones, and the positions of top_k into envelope->reduction. The bytes
 * do not depend on the number of threads.
 *   ATTN_ERR_VALUE a number that dtype cannot hold; ATTN_ERR_NO_MEMORY, ATTN_ERR_CANCELLED
 */
ATTN_MUST_CHECK attn_status reduce_result(struct envelope *envelope, const attn_plan *plan, const attn_plan *shown,
                                          const attn_runtime *runtime, attn_arena *arena, attn_result *result,
                                          attn_error *err);

#endif
