/* attend.c: a request for attention from body text to answer text: decode, cache, plan, weigh, run, write. */
#include "codec/answer/forms.h"
#include "codec/picture/image.h"
#include "service/cache/request.h"
#include "service/endpoints.h"
#include "service/registry/version.h"
#include "service/run/work.h"

/* One request while it is answered. */
struct attending {
    envelope_kind kind;
    const struct kept_layer *layer; /* NULL: the request has its own weights */
    struct work work;
    struct picture picture; /* of an answer that is one */
    struct cache_step cache;
};

/* ---- steps ---- */

static bool is_picture(const struct call *call)
{
    return media_is_picture(call->in.answer_media);
}

/* A picture shows steps of its own choice, and refuses other forms of maps. */
static attn_status decode(struct call *call, void *work)
{
    struct attending *attending = work;
    struct envelope *envelope = &attending->work.envelope;
    attn_status status = rendering_read_options(call, PICTURE_OF_LAYER, &attending->picture.options);
    if (status == ATTN_OK)
        status = work_decode(call, attending->kind, attending->layer, envelope);
    if (status == ATTN_OK && is_picture(call))
        status = answer_picture_prepare(envelope, call->err);
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

/* The bytes are those of the answer, and of its writing. */
static attn_status weigh(struct call *call, void *work, struct weight *weight)
{
    struct attending *attending = work;
    const struct answer answer = {&attending->work.envelope, &attending->work.shown, NULL};
    size_t bytes = 0;
    attn_status status;
    if (is_picture(call)) {
        status = answer_picture_make(&answer, call->out->arena, &attending->picture, call->err);
        if (status == ATTN_OK)
            status = rendering_weigh_picture(call, &attending->picture, &bytes);
    } else {
        bytes = answer_bound(&answer, call->in.answer_media);
        status = answer_check(&answer, call->in.answer_media, call->err);
    }
    *weight = work_weigh(call, &attending->work, bytes);
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
    const struct answer answer = {&attending->work.envelope, &attending->work.shown, &attending->work.result};
    if (is_picture(call)) {
        answer_picture_fill(&attending->work.result, &attending->picture);
        return rendering_write_picture(call, &attending->picture);
    }
    answer_write(&answer, call->in.answer_media, call->in.runtime, call->out);
    return call_finish(call);
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
