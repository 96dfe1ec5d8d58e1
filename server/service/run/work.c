/* work.c: decodes, plans, weighs and runs a request, with the weights of a kept layer or its own. */
#include "service/run/work.h"

#include <stdio.h>

#include "attn/diagnose.h"
#include "codec/answer/reduce.h"
#include "codec/request/envelope.h"
#include "service/registry/layer/keeper.h"

/* ---- decode ---- */

static attn_status decode_over(const struct call *call, envelope_kind kind, const struct kept_layer *layer,
                               struct envelope *envelope)
{
    struct envelope_source own = {.text = call->in.body, .length = call->in.body_bytes};
    attn_status status = ATTN_OK;
    if (call->in.body_media == MEDIA_SAFETENSORS)
        status = envelope_open_safetensors(call->in.body, call->in.body_bytes, call->out->arena, &own, call->err);
    if (status == ATTN_OK)
        status = envelope_decode_over(&layer->base, &own, kind, call->out->arena, envelope, call->err);
    return status == ATTN_OK ? kept_layer_check_inputs(layer->facts, &envelope->request.inputs, call->err) : status;
}

attn_status work_decode(const struct call *call, envelope_kind kind, const struct kept_layer *layer,
                        struct envelope *envelope)
{
    if (layer != NULL)
        return decode_over(call, kind, layer, envelope);
    return (call->in.body_media == MEDIA_SAFETENSORS ? envelope_decode_safetensors : envelope_decode)(
        call->in.body, call->in.body_bytes, kind, call->out->arena, envelope, call->err);
}

/* ---- plan ---- */

static attn_status check_labels(const struct envelope_tokens *tokens, const char *field, const char *side, size_t batch,
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

static attn_status check_all_labels(struct call *call, const struct envelope *envelope, const attn_dims *dims)
{
    attn_status status =
        check_labels(&envelope->query_tokens, "/tokens/query", "query", dims->batch, dims->q_len, call->err);
    if (status == ATTN_OK)
        status = check_labels(&envelope->key_tokens, "/tokens/key", "key", dims->batch, dims->kv_len, call->err);
    return status;
}

attn_status work_plan_by(struct call *call, struct envelope *envelope, const attn_dims *dims, pipeline_step *make,
                         void *work)
{
    envelope->request.watch = call->in.runtime;
    attn_status status = make(call, work);
    if (status == ATTN_OK && index_lists_count_from_end(&envelope->lists)) {
        status = index_lists_settle(&envelope->lists, dims->heads, dims->q_len, dims->kv_len, call->out->arena,
                                    &envelope->request.options, call->err);
        status = status == ATTN_OK ? make(call, work) : status;
    }
    return status == ATTN_OK ? check_all_labels(call, envelope, dims) : status;
}

static attn_status make_plan(struct call *call, void *context)
{
    struct work *work = context;
    return envelope_plan(&work->envelope, &work->plan, call->err);
}

attn_status work_plan(struct call *call, struct work *work)
{
    struct envelope *envelope = &work->envelope;
    const bool is_binary = call->in.answer_media == MEDIA_SAFETENSORS ||
                           (call->in.answer_media == MEDIA_JSON && envelope->form == TENSOR_FORM_BASE64);
    const attn_status status = work_plan_by(call, envelope, &work->plan.dims, make_plan, work);
    return status == ATTN_OK ? reduce_plan(envelope, &work->plan, work->shown_steps, is_binary, &work->shown, call->err)
                             : status;
}

/* ---- weigh ---- */

/* The largest shown step. An error names it as the step to leave out. */
static attn_step largest_step(const attn_plan *shown)
{
    int largest = 0;
    for (int step = 0; step < ATTN_STEP_COUNT; step++)
        if (shown->want >> step & 1 && shown->step_bytes[step] > shown->step_bytes[largest])
            largest = step;
    return (attn_step)largest;
}

struct weight work_weigh(const struct call *call, const struct work *work, size_t answer_bytes)
{
    const attn_plan *shown = &work->shown;
    const attn_step largest = largest_step(shown);
    const size_t threads = call->in.runtime->threads;
    return (struct weight){
        .answer_bytes = answer_bytes,
        .run_bytes =
            (double)attn_plan_bytes(&work->plan, threads) + (double)reduce_bytes(&work->envelope, shown, threads),
        .time_flops = work->plan.time_flops,
        .largest = attn_step_name(largest),
        .largest_is_map = attn_step_has_keys(largest),
    };
}

/* ---- run ---- */

attn_status work_run(struct call *call, struct work *work)
{
    attn_arena *arena = call->out->arena;
    attn_status status = attn_plan_run(&work->plan, NULL, call->in.runtime, arena, &work->result, call->err);
    if (status == ATTN_OK)
        status = attn_diagnose(&work->plan, NULL, call->in.runtime, arena, &work->result, call->err);
    return status == ATTN_OK ? reduce_result(&work->envelope, &work->plan, &work->shown, call->in.runtime, arena,
                                             &work->result, call->err)
                             : status;
}

/* ---- kept layers ---- */

attn_status work_compute(struct call *call, envelope_kind kind, work_function *compute)
{
    struct layer_version *version = layer_version_of(call->version);
    struct prepared_weights *prepared = NULL;
    struct kept_layer layer;
    if (version != NULL) {
        layer = (struct kept_layer){version->base, &version->facts, version->number};
        prepared = prepared_weights_take(layer_keeper_prepared(call->in.layers), &version->prepared, &version->facts,
                                         call->in.runtime, call->out->arena, &layer.base);
    }
    const attn_status status = compute(call, kind, version != NULL ? &layer : NULL);
    prepared_weights_release(prepared);
    layer_keeper_count(call, status);
    return status;
}

attn_status work_compute_kept(struct call *call, envelope_kind kind, work_function *compute)
{
    attn_status status = layer_keeper_find(call->in.layers, call->in.names[0], call);
    if (status == ATTN_OK)
        status = layer_check_conditions(layer_version_of(call->version), call);
    return status == ATTN_OK ? work_compute(call, kind, compute) : version_confirm(call, status);
}
