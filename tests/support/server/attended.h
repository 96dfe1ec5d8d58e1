/*
 * attended.h: runs a request in JSON to its result, for tests of answers.
 */
#ifndef TESTS_ATTENDED_H
#define TESTS_ATTENDED_H

#include "attn/multihead.h"
#include "codec/answer/forms.h"
#include "codec/request/envelope.h"

struct attended {
    attn_arena *arena;
    attn_runtime runtime;
    struct envelope envelope;
    attn_plan plan, shown;
    attn_result whole, result; /* before and after the reductions */
    attn_error err;
};

/* Decodes, plans, runs and reduces; all memory comes from arena. Stops at the first failure and returns it. */
attn_status attended_run(struct attended *attended, const char *text, bool is_binary, attn_arena *arena,
                         const attn_runtime *runtime);

/* The answer as one terminated text, or bytes; checks that its length is within its bound. */
char *attended_answer(const struct attended *attended, enum media media, size_t *length);

/* An element of a tensor of rank 4, float32 or float64. */
double attended_at(const attn_tensor *tensor, size_t b, size_t h, size_t i, size_t j);

#endif
