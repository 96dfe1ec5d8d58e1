/*
 * outcome.h: an arena and an error as a pair that remembers its first failure.
 *
 * Functions that take an outcome return whether they have succeeded, so that steps follow each other by &&. After the
 * first failure, no other is recorded, and nothing is taken. Who made the outcome returns its status.
 */
#ifndef CODEC_BYTES_OUTCOME_H
#define CODEC_BYTES_OUTCOME_H

#include "attn/arena.h"
#include "attn/status.h"

struct outcome {
    attn_arena *arena;
    attn_error *err;    /* may be NULL */
    attn_status status; /* of the first failure */
};

static inline bool outcome_has_failed(const struct outcome *outcome)
{
    return outcome->status != ATTN_OK;
}

/* Records a failure and returns false. field is the pointer of a member, or NULL. */
__attribute__((format(printf, 4, 5))) bool outcome_fail(struct outcome *outcome, attn_status status, const char *field,
                                                        const char *format, ...);
bool outcome_no_memory(struct outcome *outcome);
/*
 * Notes what a function has returned that fills outcome->err itself. Returns whether nothing has failed so far. Such a
 * function must not be called after a failure, because it would write over the record of the first one.
 */
bool outcome_note(struct outcome *outcome, attn_status status);
/* count items of size bytes from the arena. NULL: something has failed, now or before. */
void *outcome_take(struct outcome *outcome, size_t count, size_t size);
void *outcome_take_zeroed(struct outcome *outcome, size_t count, size_t size);
/* A copy of the text, with a NUL behind it. NULL likewise. */
char *outcome_copy_text(struct outcome *outcome, const char *text, size_t length);

#endif
