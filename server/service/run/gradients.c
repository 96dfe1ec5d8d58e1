/* gradients.c: a request for gradients from body to answer: decode, plan, weigh, compute, write. */
#include "codec/answer/forms.h"
#include "service/endpoints.h"
#include "service/registry/version.h"
#include "service/run/work.h"

struct differentiation {
    envelope_kind kind;
    const struct kept_layer *layer; /* NULL: the request has its own weights */
    struct envelope envelope;
    attn_gradient_request request;
    attn_gradient_plan plan;
    attn_gradient_result result;
};

/* pool, top_k, dtype and view work on the maps of a forward pass only; the keys of a cache are not in the request. */
static attn_status check_reduction(struct call *call, const struct envelope *envelope)
{
    const char *field = envelope->cache.name != NULL ? "/options/cache" : envelope_form_option(envelope);
    if (field == NULL)
        return ATTN_OK;
    return attn_fail(call->err, ATTN_ERR_FIELD, field, "%s is not for gradients", field);
}

static attn_status decode(struct call *call, void *context)
{
    struct differentiation *work = context;
    struct envelope *envelope = &work->envelope;
    call->out->may_defer = false; /* the request, which a deferred answer reads, is gone when the service returns */
    const attn_status status = work_decode(call, work->kind, work->layer, envelope);
    work->request = (attn_gradient_request){&envelope->request, envelope->grad_output, envelope->of};
    return status == ATTN_OK ? check_reduction(call, envelope) : status;
}

static attn_status make_plan(struct call *call, void *context)
{
    struct differentiation *work = context;
    return envelope_gradient_plan(&work->envelope, &work->request, &work->plan, call->err);
}

static attn_status plan(struct call *call, void *context)
{
    struct differentiation *work = context;
    return work_plan_by(call, &work->envelope, &work->plan.forward.dims, make_plan, work);
}

/* Names the largest part of the answer: a gradient, or a step of the forward pass. */
static void name_largest(const attn_gradient_plan *plan, struct weight *weight)
{
    size_t most = 0;
    weight->largest = "";
    for (int gradient = 0; gradient < ATTN_GRADIENT_COUNT; gradient++)
        if (plan->of >> gradient & 1 && plan->gradient_bytes[gradient] >= most) {
            most = plan->gradient_bytes[gradient];
            weight->largest = attn_gradient_name((attn_gradient)gradient);
            weight->largest_is_map = gradient == ATTN_GRADIENT_SCORES;
        }
    for (int step = 0; step < ATTN_STEP_COUNT; step++)
        if (plan->want >> step & 1 && plan->forward.step_bytes[step] > most) {
            most = plan->forward.step_bytes[step];
            weight->largest = attn_step_name((attn_step)step);
            weight->largest_is_map = attn_step_has_keys((attn_step)step);
        }
}

static attn_status weigh(struct call *call, void *context, struct weight *weight)
{
    const struct differentiation *work = context;
    *weight = (struct weight){
        .answer_bytes = answer_gradients_bound(&work->envelope, &work->plan, call->in.answer_media),
        .run_bytes = (double)attn_gradient_plan_bytes(&work->plan, call->in.runtime->threads),
        .time_flops = work->plan.time_flops,
    };
    name_largest(&work->plan, weight);
    return ATTN_OK;
}

static attn_status run(struct call *call, void *context)
{
    struct differentiation *work = context;
    return attn_gradient_run(&work->plan, NULL, call->in.runtime, call->out->arena, &work->result, call->err);
}

static attn_status render(struct call *call, void *context)
{
    const struct differentiation *work = context;
    answer_write_gradients(&work->envelope, &work->plan, &work->result, call->in.answer_media, call->in.runtime,
                           call->out);
    return call_finish(call);
}

static attn_status differentiate(struct call *call, envelope_kind kind, const struct kept_layer *layer)
{
    static const struct pipeline steps = {decode, plan, weigh, run, render};
    struct differentiation work = {.kind = kind, .layer = layer};
    const attn_status status = version_confirm(call, pipeline_run(&steps, call, &work));
    call->batch = work.plan.forward.dims.batch;
    return limits_explain(call, status);
}

attn_status gradients_attention(struct call *call)
{
    return differentiate(call, ENVELOPE_ATTENTION_GRADIENTS, NULL);
}

attn_status gradients_layer(struct call *call)
{
    return differentiate(call, ENVELOPE_LAYER_GRADIENTS, NULL);
}

attn_status gradients_kept(struct call *call)
{
    return work_compute_kept(call, ENVELOPE_LAYER_GRADIENTS, differentiate);
}
