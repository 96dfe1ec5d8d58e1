/* residual.c: the two ends of a layer: pre-norm at the start; dropout, residual and post-norm at the end. */
#include "layer/residual.h"

#include "base/parallel.h"
#include "base/size.h"
#include "formulas/philox.h"

/* The norm of the inputs or of the output, for rows of d numbers from row first on. */
static void norm_rows(const struct layer_run *run, size_t first, size_t rows, size_t d, const char *x, char *y)
{
    const attn_options *options = &run->request->options;
    const struct attn_row_norm norm =
        attn_row_norm_of(options->norm, &run->request->weights.norm, options->norm_eps, d);
    const size_t at = first * d * run->element;
    layer_kernel(run)->norm(&norm, rows, x + at, y + at);
}

/* ---- before the heads ---- */

static void pre_norm_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct layer_run *run = argument;
    const size_t row = index * TOKEN_ROWS, rows = attn_min(layer_query_tokens(run) - row, TOKEN_ROWS);
    norm_rows(run, row, rows, run->plan->dims.d_query, run->request->inputs.query->data, run->normed);
}

attn_status attn_layer_pre_norm(struct layer_run *run)
{
    run->normed = layer_take(run, layer_query_tokens(run) * run->plan->dims.d_query);
    if (run->normed == NULL)
        return attn_fail_no_memory(run->err);
    attn_spread(run->runtime, attn_ceil_div(layer_query_tokens(run), TOKEN_ROWS), pre_norm_task, run);
    return ATTN_OK;
}

/* count numbers of sum from number first on: residual + scale * dropout(branch). */
static void add_numbers(const struct layer_run *run, const struct attn_branch *branch, const char *x, size_t first,
                        size_t count)
{
    const attn_options *options = &run->request->options;
    const double p = branch->drops ? options->dropout : 0;
    uint8_t keep[4096];
    for (size_t done = 0; done < count; done += sizeof keep) {
        const size_t some = attn_min(count - done, sizeof keep), at = (first + done) * run->element;
        if (p > 0)
            layer_kernel(run)->dropout_keep(options->dropout_seed, DROPOUT_RESIDUAL, p, first + done, some, keep);
        const struct attn_branch_sum sum = {
            .x = x + at,
            .residual = branch->residual == NULL ? NULL : branch->residual + at,
            .keep = p > 0 ? keep : NULL,
            .gain = p < 1 ? 1 / (1 - p) : 0,
            .scale = options->residual_scale == 0 ? 1 : options->residual_scale,
            .y = branch->sum + at,
        };
        layer_kernel(run)->add_branch(&sum, some);
    }
}

void attn_layer_add_branch(const struct layer_run *run, const struct attn_branch *branch, size_t row, size_t rows)
{
    const attn_options *options = &run->request->options;
    const size_t d = branch->d, at = row * d * run->element;
    const char *x = branch->x;
    if (options->branch_norm != ATTN_NORM_NONE) {
        const struct attn_row_norm norm =
            attn_row_norm_of(options->branch_norm, branch->norm, options->branch_norm_eps, d);
        layer_kernel(run)->norm(&norm, rows, x + at, branch->sum + at);
        x = branch->sum;
    }
    add_numbers(run, branch, x, row * d, rows * d);
}

static void finish_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct layer_run *run = argument;
    const size_t d = run->plan->dims.d_attended, row = index * TOKEN_ROWS;
    const size_t rows = attn_min(layer_query_tokens(run) - row, TOKEN_ROWS);
    if (attn_changes_sum(&run->request->options)) {
        const struct attn_branch branch = {
            .norm = &run->request->weights.branch_norm,
            .x = run->projected,
            .residual = run->request->options.residual ? run->request->inputs.query->data : NULL,
            .sum = run->summed,
            .d = d,
            .drops = run->request->options.dropout_residual,
        };
        attn_layer_add_branch(run, &branch, row, rows);
    }
    if (attn_is_post_normed(&run->request->options))
        norm_rows(run, row, rows, d, run->summed, run->output);
}

attn_status attn_layer_finish(struct layer_run *run)
{
    const attn_options *options = &run->request->options;
    const size_t rows = layer_query_tokens(run), count = rows * run->plan->dims.d_attended;
    const bool projected_is_kept = layer_wants(run, ATTN_STEP_PROJECTED) || run->projected == run->gated;
    run->summed = run->projected;
    if (attn_changes_sum(options) && projected_is_kept)
        run->summed = layer_take(run, count);
    const bool sum_is_kept =
        layer_wants(run, ATTN_STEP_RESIDUAL) || (run->summed == run->projected && projected_is_kept);
    run->output = attn_is_post_normed(options) && sum_is_kept ? layer_take(run, count) : run->summed;
    if (run->summed == NULL || run->output == NULL)
        return attn_fail_no_memory(run->err);
    if (attn_changes_sum(options) || attn_is_post_normed(options))
        attn_spread(run->runtime, attn_ceil_div(rows, TOKEN_ROWS), finish_task, run);
    return ATTN_OK;
}
