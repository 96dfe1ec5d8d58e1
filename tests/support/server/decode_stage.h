/*
 * decode_stage.h: for tests of decoders: an arena per test, the error of the last call, and the comparison of a refusal
 * with the expected one.
 */
#ifndef TESTS_UNIT_SERVER_CODEC_REQUEST_DECODE_STAGE_H
#define TESTS_UNIT_SERVER_CODEC_REQUEST_DECODE_STAGE_H

#include <string.h>

#include "check_main.h"
#include "codec/request/envelope.h"

static attn_arena *arena;
static attn_error err;

static inline void prepare(void)
{
    envelope_prepare();
    arena = attn_arena_create(64 << 20);
    ck_assert_ptr_nonnull(arena);
}

static inline void release(void)
{
    attn_arena_destroy(arena);
}

/* A refused text and its error: the code, the JSON pointer of the member, a part of the message. */
struct refusal {
    const char *text;
    attn_status status;
    const char *pointer, *fragment;
};

static inline void check_refusal(const struct refusal *refusal, attn_status status)
{
    ck_assert_msg(status == refusal->status, "%s: %s: %s", refusal->text, attn_status_name(status), err.message);
    ck_assert_int_eq(err.status, status);
    ck_assert_msg(strcmp(err.field, refusal->pointer) == 0, "%s: %s: %s", refusal->text, err.field, err.message);
    ck_assert_msg(strstr(err.message, refusal->fragment) != NULL, "%s: %s", refusal->text, err.message);
}

#endif
