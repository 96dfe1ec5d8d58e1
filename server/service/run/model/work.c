/* work.c: plans, weighs and runs a decoded request to a whole model. */
#include "service/run/model/work.h"

#include "service/registry/layer/keeper.h"
#include "service/run/model/job.h"

attn_status model_work_plan(struct model_work *work, bool is_binary)
{
    struct call *call = work->call;
    attn_arena *arena = call->out->arena;
    attn_status status =
        model_batch_make(&work->batch, work->version, &work->request, MODEL_REQUEST_ATTENTION, arena, call->err);
    if (status != ATTN_OK)
        return status;
    work->answer = (struct model_answer){.form = work->request.common.form, .digits = work->request.common.digits};
    work->job = (struct model_job){.version = work->version,
                                   .request = &work->request,
                                   .prepared = layer_keeper_prepared(call->in.layers),
                                   .runtime = call->in.runtime,
                                   .arena = arena,
                                   .err = call->err,
                                   .items = work->batch.items,
                                   .is_binary = is_binary || work->request.common.form == TENSOR_FORM_BASE64,
                                   .answer = &work->answer};
    return model_job_plan(&work->job);
}

struct weight model_work_weigh(const struct model_work *work, size_t answer_bytes)
{
    const struct model_output *largest = model_answer_largest(&work->answer);
    return (struct weight){.answer_bytes = answer_bytes,
                           .run_bytes = work->job.run_bytes,
                           .time_flops = work->job.time_flops,
                           .largest = largest != NULL ? largest->name : "",
                           .largest_is_map = true};
}

attn_status model_work_end(struct model_work *work, attn_status status)
{
    struct call *call = work->call;
    call->batch = work->request.inputs.batch;
    status = version_confirm(call, status);
    layer_keeper_count(call, status);
    return limits_explain(call, status);
}
