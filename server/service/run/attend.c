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

/* A picture shows steps of its own choice, and refuses other forms of maps. */
static bool decode(struct call *call, void *work, struct outcome *outcome)
{
    struct attending *attending = work;
    struct envelope *envelope = &attending->work.envelope;
    if (!rendering_read_options(call, PICTURE_OF_LAYER, outcome, &attending->picture.options) ||
        !work_decode(call, attending->kind, attending->layer, outcome, envelope) ||
        (media_is_picture(call->in.answer_media) &&
         !outcome_note(outcome, answer_picture_prepare(envelope, outcome->err))))
        return false;
    attending->work.shown_steps = envelope->request.options.want;
    return outcome_note(outcome, caches_begin(call, envelope, attending->layer != NULL ? attending->layer->version : 0,
                                              &attending->cache));
}

static bool plan(struct call *call, void *work, struct outcome *outcome)
{
    struct attending *attending = work;
    work_plan(call, &attending->work, outcome);
    return outcome_note(outcome, caches_reserve(call, &attending->cache, &attending->work.plan,
                                                attending->work.shown_steps, outcome->status));
}

/* The bytes are those of the answer, and of its writing. */
static bool weigh(struct call *call, void *work, struct outcome *outcome, struct weight *weight)
{
    struct attending *attending = work;
    const struct answer answer = {&attending->work.envelope, &attending->work.shown, NULL};
    struct picture *picture = &attending->picture;
    size_t bytes = 0;
    bool is_ok;
    if (media_is_picture(call->in.answer_media)) {
        is_ok = outcome_note(outcome, answer_picture_make(&answer, outcome->arena, picture, outcome->err)) &&
                rendering_weigh_picture(call, picture, outcome, &bytes);
    } else {
        bytes = answer_bound(&answer, call->in.answer_media);
        is_ok = outcome_note(outcome, answer_check(&answer, call->in.answer_media, outcome->err));
    }
    *weight = work_weigh(call, &attending->work, bytes);
    return is_ok;
}

static bool run(struct call *call, void *work, struct outcome *outcome)
{
    struct attending *attending = work;
    return outcome_note(outcome, caches_grow(call, &attending->cache, &attending->work.plan)) &&
           work_run(call, &attending->work, outcome);
}

static bool render(struct call *call, void *work, struct outcome *outcome)
{
    struct attending *attending = work;
    const struct answer answer = {&attending->work.envelope, &attending->work.shown, &attending->work.result};
    if (media_is_picture(call->in.answer_media)) {
        answer_picture_fill(&attending->work.result, &attending->picture);
        return rendering_write_picture(call, &attending->picture, outcome);
    }
    answer_write(&answer, call->in.answer_media, call->in.runtime, call->out);
    return true;
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
