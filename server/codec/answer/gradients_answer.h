/*
 * gradients_answer.h: writes gradients as the JSON text of an answer.
 */
#ifndef CODEC_ANSWER_GRADIENTS_ANSWER_H
#define CODEC_ANSWER_GRADIENTS_ANSWER_H

#include "attn/gradient.h"
#include "codec/bytes/chunks.h"
#include "codec/request/envelope.h"

/*
 * Appends the whole answer, as answer_write_json does. The gradients stand between shapes and effective, nested like
 * the request:
 *   "gradients": {"inputs": {"query": …}, "weights": {"query": {"weight": …}}, "masks": {"bias": …}, "options": {…}}
 * The map grad_scores is one of the outputs. "shapes" has the shapes of the steps and, in "gradients", those of the
 * gradients.
 */
void answer_write_gradients(const struct envelope *envelope, const attn_gradient_plan *plan,
                            const attn_gradient_result *result, const attn_runtime *runtime, struct chunks *out);
size_t answer_gradients_bytes_bound(const struct envelope *envelope, const attn_gradient_plan *plan);

#endif
