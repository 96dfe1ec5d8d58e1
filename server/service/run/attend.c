/* attend.c: a request for attention from body text to answer text: decode, cache, plan, weigh, run, write. */
#include "service/cache/request.h"
#include "service/endpoints.h"
#include "service/registry/version.h"
#include "service/run/rendering.h"
#include "service/run/work.h"

/* One request while it is answered. */
struct attending {
    envelope_kind kind;
    const struct kept_layer *layer; /* NULL: the request has its own weights */
    struct work work;
    struct rendering rendering;
    struct cache_step cache;
};

/* ---- steps ---- */

static attn_status decode(struct call *call, void *work)
{
    struct attending *attending = work;
    struct envelope *envelope = &attending->work.envelope;
    attn_status status = rendering_begin(call, &attending->rendering);
    if (status == ATTN_OK)
        status = work_decode(call, attending->kind, attending->layer, envelope);
    if (status == ATTN_OK)
        status = rendering_choose_steps(call, envelope);
    attending->work.shown_steps = envelope->request.options.want;
    if (status == ATTN_OK)
        status =
            caches_begin(call, envelope, attending->layer != NULL ? attending->layer->version : 0, &attending->cache);
    return status;
}

static attn_status plan(struct call *call, void *work)
{
    struct attending *attending = work;
    const attn_status status = work_plan(call, &attending->work);
    return caches_reserve(call, &attending->cache, &attending->work.plan, attending->work.shown_steps, status);
}

static attn_status weigh(struct call *call, void *work, struct weight *weight)
{
    struct attending *attending = work;
    const attn_status status = rendering_weigh(call, &attending->rendering, &attending->work);
    *weight = work_weigh(call, &attending->work, attending->rendering.bytes);
    return status;
}

static attn_status run(struct call *call, void *work)
{
    struct attending *attending = work;
    const attn_status status = caches_grow(call, &attending->cache, &attending->work.plan);
    return status == ATTN_OK ? work_run(call, &attending->work) : status;
}

static attn_status render(struct call *call, void *work)
{
    struct attending *attending = work;
    return rendering_write(call, &attending->rendering, &attending->work);
}

/* ---- the endpoints ---- */

static attn_status attend(struct call *call, envelope_kind kind, const struct kept_layer *layer)
{
    static const struct pipeline steps = {decode, plan, weigh, run, render};
    struct attending attending = {.kind = kind, .layer = layer};
    const attn_status status = version_confirm(call, pipeline_run(&steps, call, &attending));
    caches_end(call, &attending.cache, &attending.work.result, status);
    call->batch = attending.work.plan.dims.batch;
    return limits_explain(call, status);
}

attn_status attend_attention(struct call *call)
{
    return attend(call, ENVELOPE_ATTENTION, NULL);
}

attn_status attend_layer(struct call *call)
{
    return attend(call, ENVELOPE_LAYER, NULL);
}

attn_status attend_kept(struct call *call)
{
    return work_compute_kept(call, ENVELOPE_LAYER, attend);
}
