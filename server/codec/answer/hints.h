/*
 * hints.h: diagnostics.hints of an answer: the ambiguous parts of a request that was computed. A hint has a pointer
 * into the request and a sentence.
 */
#ifndef CODEC_ANSWER_HINTS_H
#define CODEC_ANSWER_HINTS_H

#include "attn/multihead.h"
#include "attn/plan.h"
#include "codec/bytes/chunks.h"
#include "codec/request/envelope.h"

/* Appends ,"hints":[{"pointer", "message"}, …] to the members of diagnostics; nothing when there is no hint. */
void hints_write(const struct envelope *envelope, const attn_plan *plan, const attn_result *result, struct chunks *out);

/* Appends "hints":[{"pointer", "message"}, or a comma and a further hint. The caller ends the list when *count > 0. */
void hints_add(const char *pointer, const char *message, size_t *count, struct chunks *out);

#endif
