/*
 * answer_parts.h: what answers of several forms have in common. Private to answer*.c.
 */
#ifndef CODEC_ANSWER_ANSWER_PARTS_H
#define CODEC_ANSWER_ANSWER_PARTS_H

#include "codec/answer/answer.h"

/* JSON objects. */
void answer_write_effective(const struct envelope *envelope, const attn_plan *plan, const attn_runtime *runtime,
                            struct chunks *out);
void answer_write_diagnostics(const struct envelope *envelope, const attn_plan *plan, const attn_result *result,
                              struct chunks *out);
bool answer_has_tokens(const struct envelope *envelope);
void answer_write_tokens(const struct envelope *envelope, struct chunks *out);
/* The three together take at most so many bytes. */
size_t answer_facts_bound(const struct envelope *envelope, const attn_plan *plan);

/* A JSON number, or one of "NaN", "Infinity", "-Infinity". */
void answer_write_number(struct chunks *out, double value);

/* "name": for the next member of an object. */
void answer_begin_member(struct chunks *out, bool *is_first, const char *name);
void answer_write_sizes(struct chunks *out, const size_t *sizes, size_t count);

/* What an answer has beside the steps: members within "outputs" and within "shapes". */
struct answer_more {
    void (*write_outputs)(const void *context, bool *is_first, struct chunks *out);
    void (*write_shapes)(const void *context, bool *is_first, struct chunks *out);
    const void *context;
};

/* {"outputs": {…}, "shapes": {…} — the steps that plan wants, and more (NULL: nothing). */
void answer_write_outputs(const struct envelope *envelope, const attn_plan *plan, const attn_result *result,
                          const struct answer_more *more, const attn_runtime *runtime, struct chunks *out);
/* , "effective": {…}, "diagnostics": {…}, "tokens": {…}} — the end of the answer. */
void answer_write_facts(const struct envelope *envelope, const attn_plan *plan, const attn_result *result,
                        const attn_runtime *runtime, struct chunks *out);

#endif
