/*
 * answer_parts.h: what answers of several forms have in common. Private to answer*.c.
 */
#ifndef CODEC_ANSWER_PARTS_H
#define CODEC_ANSWER_PARTS_H

#include "codec/answer.h"

/* JSON objects. */
void answer_write_effective(const struct envelope *envelope, const attn_plan *plan, const attn_runtime *runtime,
                            struct chunks *out);
void answer_write_diagnostics(const attn_plan *plan, const attn_result *result, struct chunks *out);
bool answer_has_tokens(const struct envelope *envelope);
void answer_write_tokens(const struct envelope *envelope, struct chunks *out);
/* The three together take at most so many bytes. */
size_t answer_facts_bound(const struct envelope *envelope, const attn_plan *plan);

/* A JSON number, or one of "NaN", "Infinity", "-Infinity". */
void answer_write_number(struct chunks *out, double value);

#endif
