/* token_norm.c: a normalisation that stands outside of the layers, spread over the threads. */
#include "model/dense.h"

#include "base/float_mode.h"
#include "base/parallel.h"
#include "base/size.h"
#include "kernel/entries.h"

enum { TASK_ROWS = 64 };

struct norm_run {
    const attn_token_norm *norm;
    const attn_tensor *input;
    const attn_kernel *kernel;
    char *output;
};

static void norm_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct norm_run *run = argument;
    const size_t d = run->input->shape[1], first = index * TASK_ROWS;
    const size_t at = first * d * attn_dtype_bytes(run->input->dtype);
    const struct attn_row_norm norm = attn_row_norm_of(run->norm->type, &run->norm->weights, run->norm->eps, d);
    attn_kernel_of(run->kernel, run->input->dtype)
        ->norm(&norm, attn_min(run->input->shape[0] - first, TASK_ROWS), (const char *)run->input->data + at,
               run->output + at);
}

attn_status attn_token_norm_run(const attn_token_norm *norm, const attn_tensor *input, const attn_runtime *runtime,
                                attn_arena *arena, attn_tensor *output, attn_error *err)
{
    *output = *input;
    if (norm->type != ATTN_NORM_NONE) {
        struct norm_run run = {norm, input, runtime->kernel,
                               attn_arena_take(arena, attn_tensor_count(input), attn_dtype_bytes(input->dtype))};
        if (run.output == NULL)
            return attn_fail_no_memory(err);
        attn_spread(runtime, attn_ceil_div(input->shape[0], TASK_ROWS), norm_task, &run);
        output->data = run.output;
    }
    return attn_is_cancelled(runtime) ? attn_fail(err, ATTN_ERR_CANCELLED, NULL, "stopped before the end") : ATTN_OK;
}

attn_status attn_norm_tokens(const attn_token_norm *norm, const attn_tensor *input, const attn_runtime *runtime,
                             attn_arena *arena, attn_tensor *output, attn_error *err)
{
    const uint64_t mode = attn_float_mode_enter();
    const attn_status status = attn_token_norm_run(norm, input, runtime, arena, output, err);
    attn_float_mode_leave(mode);
    return status;
}
