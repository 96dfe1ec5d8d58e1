/* endpoint.c: a request for gradients of a whole model from body text to answer text. */
#include "service/endpoints.h"

#include <string.h>

#include "service/registry/model/list.h"
#include "service/run/model/gradients/gradients.h"
#include "service/run/work.h"

struct differentiation {
    struct model_work work;
    struct model_gradients gradients;
};

static bool decode(struct call *call, void *context, struct outcome *outcome)
{
    struct differentiation *own = context;
    (void)call;
    return model_work_decode(&own->work, MODEL_REQUEST_GRADIENTS, outcome);
}

static bool plan(struct call *call, void *context, struct outcome *outcome)
{
    struct differentiation *own = context;
    if (!model_work_open(&own->work, call->in.answer_media == MEDIA_SAFETENSORS, outcome))
        return false;
    own->gradients.job = &own->work.job;
    const bool is_planned = model_gradients_plan(&own->gradients);
    return outcome_note(outcome, own->work.job.outcome.status) && is_planned &&
           model_work_add_facts(&own->work, outcome);
}

static bool weigh(struct call *call, void *context, struct outcome *outcome, struct weight *weight)
{
    const struct differentiation *own = context;
    (void)outcome;
    *weight = model_work_weigh(&own->work, model_answer_bound(&own->work.answer, call->in.answer_media));
    return true;
}

static void put_vectors(const struct gradient_pass *pass, size_t stack)
{
    const struct model_output *output = pass->own->of[stack].embedding; /* parts of stacks come first */
    if (output != NULL)
        memcpy(model_copy_place(&output->tensor, pass->item, 0), pass->gradient[stack].data,
               attn_tensor_count(&pass->gradient[stack]) * attn_dtype_bytes(output->tensor.dtype));
}

static bool run_item(struct model_gradients *own, size_t item)
{
    struct model_job *job = own->job;
    const attn_arena_mark mark = attn_arena_mark_here(job->outcome.arena);
    struct gradient_pass pass = {.own = own, .job = job, .item = item, .shows = true};
    const struct model_output *metric = own->metric;
    bool is_ok = gradient_pass_begin(&pass) && gradient_pass_run(&pass, true);
    if (is_ok) {
        for (size_t stack = 0; stack < gradient_stacks(job); stack++)
            put_vectors(&pass, stack);
        model_put_numbers(&pass.metric, 1, metric->tensor.dtype,
                          (char *)metric->tensor.data + item * attn_dtype_bytes(metric->tensor.dtype));
        is_ok = own->error == NULL || gradients_integrate(&pass);
    }
    attn_arena_release(job->outcome.arena, mark);
    return is_ok;
}

/* How often blocks run, forward and back. The last pass of an integral is not run back. */
static uint64_t count_blocks(const struct model_gradients *own)
{
    const struct model_job *job = own->job;
    const double passes = gradients_integrated_passes(own), each = 2 * (1 + passes) - (passes > 0);
    double count = 0;
    for (size_t stack = 0; stack < gradient_stacks(job); stack++)
        count += each * (double)job->request->inputs.batch * (double)job->version->model.stacks[stack].block_count;
    return count < (double)PROGRESS_MAX ? (uint64_t)count : PROGRESS_MAX;
}

bool model_gradients_run(struct model_gradients *own)
{
    bool goes_on = model_outputs_take(own->job);
    progress_set(own->job->progress, PROGRESS_LAYER, 0, count_blocks(own));
    for (size_t i = 0; i < own->job->request->inputs.batch && goes_on; i++)
        goes_on = run_item(own, i);
    return goes_on;
}

static bool run(struct call *call, void *context, struct outcome *outcome)
{
    struct differentiation *own = context;
    if (!model_gradients_run(&own->gradients))
        return outcome_note(outcome, own->work.job.outcome.status);
    models_tell_prepared(call->in.models, own->work.version);
    return true;
}

static bool render(struct call *call, void *context, struct outcome *outcome)
{
    const struct differentiation *own = context;
    (void)outcome;
    model_answer_write(&own->work.answer, call->in.answer_media, call->in.runtime, call->out);
    return true;
}

attn_status gradients_model(struct call *call)
{
    static const struct pipeline steps = {decode, plan, weigh, run, render};
    /* In the arena: a part of the answer that is written later refers to it. */
    struct differentiation *own = attn_arena_take_zeroed(call->out->arena, 1, sizeof *own);
    if (own == NULL)
        return attn_fail_no_memory(call->err);
    const attn_status status = models_find(call->in.models, call->in.names[0], call);
    if (status != ATTN_OK)
        return status;
    own->work.call = call;
    own->work.version = model_version_of(call->version);
    return model_work_end(&own->work, pipeline_run(&steps, call, own));
}
