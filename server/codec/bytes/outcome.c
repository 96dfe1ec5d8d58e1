/* outcome.c: an arena and an error as a pair that remembers its first failure. */
#include "codec/bytes/outcome.h"

#include <stdio.h>
#include <string.h>

bool outcome_fail(struct outcome *outcome, attn_status status, const char *field, const char *format, ...)
{
    char message[sizeof outcome->err->message];
    if (outcome_has_failed(outcome))
        return false;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    outcome->status = attn_fail(outcome->err, status, field, "%s", message);
    return false;
}

bool outcome_no_memory(struct outcome *outcome)
{
    if (!outcome_has_failed(outcome))
        outcome->status = attn_fail_no_memory(outcome->err);
    return false;
}

bool outcome_note(struct outcome *outcome, attn_status status)
{
    if (!outcome_has_failed(outcome))
        outcome->status = status;
    return !outcome_has_failed(outcome);
}

void *outcome_take(struct outcome *outcome, size_t count, size_t size)
{
    void *taken = !outcome_has_failed(outcome) ? attn_arena_take(outcome->arena, count, size) : NULL;
    if (taken == NULL)
        outcome_no_memory(outcome);
    return taken;
}

void *outcome_take_zeroed(struct outcome *outcome, size_t count, size_t size)
{
    void *taken = outcome_take(outcome, count, size);
    return taken != NULL ? memset(taken, 0, count * size) : NULL;
}

char *outcome_copy_text(struct outcome *outcome, const char *text, size_t length)
{
    char *copy = !outcome_has_failed(outcome) ? attn_arena_copy_text(outcome->arena, text, length) : NULL;
    if (copy == NULL)
        outcome_no_memory(outcome);
    return copy;
}
