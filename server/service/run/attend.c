/* attend.c: a request for attention from body text to answer text: decode, cache, plan, weigh, run, write. */
#include "service/endpoints.h"

#include "base/clock.h"
#include "codec/request/envelope_decode.h"
#include "service/cache/request.h"
#include "service/limits.h"
#include "service/registry/layer/compute.h"
#include "service/registry/layer/keeper.h"
#include "service/run/rendering.h"
#include "service/run/work.h"

/* ---- decode ---- */

static attn_status decode_over(const struct call *call, const struct kept_layer *layer, struct envelope *envelope)
{
    struct envelope_source own = {.text = call->in.body, .length = call->in.body_bytes};
    attn_status status = ATTN_OK;
    if (call->in.body_media == MEDIA_SAFETENSORS)
        status = envelope_open_safetensors(call->in.body, call->in.body_bytes, call->out->arena, &own, call->err);
    if (status == ATTN_OK)
        status = envelope_decode_over(&layer->base, &own, ENVELOPE_LAYER, call->out->arena, envelope, call->err);
    return status == ATTN_OK ? kept_layer_check_inputs(layer->facts, &envelope->request.inputs, call->err) : status;
}

static attn_status decode_body(const struct call *call, envelope_kind kind, const struct kept_layer *layer,
                               struct envelope *envelope)
{
    if (layer != NULL)
        return decode_over(call, layer, envelope);
    if (call->in.body_media == MEDIA_SAFETENSORS)
        return envelope_decode_safetensors(call->in.body, call->in.body_bytes, kind, call->out->arena, envelope,
                                           call->err);
    return envelope_decode(call->in.body, call->in.body_bytes, kind, call->out->arena, envelope, call->err);
}

static attn_status decode(struct call *call, envelope_kind kind, const struct kept_layer *layer,
                          struct rendering *rendering, struct work *work)
{
    attn_status status = rendering_begin(call, rendering);
    if (status == ATTN_OK)
        status = decode_body(call, kind, layer, &work->envelope);
    if (status == ATTN_OK)
        status = rendering_choose_steps(call, &work->envelope);
    work->shown_steps = work->envelope.request.options.want;
    return status;
}

/* ---- the endpoints ---- */

static attn_status attend(struct call *call, envelope_kind kind, const struct kept_layer *layer, size_t *batch)
{
    struct work work = {.plan.dims.batch = 0};
    struct rendering rendering;
    struct cache_step cache = {.name = NULL};
    double since = clock_now_ms();
    attn_status status = decode(call, kind, layer, &rendering, &work);
    if (status == ATTN_OK)
        status = caches_begin(call, &work.envelope, layer != NULL ? layer->version : 0, &cache);
    if (status == ATTN_OK)
        status = caches_reserve(call, &cache, &work.plan, work.shown_steps, work_plan(call, &work));
    if (status == ATTN_OK)
        status = rendering_weigh(call, &rendering, &work);
    if (status == ATTN_OK)
        status = work_weigh(call, &work, rendering.bytes);
    call->times.parse_ms = clock_lap_ms(&since);
    if (status == ATTN_OK)
        status = caches_grow(call, &cache, &work.plan);
    if (status == ATTN_OK)
        status = work_run(call, &work);
    call->times.compute_ms = clock_lap_ms(&since);
    if (status == ATTN_OK)
        status = rendering_write(call, &rendering, &work);
    status = layer_keeper_confirm(call, status);
    call->times.write_ms = clock_lap_ms(&since);
    caches_end(call, &cache, &work.result, status);
    *batch = work.plan.dims.batch;
    return limits_explain(call, status);
}

attn_status attend_attention(struct call *call)
{
    return attend(call, ENVELOPE_ATTENTION, NULL, &(size_t){0});
}

attn_status attend_layer(struct call *call)
{
    return attend(call, ENVELOPE_LAYER, NULL, &(size_t){0});
}

static attn_status attend_over(struct call *call, const struct kept_layer *layer, size_t *batch)
{
    return attend(call, ENVELOPE_LAYER, layer, batch);
}

attn_status attend_kept(struct call *call)
{
    return layer_call(call, attend_over);
}
