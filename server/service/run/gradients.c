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
static bool check_reduction(const struct envelope *envelope, struct outcome *outcome)
{
    const char *field = envelope->cache.name != NULL ? "/options/cache" : envelope_form_option(envelope);
    return field == NULL || outcome_fail(outcome, ATTN_ERR_FIELD, field, "%s is not for gradients", field);
}

static bool decode(struct call *call, void *context, struct outcome *outcome)
{
    struct differentiation *work = context;
    struct envelope *envelope = &work->envelope;
    call->out->may_defer = false; /* the request, which a deferred answer reads, is gone when the service returns */
    const bool is_ok = work_decode(call, work->kind, work->layer, outcome, envelope);
    work->request = (attn_gradient_request){&envelope->request, envelope->grad_output, envelope->of};
    return is_ok && check_reduction(envelope, outcome);
}

static bool make_plan(struct call *call, void *context, struct outcome *outcome)
{
    struct differentiation *work = context;
    (void)call;
    return outcome_note(outcome, envelope_gradient_plan(&work->envelope, &work->request, &work->plan, outcome->err));
}

static bool plan(struct call *call, void *context, struct outcome *outcome)
{
    struct differentiation *work = context;
    return work_plan_by(call, &work->envelope, &work->plan.forward.dims, make_plan, work, outcome);
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
            weight->largest_is_map = attn_gradient_is_map((attn_gradient)gradient);
        }
    for (int step = 0; step < ATTN_STEP_COUNT; step++)
        if (plan->want >> step & 1 && plan->forward.step_bytes[step] > most) {
            most = plan->forward.step_bytes[step];
            weight->largest = attn_step_name((attn_step)step);
            weight->largest_is_map = attn_step_has_keys((attn_step)step);
        }
}

static bool weigh(struct call *call, void *context, struct outcome *outcome, struct weight *weight)
{
    const struct differentiation *work = context;
    (void)outcome;
    *weight = (struct weight){
        .answer_bytes = answer_gradients_bound(&work->envelope, &work->plan, call->in.answer_media),
        .run_bytes = (double)attn_gradient_plan_bytes(&work->plan, call->in.runtime->threads),
        .time_flops = work->plan.time_flops,
    };
    name_largest(&work->plan, weight);
    return true;
}

static bool run(struct call *call, void *context, struct outcome *outcome)
{
    struct differentiation *work = context;
    return outcome_note(
        outcome, attn_gradient_run(&work->plan, NULL, call->in.runtime, outcome->arena, &work->result, outcome->err));
}

static bool render(struct call *call, void *context, struct outcome *outcome)
{
    const struct differentiation *work = context;
    (void)outcome;
    answer_write_gradients(&work->envelope, &work->plan, &work->result, call->in.answer_media, call->in.runtime,
                           call->out);
    return true;
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
