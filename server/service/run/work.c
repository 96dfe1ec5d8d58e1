/* work.c: decodes, plans, weighs and runs a request, with the weights of a kept layer or its own. */
#include "service/run/work.h"

#include <stdio.h>

#include "attn/diagnose.h"
#include "codec/answer/reduce.h"
#include "codec/request/envelope.h"
#include "service/registry/layer/keeper.h"

/* ---- decode ---- */

static bool decode_over(const struct call *call, envelope_kind kind, const struct kept_layer *layer,
                        struct outcome *outcome, struct envelope *envelope)
{
    struct envelope_source own = {.text = call->in.body, .length = call->in.body_bytes};
    return (call->in.body_media != MEDIA_SAFETENSORS ||
            outcome_note(outcome, envelope_open_safetensors(call->in.body, call->in.body_bytes, outcome->arena, &own,
                                                            outcome->err))) &&
           outcome_note(outcome,
                        envelope_decode_over(&layer->base, &own, kind, outcome->arena, envelope, outcome->err)) &&
           outcome_note(outcome, kept_layer_check_inputs(layer->facts, &envelope->request.inputs, outcome->err));
}

bool work_decode(const struct call *call, envelope_kind kind, const struct kept_layer *layer, struct outcome *outcome,
                 struct envelope *envelope)
{
    if (layer != NULL)
        return decode_over(call, kind, layer, outcome, envelope);
    return outcome_note(outcome,
                        (call->in.body_media == MEDIA_SAFETENSORS ? envelope_decode_safetensors : envelope_decode)(
                            call->in.body, call->in.body_bytes, kind, outcome->arena, envelope, outcome->err));
}

/* ---- plan ---- */

static bool check_labels(const struct envelope_tokens *tokens, const char *field, const char *side, size_t batch,
                         size_t length, struct outcome *outcome)
{
    char expected[64], received[64];
    if (tokens->json == NULL || (tokens->count == length && (tokens->batch == 0 || tokens->batch == batch)))
        return true;
    if (tokens->batch == 0) {
        snprintf(expected, sizeof expected, "[%zu]", length);
        snprintf(received, sizeof received, "[%zu]", tokens->count);
    } else {
        snprintf(expected, sizeof expected, "[%zu,%zu]", batch, length);
        snprintf(received, sizeof received, "[%zu,%zu]", tokens->batch, tokens->count);
    }
    outcome_fail(outcome, ATTN_ERR_SHAPE, field, "there are %zu labels for %zu positions of %s", tokens->count, length,
                 side);
    attn_expect(outcome->err, expected, received);
    return false;
}

bool work_plan_by(struct call *call, struct envelope *envelope, const attn_dims *dims, pipeline_step *make, void *work,
                  struct outcome *outcome)
{
    envelope->request.watch = call->in.runtime;
    return make(call, work, outcome) &&
           (!index_lists_count_from_end(&envelope->lists) ||
            (outcome_note(outcome, index_lists_settle(&envelope->lists, dims->heads, dims->q_len, dims->kv_len,
                                                      outcome->arena, &envelope->request.options, outcome->err)) &&
             make(call, work, outcome))) &&
           check_labels(&envelope->query_tokens, "/tokens/query", "query", dims->batch, dims->q_len, outcome) &&
           check_labels(&envelope->key_tokens, "/tokens/key", "key", dims->batch, dims->kv_len, outcome);
}

static bool make_plan(struct call *call, void *context, struct outcome *outcome)
{
    struct work *work = context;
    (void)call;
    return outcome_note(outcome, envelope_plan(&work->envelope, &work->plan, outcome->err));
}

bool work_plan(struct call *call, void *context, struct outcome *outcome)
{
    struct work *work = context;
    struct envelope *envelope = &work->envelope;
    const bool is_binary = call->in.answer_media == MEDIA_SAFETENSORS ||
                           (call->in.answer_media == MEDIA_JSON && envelope->form == TENSOR_FORM_BASE64);
    return work_plan_by(call, envelope, &work->plan.dims, make_plan, work, outcome) &&
           outcome_note(outcome,
                        reduce_plan(envelope, &work->plan, work->shown_steps, is_binary, &work->shown, outcome->err));
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

bool work_run(struct call *call, void *context, struct outcome *outcome)
{
    struct work *work = context;
    const attn_runtime *runtime = call->in.runtime;
    attn_arena *arena = outcome->arena;
    attn_error *err = outcome->err;
    return outcome_note(outcome, attn_plan_run(&work->plan, NULL, runtime, arena, &work->result, err)) &&
           outcome_note(outcome, attn_diagnose(&work->plan, NULL, runtime, arena, &work->result, err)) &&
           outcome_note(outcome,
                        reduce_result(&work->envelope, &work->plan, &work->shown, runtime, arena, &work->result, err));
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
