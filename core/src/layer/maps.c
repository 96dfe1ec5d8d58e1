/* maps.c: memory for the maps and rows that the heads fill; then the mean over heads, and the mask as a map. */
#include "layer/stages.h"

#include "base/parallel.h"
#include "layer/weigh.h"
#include "mask/resolved.h"

/* ---- memory ---- */

static attn_status take_map(struct layer_run *run, attn_step step, int which)
{
    if (!layer_wants(run, step))
        return ATTN_OK;
    void *given = run->plan->step[step].data;
    run->job.map[which].data = given != NULL ? given : layer_take(run, attn_tensor_count(&run->plan->step[step]));
    run->result->step[step].data = run->job.map[which].data;
    return run->job.map[which].data == NULL ? attn_fail_no_memory(run->err) : ATTN_OK;
}

/* The weights stand in the map of the contribution, unless they are a step of the result themselves. */
static attn_status take_contribution(struct layer_run *run)
{
    attn_tensor *map = &run->result->step[ATTN_STEP_CONTRIBUTION];
    map->data = layer_take(run, attn_tensor_count(map));
    if (map->data == NULL)
        return attn_fail_no_memory(run->err);
    if (!layer_wants(run, ATTN_STEP_ATTENTION))
        run->job.map[MAP_ATTENTION].data = map->data;
    return ATTN_OK;
}

static attn_status take_maps(struct layer_run *run)
{
    static const struct {
        attn_step step;
        int which;
    } maps[] = {{ATTN_STEP_SCORES, MAP_SCORES},
                {ATTN_STEP_SCALED, MAP_SCALED},
                {ATTN_STEP_MASKED, MAP_MASKED},
                {ATTN_STEP_ATTENTION, MAP_ATTENTION},
                {ATTN_STEP_DROPPED, MAP_DROPPED}};
    attn_status status = ATTN_OK;
    for (size_t m = 0; status == ATTN_OK && m < sizeof maps / sizeof *maps; m++)
        status = take_map(run, maps[m].step, maps[m].which);
    if (status == ATTN_OK && layer_wants(run, ATTN_STEP_CONTRIBUTION))
        status = take_contribution(run);
    if (status != ATTN_OK || !layer_wants(run, ATTN_STEP_ATTENTION_MEAN))
        return status;
    if (!attn_needs_mean_source(run->request)) {
        run->mean_source = run->job.map[MAP_ATTENTION].data;
        return ATTN_OK;
    }
    run->mean_source = layer_take(run, attn_mean_source_count(run->plan));
    run->job.map[MAP_MEAN_SOURCE] = (struct attn_map){.data = run->mean_source, .all_heads = true};
    return run->mean_source == NULL ? attn_fail_no_memory(run->err) : ATTN_OK;
}

static attn_status take_rows(struct layer_run *run, attn_step step, void **rows)
{
    if (!layer_wants(run, step))
        return ATTN_OK;
    *rows = layer_take(run, attn_tensor_count(&run->plan->step[step]));
    run->result->step[step].data = *rows;
    return *rows == NULL ? attn_fail_no_memory(run->err) : ATTN_OK;
}

attn_status attn_layer_take_maps(struct layer_run *run)
{
    const struct {
        attn_step step;
        void **rows;
    } each[] = {{ATTN_STEP_LSE, &run->job.lse},
                {ATTN_STEP_LSE_KEYS, &run->job.lse_keys},
                {ATTN_STEP_ENTROPY, &run->job.entropy},
                {ATTN_STEP_SINK, &run->job.sink}};
    attn_status status = take_maps(run);
    for (size_t n = 0; n < sizeof each / sizeof *each && status == ATTN_OK; n++)
        status = take_rows(run, each[n].step, each[n].rows);
    if (status == ATTN_OK)
        status = attn_invert_selections(&run->request->options, &run->plan->dims, run->runtime, run->arena, &run->job,
                                        run->err);
    return status;
}

/* ---- after the heads ---- */

static void mean_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct layer_run *run = argument;
    const attn_plan *plan = run->plan;
    const size_t keys = plan->selected_keys, heads = plan->dims.heads, queries = plan->selected_queries;
    const size_t b = index / queries, query = index % queries;
    char *mean = run->result->step[ATTN_STEP_ATTENTION_MEAN].data;
    layer_kernel(run)->mean(heads, queries * keys, keys,
                            run->mean_source + (b * heads * queries + query) * keys * run->element,
                            mean + index * keys * run->element);
}

static void mask_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct layer_run *run = argument;
    const attn_plan *plan = run->plan;
    const attn_options *options = &run->request->options;
    const size_t keys = plan->selected_keys, queries = plan->selected_queries;
    const size_t b = index / queries / plan->selected_heads;
    const size_t h = attn_selected(&options->heads, index / queries % plan->selected_heads);
    const size_t i = attn_selected(&options->queries, index % queries);
    uint8_t *row = (uint8_t *)run->result->step[ATTN_STEP_MASK].data + index * keys;
    if (attn_selects_all(&options->keys)) {
        attn_mask_row(attn_mask_of(plan), plan->compute, b, h, i, attn_mask_span(attn_mask_of(plan), b, i), 0, keys,
                      row);
        return;
    }
    for (size_t j = 0; j < keys; j++)
        row[j] = attn_mask_allows(attn_mask_of(plan), plan->compute, b, h, i, attn_selected(&options->keys, j));
}

attn_status attn_layer_reduce_maps(struct layer_run *run)
{
    attn_tensor *step = run->result->step;
    if (layer_wants(run, ATTN_STEP_ATTENTION_MEAN)) {
        step[ATTN_STEP_ATTENTION_MEAN].data = layer_take(run, attn_tensor_count(&step[ATTN_STEP_ATTENTION_MEAN]));
        if (step[ATTN_STEP_ATTENTION_MEAN].data == NULL)
            return attn_fail_no_memory(run->err);
        attn_spread(run->runtime, run->plan->dims.batch * run->plan->selected_queries, mean_task, run);
    }
    if (layer_wants(run, ATTN_STEP_MASK)) {
        size_t rows = run->plan->dims.batch * run->plan->selected_heads * run->plan->selected_queries;
        step[ATTN_STEP_MASK].data = attn_arena_take(run->arena, rows, run->plan->selected_keys);
        if (step[ATTN_STEP_MASK].data == NULL)
            return attn_fail_no_memory(run->err);
        attn_spread(run->runtime, rows, mask_task, run);
    }
    return ATTN_OK;
}
