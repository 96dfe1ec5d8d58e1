/* edits.c: lets the caller change what a layer computes with, and computes again what follows from it (plan.h). */
#include "layer/stages.h"

#include "base/number.h"
#include "base/parallel.h"
#include "formulas/formulas.h"

bool attn_is_edited(const attn_request *request, attn_edit_place place)
{
    return request->edits != NULL && request->edits->places >> place & 1;
}

bool attn_edits_check(const attn_request *request, struct attn_check *check)
{
    const attn_options *options = &request->options;
    if (request->edits == NULL)
        return true;
    if (!request->is_layer || options->mechanism.type != ATTN_SOFTMAX)
        return attn_refuse(check, ATTN_ERR_FIELD, "edits", "there are edits of layers with a softmax alone");
    if (attn_is_edited(request, ATTN_EDIT_ATTENTION) &&
        (!attn_wants(options, ATTN_STEP_ATTENTION) || !attn_selects_all(&options->heads) ||
         !attn_selects_all(&options->queries) || !attn_selects_all(&options->keys)))
        return attn_refuse(check, ATTN_ERR_FIELD, "edits", "edits of weights need the whole attention");
    return true;
}

size_t attn_edits_bytes(const attn_request *request, const attn_dims *d)
{
    const size_t tokens = d->batch * d->q_len, element = attn_dtype_bytes(request->options.compute);
    size_t bytes = 0;
    if (attn_is_edited(request, ATTN_EDIT_ATTENTION) || attn_is_edited(request, ATTN_EDIT_CONTEXT))
        bytes += 2 * tokens * d->heads;
    if (attn_is_edited(request, ATTN_EDIT_ATTENTION_OUTPUT))
        bytes += tokens * (1 + d->d_attended * element);
    if (attn_is_edited(request, ATTN_EDIT_FEED_FORWARD))
        bytes += tokens * (1 + d->d_out * element);
    return bytes;
}

const bool *attn_layer_edit(struct layer_run *run, attn_edit_place place, const attn_tensor *numbers, size_t rows)
{
    const attn_edits *edits = run->request->edits;
    bool *changed = attn_arena_take_zeroed(run->arena, rows, sizeof *changed);
    run->status =
        changed != NULL ? edits->edit(edits->context, place, numbers, changed) : attn_fail_no_memory(run->err);
    return layer_goes_on(run) ? changed : NULL;
}

/* ---- weights ---- */

struct again {
    const struct layer_run *run;
    const bool *changed;
};

/* The context of one row whose weights changed. Sums are taken in double, key by key. */
static void context_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct again *again = argument;
    const struct layer_run *run = again->run;
    const attn_dims *d = &run->plan->dims;
    const size_t i = index % d->q_len, h = index / d->q_len % d->heads, b = index / d->q_len / d->heads;
    const size_t at = attn_operand_at(&run->job.context, b, h, i), g = h / (d->heads / d->kv_heads);
    const char *weights = (const char *)run->job.map[MAP_ATTENTION].data + index * d->kv_len * run->element;
    for (size_t f = 0; f < d->d_v && again->changed[index]; f++) {
        double sum = 0;
        for (size_t j = 0; j < d->kv_len; j++) {
            const struct attn_vector value = attn_keys_row(&run->job.v, b, g, j);
            const double weight = attn_number_get(weights, run->plan->compute, j);
            sum += weight == 0 ? 0 : weight * attn_number_get(value.data, value.dtype, f);
        }
        attn_number_put((void *)(uintptr_t)run->job.context.data, run->plan->compute, at + f, sum);
    }
}

void attn_layer_edit_heads(struct layer_run *run)
{
    const attn_dims *d = &run->plan->dims;
    const size_t rows = d->batch * d->heads * d->q_len;
    if (attn_is_edited(run->request, ATTN_EDIT_ATTENTION)) {
        const attn_tensor maps = attn_tensor_view(run->job.map[MAP_ATTENTION].data, run->plan->compute, 4,
                                                  (const size_t[]){d->batch, d->heads, d->q_len, d->kv_len});
        struct again again = {run, attn_layer_edit(run, ATTN_EDIT_ATTENTION, &maps, rows)};
        if (again.changed != NULL)
            attn_spread(run->runtime, rows, context_task, &again);
    }
    if (layer_goes_on(run) && attn_is_edited(run->request, ATTN_EDIT_CONTEXT)) {
        const attn_tensor shape =
            attn_tensor_view(NULL, run->plan->compute, 4, (const size_t[]){d->batch, d->heads, d->q_len, d->d_v});
        const attn_tensor context = attn_operand_view(&run->job.context, &shape);
        (void)attn_layer_edit(run, ATTN_EDIT_CONTEXT, &context, rows);
    }
}
