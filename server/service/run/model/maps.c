/* maps.c: what is read from the whole maps of a layer. */
#include "service/run/model/item.h"

#include <string.h>

/* rollout[layer][item][row][column] = from[row][column] of n * n numbers. */
static bool put_flow(struct model_block_run *run, const double *from, size_t n)
{
    const attn_tensor *to = &run->part->rollout->tensor;
    const size_t element = attn_dtype_bytes(to->dtype);
    struct pace pace = pace_begin(run->job->outcome.arena);
    char *target = model_copy_place(to, run->place, run->item);
    for (size_t i = 0; i < n; i++) {
        if (pace_stops(&pace, n * sizeof *from))
            return model_job_fail_cancelled(run->job);
        char *row = target + i * (size_t)to->stride[2] * element;
        const attn_status status = attn_convert(row, to->dtype, from + i * n, ATTN_F64, n, NULL);
        (void)status; /* shares and entropies are within both compute types */
    }
    return true;
}

static bool read_flow(struct model_block_run *run, const attn_tensor *maps)
{
    struct model_part *part = run->part;
    if (part->rollout == NULL)
        return true;
    attn_rollout_layer(maps, part->has_flow ? part->flow[0] : NULL, part->flow_work, part->flow[1], run->job->runtime);
    double *const before = part->flow[0];
    part->flow[0] = part->flow[1];
    part->flow[1] = before;
    part->has_flow = true;
    return run->place == SIZE_MAX || put_flow(run, part->flow[0], maps->shape[1]);
}

struct roles_run {
    const attn_tensor *maps;
    const int64_t *ids;
    double *scores; /* (heads, roles) */
    const attn_runtime *runtime;
};

static void read_head(void *argument, size_t head, size_t worker)
{
    (void)worker;
    const struct roles_run *run = argument;
    const size_t n = run->maps->shape[1];
    attn_tensor one = *run->maps;
    one.shape[0] = 1;
    one.data = (char *)one.data + head * n * n * attn_dtype_bytes(one.dtype);
    attn_head_roles(&one, run->ids, run->scores + head * ATTN_ROLE_COUNT, run->runtime);
}

static bool read_roles(struct model_block_run *run, const attn_tensor *maps)
{
    struct model_job *job = run->job;
    const size_t heads = maps->shape[0];
    if (run->part->head_scores[0] == NULL || run->place == SIZE_MAX)
        return true;
    struct roles_run roles = {maps, job->items[run->item].of[run->part->stack].ids,
                              outcome_take(&job->outcome, heads * ATTN_ROLE_COUNT, sizeof(double)), job->runtime};
    if (roles.scores == NULL)
        return false;
    job->runtime->run(job->runtime->context, heads, read_head, &roles);
    if (!model_job_goes_on(job)) /* a score may be wrong */
        return false;
    for (int role = 0; role < ATTN_ROLE_COUNT; role++)
        for (size_t h = 0; h < heads; h++) {
            const attn_tensor *to = &run->part->head_scores[role]->tensor;
            char *target = (char *)model_copy_place(to, run->place, run->item) + h * attn_dtype_bytes(to->dtype);
            const attn_status status =
                attn_convert(target, to->dtype, &roles.scores[h * ATTN_ROLE_COUNT + (size_t)role], ATTN_F64, 1, NULL);
            (void)status;
        }
    return true;
}

bool model_maps_read(struct model_block_run *run, const attn_tensor *maps)
{
    const attn_tensor heads = attn_tensor_view(maps->data, maps->dtype, 3, maps->shape + 1);
    return read_flow(run, &heads) && read_roles(run, &heads) && model_times_read(run, &heads);
}

/* ---- selection ---- */

/*
 * Copies the selected elements of the axes behind the batch, of which the last two are queries and keys. False: it was
 * stopped before the end.
 */
static bool select_elements(const attn_tensor *from, const attn_tensor *to, const attn_selection selections[3],
                            struct pace *pace)
{
    const size_t element = attn_dtype_bytes(from->dtype), count = attn_tensor_count(to);
    for (size_t n = 0; n < count; n++) {
        if (pace_stops(pace, element))
            return false;
        ptrdiff_t at = 0;
        size_t rest = n;
        for (int axis = to->rank - 1; axis > 0; axis--) {
            const attn_selection *selection = &selections[axis - to->rank + 3];
            const size_t index = rest % to->shape[axis];
            rest /= to->shape[axis];
            at +=
                (ptrdiff_t)(attn_selects_all(selection) ? index : attn_selected(selection, index)) * from->stride[axis];
        }
        memcpy((char *)to->data + n * element, (const char *)from->data + at * (ptrdiff_t)element, element);
    }
    return true;
}

bool model_maps_select(struct model_block_run *run, attn_result *result)
{
    struct model_job *job = run->job;
    attn_options *options = &run->envelope.request.options;
    struct pace pace = pace_begin(job->outcome.arena);
    const attn_selection selections[3] = {run->part->shown->heads, run->queries.selection, run->keys.selection};
    options->heads = selections[0];
    options->queries = selections[1];
    options->keys = selections[2];
    run->envelope.request.edits = NULL; /* this plan has the shapes alone */
    bool goes_on = outcome_note(&job->outcome, attn_plan_make(&run->envelope.request, &run->plan, job->outcome.err));
    for (int step = 0; step < ATTN_STEP_COUNT && goes_on; step++) {
        if (!(run->shown.want >> step & 1) || !attn_step_has_keys((attn_step)step))
            continue;
        attn_tensor selected = run->plan.step[step];
        selected.data = outcome_take(&job->outcome, attn_tensor_count(&selected), attn_dtype_bytes(selected.dtype));
        goes_on = selected.data != NULL &&
                  (select_elements(&result->step[step], &selected, selections, &pace) || model_job_fail_cancelled(job));
        result->step[step] = selected;
    }
    return goes_on;
}
