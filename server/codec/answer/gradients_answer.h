/*
 * gradients_answer.h: gradients as the JSON text of an answer.
 */
#ifndef CODEC_ANSWER_GRADIENTS_ANSWER_H
#define CODEC_ANSWER_GRADIENTS_ANSWER_H

#include "attn/gradient.h"
#include "codec/bytes/chunks.h"
#include "codec/request/envelope.h"

/*
 * Appends the whole answer, as answer_write_json does. The gradients come between shapes and effective, nested as the
 * request is:
 *   "gradients": {"inputs": {"query": …}, "weights": {"query": {"weight": …}}, "masks": {"bias": …}, "options": {…}}
 * The map grad_scores stands among the outputs; shapes has the steps' and, in "gradients", those of the gradients.
 */
void answer_write_gradients(const struct envelope *envelope, const attn_gradient_plan *plan,
                            const attn_gradient_result *result, const attn_runtime *runtime, struct chunks *out);
size_t answer_gradients_bytes_bound(const struct envelope *envelope, const attn_gradient_plan *plan);

#endif
