/* limits.c: compares the cost of a request with its limits. */
#include "service/limits.h"

#include <stdio.h>

#include "codec/bytes/stream.h"

static attn_status fail_result(const struct weight *weight, size_t limit, attn_error *err)
{
    char expected[48], received[48];
    snprintf(expected, sizeof expected, "\"at most %zu bytes\"", limit);
    snprintf(received, sizeof received, "\"up to %zu bytes\"", weight->answer_bytes);
    attn_fail(err, ATTN_ERR_TOO_LARGE, "/options/return",
              "the answer could take %zu bytes of text, this server's limit is %zu; the largest part is \"%s\": leave "
              "it out of options.return%s, or use format base64 or fewer digits",
              weight->answer_bytes, limit, weight->largest,
              weight->largest_is_map ? ", select some of it by options.heads, queries or keys" : "");
    return attn_expect(err, expected, received);
}

static attn_status fail_memory(size_t bytes, size_t limit, attn_error *err)
{
    return attn_fail(err, ATTN_ERR_TOO_LARGE, "/inputs",
                     "the computation would take %zu bytes of memory, this server's limit for a request is %zu: send "
                     "fewer batch items at a time, ask for fewer steps, or select heads, queries or keys",
                     bytes, limit);
}

static attn_status fail_flops(double flops, double limit, attn_error *err)
{
    return attn_fail(err, ATTN_ERR_TOO_LARGE, "/inputs",
                     "the computation would take the time of %.3g floating-point operations, this server's limit for a "
                     "request is %.3g: send fewer batch items or shorter sequences at a time",
                     flops, limit);
}

attn_status limits_spend(struct call *call, const struct keys_cost *more)
{
    if (call->in.keys == NULL)
        return ATTN_OK;
    const struct keys_answer answer = keys_spend(call->in.keys, call->in.key, &call->owed, more);
    if (answer.verdict == KEYS_ALLOWED) {
        call->owed.bytes += more->bytes;
        call->owed.flops += more->flops;
        return ATTN_OK;
    }
    call->retry_after_s = answer.retry_after_s;
    return call_refuse(call, CALL_QUOTA, "the quota of %s per second of key %s is used up by its other requests",
                       answer.exhausted, answer.name);
}

/*
 * A large answer needs either a large body or much computation. Otherwise a compressed body of a few bytes could have
 * its numbers and labels repeated in gigabytes. A computed number takes at least one operation, and at most 32 bytes of
 * text.
 */
enum { FREE_ANSWER_BYTES = 16 << 20, ANSWER_BYTES_PER_BYTE = 256, ANSWER_BYTES_PER_FLOP = 32 };

static bool is_repeated(const struct call *call, const struct weight *weight)
{
    return weight->answer_bytes > FREE_ANSWER_BYTES &&
           weight->answer_bytes / ANSWER_BYTES_PER_BYTE > call->in.received_bytes &&
           (double)weight->answer_bytes > ANSWER_BYTES_PER_FLOP * weight->time_flops;
}

static attn_status fail_repeated(const struct call *call, const struct weight *weight)
{
    return attn_fail(call->err, ATTN_ERR_TOO_LARGE, "/options/return",
                     "the answer could take %zu bytes, which repeat what the %zu bytes of the request hold and take "
                     "only %.3g operations: leave \"%s\" out of options.return, shorten the labels, or select some by "
                     "options.heads, queries or keys",
                     weight->answer_bytes, call->in.received_bytes, weight->time_flops, weight->largest);
}

/* The sum is a double, because sizes may be huge and a double does not wrap. */
attn_status limits_check(struct call *call, const struct weight *weight)
{
    const struct call_limits *limits = &call->in.limits;
    call->out->may_defer =
        call->out->may_defer && weight->answer_bytes >= STREAM_FROM_BYTES && call->in.answer_media == MEDIA_JSON;
    if (weight->answer_bytes > limits->result_bytes)
        return fail_result(weight, limits->result_bytes, call->err);
    if (!media_is_picture(call->in.answer_media) && is_repeated(call, weight)) /* its memory has a picture's cost */
        return fail_repeated(call, weight);
    const bool is_streamed = call->out->may_defer && weight->answer_bytes > STREAM_BYTES_MAX;
    double memory = (double)attn_arena_bytes(call->out->arena) + weight->run_bytes +
                    (double)(is_streamed ? STREAM_BYTES_MAX : weight->answer_bytes);
    if (memory > (double)limits->memory_bytes)
        return fail_memory((size_t)memory, limits->memory_bytes, call->err);
    if (weight->time_flops > limits->flops)
        return fail_flops(weight->time_flops, limits->flops, call->err);
    attn_status status = limits_spend(call, &(struct keys_cost){(double)weight->answer_bytes, weight->time_flops});
    call->flops = status == ATTN_OK ? weight->time_flops : 0;
    return status;
}

/*
 * When the arena's own limit refused the memory, a retry would fail again. So the request is too large, and the server
 * is not full.
 */
attn_status limits_explain(struct call *call, attn_status status)
{
    const attn_arena *arena = call->out->arena;
    if (status != ATTN_ERR_NO_MEMORY || !attn_arena_hit_limit(arena))
        return status;
    return attn_fail(
        call->err, ATTN_ERR_TOO_LARGE, "/inputs",
        "the request takes more memory than this server's limit for one, %zu bytes: send fewer batch items "
        "or shorter sequences at a time, or ask for fewer steps",
        attn_arena_limit_bytes(arena));
}
