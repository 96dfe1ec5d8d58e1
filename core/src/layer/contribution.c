/* contribution.c: the norms of transformed values, and the weights times them. */
#include "layer/stages.h"

#include <math.h>
#include <string.h>

#include "base/number.h"
#include "base/parallel.h"
#include "base/size.h"

enum { KEYS = 256 }; /* whose norms stand side by side, whichever keys are kept */

struct contribution {
    const struct layer_run *run;
    char *values;  /* (kv_heads, batch, kv_len, d_v) */
    char *outputs; /* (batch, kv_len, d_attended) of one head: its values behind the output projection */
    double *norms; /* (selected heads, batch, kv_len) */
    size_t slot;   /* the head of outputs, among the selected ones */
};

static bool is_wanted(const attn_plan *plan)
{
    return attn_wants(&plan->request.options, ATTN_STEP_CONTRIBUTION);
}

size_t attn_contribution_bytes(const attn_plan *plan)
{
    const attn_dims *d = &plan->dims;
    const size_t numbers = d->kv_heads * d->d_v + d->d_attended; /* of each key */
    return is_wanted(plan) ? d->batch * d->kv_len *
                                 (numbers * attn_dtype_bytes(plan->compute) + plan->selected_heads * sizeof(double))
                           : 0;
}

double attn_contribution_flops(const attn_plan *plan)
{
    const attn_dims *d = &plan->dims;
    const double items = (double)d->batch * (double)plan->selected_heads, keys = (double)d->kv_len;
    const double pairs = items * (double)plan->selected_queries * (double)plan->selected_keys;
    return is_wanted(plan) ? items * keys * (double)d->d_attended * (2 * (double)d->d_v + 2) + pairs : 0;
}

/* ---- norms ---- */

/* One key head of one item: its values side by side, as a product reads them. */
static void copy_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct contribution *own = argument;
    const struct layer_run *run = own->run;
    const attn_dims *d = &run->plan->dims;
    const size_t g = index / d->batch, b = index % d->batch, bytes = d->d_v * run->element;
    for (size_t j = 0; j < d->kv_len; j++)
        attn_vector_read(attn_keys_row(&run->job.v, b, g, j), run->plan->compute, d->d_v,
                         own->values + (index * d->kv_len + j) * bytes);
}

/* outputs = values W_o of the head h, without the bias. */
static void project_head(struct contribution *own, size_t h)
{
    const struct layer_run *run = own->run;
    const attn_dims *d = &run->plan->dims;
    const attn_layout layout = run->request->weights.layout;
    const attn_projection projection = attn_projection_of_output(&run->request->weights, d);
    const size_t g = h / (d->heads / d->kv_heads), of_key_head = d->batch * d->kv_len * d->d_v;
    const attn_tensor *weight = run->request->weights.output.weight;
    const size_t first = h * d->d_v * (layout == ATTN_LAYOUT_IN_OUT ? projection.w_stride : 1);
    struct attn_product product = {
        .x = own->values + g * of_key_head * run->element,
        .w = (const char *)weight->data + first * attn_dtype_bytes(weight->dtype),
        .dtype = weight->dtype,
        .y = own->outputs,
        .batch = d->batch,
        .rows = d->kv_len,
        .columns = d->d_attended,
        .inner = d->d_v,
        .w_stride = projection.w_stride,
        .y_stride = d->d_attended,
    };
    attn_products_run(&product, 1, run->plan->compute, layout, run->runtime, run->product_scratch);
}

static double factor_of(const struct layer_run *run, size_t h)
{
    const attn_tensor *scale = run->request->options.head_scale;
    return scale == NULL ? 1 : fabs(attn_number_at(scale->data, run->plan->compute, (ptrdiff_t)h * scale->stride[0]));
}

/* Squares are summed in double, so a norm of float numbers cannot overflow. */
static void norm_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct contribution *own = argument;
    const struct layer_run *run = own->run;
    const attn_dims *d = &run->plan->dims;
    const size_t rows = d->batch * d->kv_len, end = attn_min((index + 1) * TOKEN_ROWS, rows);
    for (size_t row = index * TOKEN_ROWS; row < end; row++) {
        own->norms[own->slot * rows + row] =
            sqrt(layer_kernel(run)->sum_squares(d->d_attended, own->outputs + row * d->d_attended * run->element));
    }
}

static void find_norms(struct contribution *own)
{
    const struct layer_run *run = own->run;
    const attn_dims *d = &run->plan->dims;
    attn_spread(run->runtime, d->kv_heads * d->batch, copy_task, own);
    for (own->slot = 0; own->slot < run->plan->selected_heads && !attn_is_cancelled(run->runtime); own->slot++) {
        project_head(own, attn_selected(&run->request->options.heads, own->slot));
        attn_spread(run->runtime, attn_ceil_div(d->batch * d->kv_len, TOKEN_ROWS), norm_task, own);
    }
}

/* ---- the map ---- */

/* One kept query of one kept head. A weight 0 hides its key, whatever its value holds; a factor 0 takes the head out. */
static void scale_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct contribution *own = argument;
    const struct layer_run *run = own->run;
    const attn_plan *plan = run->plan;
    const attn_options *options = &run->request->options;
    const size_t keys = plan->selected_keys, of_item = plan->selected_heads * plan->selected_queries;
    const size_t b = index / of_item, slot = index % of_item / plan->selected_queries;
    const double *norms = own->norms + (slot * plan->dims.batch + b) * plan->dims.kv_len;
    const double factor = factor_of(run, attn_selected(&options->heads, slot));
    const char *weights = run->job.map[MAP_ATTENTION].data;
    char *map = run->result->step[ATTN_STEP_CONTRIBUTION].data;
    if (factor == 0) {
        memset(map + index * keys * run->element, 0, keys * run->element);
        return;
    }
    for (size_t first = 0; first < keys; first += KEYS) {
        const size_t some = attn_min(keys - first, KEYS), at = (index * keys + first) * run->element;
        double kept[KEYS];
        for (size_t key = 0; key < some; key++)
            kept[key] = norms[attn_selected(&options->keys, first + key)];
        layer_kernel(run)->weigh_norms(some, weights + at, kept, factor, map + at);
    }
}

void attn_layer_contribution(struct layer_run *run)
{
    const attn_plan *plan = run->plan;
    const attn_dims *d = &plan->dims;
    if (!is_wanted(plan))
        return;
    struct contribution own = {
        .run = run,
        .values = layer_take(run, d->kv_heads * d->batch * d->kv_len * d->d_v),
        .outputs = layer_take(run, d->batch * d->kv_len * d->d_attended),
        .norms = layer_take_of(run, plan->selected_heads * d->batch * d->kv_len, sizeof(double)),
    };
    if (!layer_goes_on(run))
        return;
    find_norms(&own);
    if (!attn_is_cancelled(run->runtime))
        attn_spread(run->runtime, d->batch * plan->selected_heads * plan->selected_queries, scale_task, &own);
}
