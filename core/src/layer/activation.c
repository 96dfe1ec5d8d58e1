/* activation.c: activations by tasks. */
#include "layer/layer.h"

#include "base/parallel.h"
#include "base/size.h"

enum { ACTIVATED = 8192 }; /* numbers per task */

struct activation {
    attn_activation activation;
    const attn_runtime *runtime;
    attn_dtype compute;
    size_t count;
    const char *x, *times;
    char *y;
};

static void activate_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct activation *run = argument;
    const size_t first = index * ACTIVATED, at = first * attn_dtype_bytes(run->compute);
    attn_kernel_of(run->runtime->kernel, run->compute)
        ->activate(run->activation, attn_min(run->count - first, ACTIVATED), run->x + at,
                   run->times == NULL ? NULL : run->times + at, run->y + at);
}

void attn_numbers_activate(attn_activation activation, attn_dtype compute, size_t count, const void *x,
                           const void *times, void *y, const attn_runtime *runtime)
{
    struct activation run = {activation, runtime, compute, count, x, times, y};
    attn_spread(runtime, attn_ceil_div(count, ACTIVATED), activate_task, &run);
}
