/*
 * answer.h: a result as the JSON text of an answer: outputs, shapes, effective, diagnostics, tokens; and an error as
 * one.
 */
#ifndef CODEC_ANSWER_ANSWER_H
#define CODEC_ANSWER_ANSWER_H

#include "attn/gradient.h"
#include "attn/multihead.h"
#include "codec/bytes/chunks.h"
#include "codec/request/envelope.h"

/*
 * Appends the whole answer to a request:
 *   {"outputs": {…}, "shapes": {…}, "effective": {…}, "diagnostics": {…}, "tokens": {…}}
 * Outputs come in the order of ATTN_STEP_LIST and have no leading dimensions that the request did not have, except the
 * maps, which are always (batch, heads, q_len, kv_len). Without memory out->is_ok becomes false.
 */
void answer_write_json(const struct envelope *envelope, const attn_plan *plan, const attn_result *result,
                       const attn_runtime *runtime, struct chunks *out);

/* At most so many bytes of text come out: what the limit on results is compared with, before anything runs. */
size_t answer_bytes_bound(const struct envelope *envelope, const attn_plan *plan);

/*
 * The same for gradients, which come between shapes and effective, nested as the request is:
 *   "gradients": {"inputs": {"query": …}, "weights": {"query": {"weight": …}}, "masks": {"bias": …}, "options": {…}}
 * The map grad_scores stands among the outputs; shapes has the steps' and, in "gradients", those of the gradients.
 */
void answer_write_gradients(const struct envelope *envelope, const attn_gradient_plan *plan,
                            const attn_gradient_result *result, const attn_runtime *runtime, struct chunks *out);
size_t answer_gradients_bytes_bound(const struct envelope *envelope, const attn_gradient_plan *plan);

/* {"error": …, "type": "/problems/shape", "title": …, "status": …, "detail": …, "pointer": …, …} */
void answer_write_error(const attn_error *error, const char *type, const char *title, int http_status,
                        const char *request_id, struct chunks *out);

#endif
