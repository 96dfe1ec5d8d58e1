/* serial.c: the runtime that computes everything in the calling thread. */
#include "attn/runtime.h"

static void run_serially(void *context, size_t tasks, attn_task *task, void *argument)
{
    (void)context;
    for (size_t t = 0; t < tasks; t++)
        task(argument, t, 0);
}

attn_runtime attn_runtime_serial(const attn_kernel *kernel)
{
    return (attn_runtime){.kernel = kernel == NULL ? attn_kernel_best() : kernel, .threads = 1, .run = run_serially};
}
