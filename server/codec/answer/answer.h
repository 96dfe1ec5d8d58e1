/*
 * answer.h: writes a result as the JSON text of an answer: outputs, shapes, effective, diagnostics, tokens. Answers of
 * other forms share some parts.
 */
#ifndef CODEC_ANSWER_ANSWER_H
#define CODEC_ANSWER_ANSWER_H

#include "attn/multihead.h"
#include "codec/bytes/chunks.h"
#include "codec/request/envelope.h"

/* The data that an answer is made from. */
struct answer {
    const struct envelope *envelope;
    const attn_plan *plan;     /* the steps that the answer shows, as reduce_plan makes it */
    const attn_result *result; /* NULL before the computation; checks and bounds need no result */
};

/*
 * Appends the whole answer to a request:
 *   {"outputs": {…}, "shapes": {…}, "effective": {…}, "diagnostics": {…}, "tokens": {…}}
 * Outputs come in the order of ATTN_STEP_LIST and have no leading dimensions that the request did not have, except the
 * maps, which are always (batch, heads, q_len, kv_len). Without memory out->is_ok becomes false.
 */
void answer_write_json(const struct envelope *envelope, const attn_plan *plan, const attn_result *result,
                       const attn_runtime *runtime, struct chunks *out);

/* The longest answer, in bytes. It is compared with the limit on answers before the computation. */
size_t answer_bytes_bound(const struct envelope *envelope, const attn_plan *plan);

/* ---- parts of an answer ---- */

/* Each function writes a JSON object. */
void answer_write_effective(const struct envelope *envelope, const attn_plan *plan, const attn_runtime *runtime,
                            struct chunks *out);
void answer_write_diagnostics(const struct envelope *envelope, const attn_plan *plan, const attn_result *result,
                              struct chunks *out);
bool answer_has_tokens(const struct envelope *envelope);
void answer_write_tokens(const struct envelope *envelope, struct chunks *out);
/* The longest text of effective, diagnostics and tokens together, in bytes. */
size_t answer_facts_bound(const struct envelope *envelope, const attn_plan *plan);

/* A JSON number, or one of "NaN", "Infinity", "-Infinity". */
void answer_write_number(struct chunks *out, double value);

/* "name": for the next member of an object. */
void answer_begin_member(struct chunks *out, bool *is_first, const char *name);
void answer_write_sizes(struct chunks *out, const size_t *sizes, size_t count);

/* Results beside the steps: further members within "outputs" and within "shapes". */
struct answer_more {
    void (*write_outputs)(const void *context, bool *is_first, struct chunks *out);
    void (*write_shapes)(const void *context, bool *is_first, struct chunks *out);
    const void *context;
};

/*
 * Writes {"outputs": {…}, "shapes": {…} with the steps that plan wants, and with the members of more (NULL: no more).
 */
void answer_write_outputs(const struct envelope *envelope, const attn_plan *plan, const attn_result *result,
                          const struct answer_more *more, const attn_runtime *runtime, struct chunks *out);
/* Writes , "effective": {…}, "diagnostics": {…}, "tokens": {…}} — the end of the answer. */
void answer_write_facts(const struct envelope *envelope, const attn_plan *plan, const attn_result *result,
                        const attn_runtime *runtime, struct chunks *out);

#endif
