/* parallel.c: a loop over tasks that can be cancelled. */
#include "base/parallel.h"

struct spread {
    const attn_runtime *runtime;
    attn_task *task;
    void *argument;
};

static void run_unless_cancelled(void *argument, size_t index, size_t worker)
{
    const struct spread *spread = argument;
    if (!attn_is_cancelled(spread->runtime))
        spread->task(spread->argument, index, worker);
}

void attn_spread(const attn_runtime *runtime, size_t tasks, attn_task *task, void *argument)
{
    struct spread spread = {.runtime = runtime, .task = task, .argument = argument};
    if (tasks > 0)
        runtime->run(runtime->context, tasks, run_unless_cancelled, &spread);
}
