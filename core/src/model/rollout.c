/* rollout.c: attention rollout, layer by layer (analysis.h). */
#include "attn/analysis.h"
#include "base/float_mode.h"
#include "base/number.h"
#include "base/pace.h"

struct rollout_run {
    const attn_tensor *maps;
    const double *before;
    double *work, *after;
    size_t n;
    const attn_runtime *watch;
};

/* Row i of A/2 + I/2 into work, and its product with the rows of the layer before. */
static void rollout_row(void *argument, size_t i, size_t worker)
{
    const struct rollout_run *run = argument;
    const size_t n = run->n, heads = run->maps->shape[0];
    double *mixed = run->work + i * n, *after = run->after + i * n;
    struct attn_pace pace = attn_pace_begin(run->watch);
    (void)worker;
    for (size_t j = 0; j < n && !attn_pace_stops(&pace, heads); j++) {
        double sum = 0;
        for (size_t h = 0; h < heads; h++)
            sum += attn_number_get(run->maps->data, run->maps->dtype, (h * n + i) * n + j);
        mixed[j] = 0.5 * sum / (double)heads + (i == j ? 0.5 : 0);
        after[j] = run->before == NULL ? mixed[j] : 0;
    }
    for (size_t k = 0; k < n && run->before != NULL && !attn_pace_stops(&pace, n); k++)
        for (size_t j = 0; j < n; j++)
            after[j] += mixed[k] * run->before[k * n + j];
}

void attn_rollout_layer(const attn_tensor *maps, const double *before, double *work, double *after,
                        const attn_runtime *runtime)
{
    struct rollout_run run = {maps, before, work, after, maps->shape[1], runtime};
    const uint64_t mode = attn_float_mode_enter();
    attn_spread(runtime, run.n, rollout_row, &run);
    attn_float_mode_leave(mode);
}
