/*
 * envelope_stage.h: requests as text, decoded, for the test programs of requests and of their hints.
 */
#ifndef TESTS_SUPPORT_SERVER_ENVELOPE_STAGE_H
#define TESTS_SUPPORT_SERVER_ENVELOPE_STAGE_H

#include "codec/request/envelope.h"
#include "decode_stage.h"

static struct envelope envelope;

static inline attn_status decode_as(envelope_kind kind, const char *text)
{
    err = (attn_error){0};
    return envelope_decode(text, strlen(text), kind, arena, &envelope, &err);
}

static inline void accept_as(envelope_kind kind, const char *text)
{
    attn_status status = decode_as(kind, text);
    ck_assert_msg(status == ATTN_OK, "%s: %s: %s", text, attn_status_name(status), err.message);
}

static inline void accept(const char *text)
{
    accept_as(ENVELOPE_ATTENTION, text);
}

#endif
