/* run.c: runs the passes of each item, and puts what they give into the outputs. */
#include <string.h>

#include "service/run/model/gradients/gradients.h"

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

bool model_gradients_run(struct model_gradients *own)
{
    bool goes_on = model_outputs_take(own->job);
    for (size_t i = 0; i < own->job->request->inputs.batch && goes_on; i++)
        goes_on = run_item(own, i);
    return goes_on;
}
