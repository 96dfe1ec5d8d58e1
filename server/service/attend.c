/* attend.c: a request for attention from body text to answer text: decode, plan, weigh, compute, write. */
#include "service/attend.h"

#include <stdio.h>

#include "attn/diagnose.h"
#include "base/clock.h"
#include "codec/answer/reduce.h"
#include "codec/bytes/stream.h"
#include "service/cache/caches.h"
#include "service/rendering.h"

/* The wanted step that takes the most, for a message that helps. */
static attn_step largest_step(const attn_plan *plan)
{
    int largest = 0;
    for (int step = 0; step < ATTN_STEP_COUNT; step++)
        if (plan->step_bytes[step] > plan->step_bytes[largest])
            largest = step;
    return (attn_step)largest;
}

static attn_status fail_result(const struct attend_weight *weight, size_t limit, attn_error *err)
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

attn_status attend_spend(struct call *call, const struct keys_cost *more)
{
    if (call->keys == NULL)
        return ATTN_OK;
    const struct keys_answer answer = keys_spend(call->keys, call->key, &call->owed, more);
    if (answer.verdict == KEYS_ALLOWED) {
        call->owed.bytes += more->bytes;
        call->owed.flops += more->flops;
        return ATTN_OK;
    }
    call->refusal = CALL_QUOTA;
    call->retry_after_s = answer.retry_after_s;
    return attn_fail(call->err, ATTN_ERR_VALUE, NULL,
                     "the quota of %s a second of key %s is used up by its other requests", answer.exhausted,
                     answer.name);
}

/*
 * A small body may ask for much only when that is computed: numbers and labels that it holds once, and compressed, are
 * not repeated beyond this for each of its bytes. A number takes at least one operation, and at most 32 bytes of text.
 */
enum { FREE_ANSWER_BYTES = 16 << 20, ANSWER_BYTES_PER_BYTE = 256, ANSWER_BYTES_PER_FLOP = 32 };

static bool is_repeated(const struct call *call, const struct attend_weight *weight)
{
    return weight->answer_bytes > FREE_ANSWER_BYTES &&
           weight->answer_bytes / ANSWER_BYTES_PER_BYTE > call->received_bytes &&
           (double)weight->answer_bytes > ANSWER_BYTES_PER_FLOP * weight->time_flops;
}

static attn_status fail_repeated(const struct call *call, const struct attend_weight *weight)
{
    return attn_fail(call->err, ATTN_ERR_TOO_LARGE, "/options/return",
                     "the answer could take %zu bytes, which repeat what the %zu bytes of the request hold and take "
                     "only %.3g operations: leave \"%s\" out of options.return, shorten the labels, or select some by "
                     "options.heads, queries or keys",
                     weight->answer_bytes, call->received_bytes, weight->time_flops, weight->largest);
}

/* Sums of sizes that may be huge: a double cannot wrap. */
attn_status attend_check_limits(struct call *call, const struct attend_weight *weight)
{
    const struct call_limits *limits = &call->limits;
    if (weight->answer_bytes > limits->result_bytes)
        return fail_result(weight, limits->result_bytes, call->err);
    const bool is_picture = call->answer_media == MEDIA_PNG || call->answer_media == MEDIA_SVG;
    if (!is_picture && is_repeated(call, weight)) /* the weight of a picture is its memory, too */
        return fail_repeated(call, weight);
    const bool is_streamed = call->out->may_defer && weight->answer_bytes > STREAM_BYTES_MAX;
    double memory = (double)attn_arena_bytes(call->out->arena) + weight->run_bytes +
                    (double)(is_streamed ? STREAM_BYTES_MAX : weight->answer_bytes);
    if (memory > (double)limits->memory_bytes)
        return fail_memory((size_t)memory, limits->memory_bytes, call->err);
    if (weight->time_flops > limits->flops)
        return fail_flops(weight->time_flops, limits->flops, call->err);
    return attend_spend(call, &(struct keys_cost){(double)weight->answer_bytes, weight->time_flops});
}

static attn_status check_limits(struct call *call, const struct attend_work *work, size_t answer_bytes)
{
    const attn_plan *shown = &work->shown;
    const attn_step largest = largest_step(shown);
    const size_t threads = call->runtime->threads;
    const struct attend_weight weight = {
        .answer_bytes = answer_bytes,
        .run_bytes =
            (double)attn_plan_bytes(&work->plan, threads) + (double)reduce_bytes(&work->envelope, shown, threads),
        .time_flops = work->plan.time_flops,
        .largest = attn_step_name(largest),
        .largest_is_map = attn_step_is_map(largest) || largest == ATTN_STEP_ATTENTION_MEAN,
    };
    return attend_check_limits(call, &weight);
}

static attn_status check_tokens(const struct envelope_tokens *tokens, const char *field, const char *side, size_t batch,
                                size_t length, attn_error *err)
{
    char expected[64], received[64];
    if (tokens->json == NULL || (tokens->count == length && (tokens->batch == 0 || tokens->batch == batch)))
        return ATTN_OK;
    if (tokens->batch == 0) {
        snprintf(expected, sizeof expected, "[%zu]", length);
        snprintf(received, sizeof received, "[%zu]", tokens->count);
    } else {
        snprintf(expected, sizeof expected, "[%zu,%zu]", batch, length);
        snprintf(received, sizeof received, "[%zu,%zu]", tokens->batch, tokens->count);
    }
    attn_fail(err, ATTN_ERR_SHAPE, field, "there are %zu labels for %zu positions of %s", tokens->count, length, side);
    return attn_expect(err, expected, received);
}

/* Memory that the arena's own ceiling refused is asked for in vain again: the request is too large, not the server
 * full. */
attn_status attend_explain(struct call *call, attn_status status)
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

attn_status attend_check_tokens(struct call *call, const struct envelope *envelope, const attn_dims *dims)
{
    attn_status status =
        check_tokens(&envelope->query_tokens, "/tokens/query", "query", dims->batch, dims->q_len, call->err);
    if (status == ATTN_OK)
        status = check_tokens(&envelope->key_tokens, "/tokens/key", "key", dims->batch, dims->kv_len, call->err);
    return status;
}

attn_status attend_plan(struct call *call, struct attend_work *work)
{
    const struct envelope *envelope = &work->envelope;
    attn_status status = attn_plan_make(&envelope->request, &work->plan, call->err);
    if (status == ATTN_OK)
        status = attend_check_tokens(call, envelope, &work->plan.dims);
    bool is_binary = call->answer_media == MEDIA_SAFETENSORS ||
                     (call->answer_media == MEDIA_JSON && envelope->form == TENSOR_FORM_BASE64);
    return status == ATTN_OK ? reduce_plan(envelope, &work->plan, is_binary, &work->shown, call->err) : status;
}

attn_status attend_run(struct call *call, struct attend_work *work, size_t answer_bytes, double since_ms)
{
    call->out->may_defer =
        call->out->may_defer && answer_bytes >= STREAM_FROM_BYTES && call->answer_media == MEDIA_JSON;
    attn_status status = check_limits(call, work, answer_bytes);
    call->flops = status == ATTN_OK ? work->plan.time_flops : 0;
    call->times.parse_ms = clock_lap_ms(&since_ms);
    if (status == ATTN_OK)
        status = attn_plan_run(&work->plan, &work->envelope.request, call->runtime, call->out->arena, &work->result,
                               call->err);
    if (status == ATTN_OK)
        status = attn_diagnose(&work->plan, &work->envelope.request, call->runtime, call->out->arena, &work->result,
                               call->err);
    if (status == ATTN_OK)
        status = reduce_result(&work->envelope, &work->plan, &work->shown, call->runtime, call->out->arena,
                               &work->result, call->err);
    call->times.compute_ms = clock_lap_ms(&since_ms);
    return status;
}

/* ---- the two endpoints ---- */

static attn_status decode_over(const struct call *call, const struct kept_layer *layer, struct envelope *envelope)
{
    struct envelope_base own = {.text = call->body, .length = call->body_bytes};
    attn_status status = ATTN_OK;
    if (call->body_media == MEDIA_SAFETENSORS)
        status = envelope_open_safetensors(call->body, call->body_bytes, call->out->arena, &own, call->err);
    if (status == ATTN_OK)
        status = envelope_decode_over(&layer->base, own.text, own.length, own.attachments, own.count, call->out->arena,
                                      envelope, call->err);
    return status == ATTN_OK ? kept_layer_check_inputs(layer->facts, &envelope->request.inputs, call->err) : status;
}

static attn_status decode(const struct call *call, envelope_kind kind, const struct kept_layer *layer,
                          struct envelope *envelope)
{
    if (layer != NULL)
        return decode_over(call, layer, envelope);
    if (call->body_media == MEDIA_SAFETENSORS)
        return envelope_decode_safetensors(call->body, call->body_bytes, kind, call->out->arena, envelope, call->err);
    return envelope_decode(call->body, call->body_bytes, kind, call->out->arena, envelope, call->err);
}

/* Between planning and showing, steps that are computed for a cache alone. */
static attn_status compute(struct call *call, struct attend_work *work, struct rendering *rendering,
                           struct cache_step *cache, double since)
{
    attn_status status = rendering_prepare(call, rendering, work);
    work->envelope.request.options.want |= cache->hidden;
    if (status == ATTN_OK)
        status = attend_plan(call, work);
    status = caches_check(call, cache, &work->plan, status);
    work->shown.want &= ~cache->hidden;
    work->plan.want &= ~cache->hidden;
    if (status == ATTN_OK)
        status = rendering_weigh(call, rendering, work);
    work->plan.want |= cache->hidden;
    if (status == ATTN_OK)
        status = attend_run(call, work, rendering->bytes, since);
    work->plan.want &= ~cache->hidden;
    return status;
}

static attn_status attend(struct call *call, envelope_kind kind, const struct kept_layer *layer, size_t *batch)
{
    struct attend_work work = {.plan.dims.batch = 0};
    struct rendering rendering;
    struct cache_step cache = {.name = NULL};
    const double since = clock_now_ms();
    attn_status status = rendering_begin(call, &rendering);
    if (status == ATTN_OK)
        status = decode(call, kind, layer, &work.envelope);
    if (status == ATTN_OK)
        status = caches_begin(call, &work.envelope, layer != NULL ? layer->version : 0, &cache);
    if (status == ATTN_OK)
        status = compute(call, &work, &rendering, &cache, since);
    if (status == ATTN_OK)
        status = rendering_write(call, &rendering, &work);
    status = caches_end(call, &cache, &work.result, status);
    *batch = work.plan.dims.batch;
    return attend_explain(call, status);
}

attn_status attend_attention(struct call *call)
{
    return attend(call, ENVELOPE_ATTENTION, NULL, &(size_t){0});
}

attn_status attend_layer(struct call *call)
{
    return attend(call, ENVELOPE_LAYER, NULL, &(size_t){0});
}

attn_status attend_kept(struct call *call, const struct kept_layer *layer, size_t *batch)
{
    return attend(call, ENVELOPE_LAYER, layer, batch);
}
