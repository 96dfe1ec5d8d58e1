/*
 * branches.c: the two branches of a block around attention and around the feed-forward network: pre-norm at the start;
 * dropout, residual and post-norm at the end; and the network.
 */
#include "layer/stages.h"

#include "base/parallel.h"
#include "base/size.h"
#include "formulas/formulas.h"

/* ---- before ---- */

struct norm_run {
    const struct attn_row_norm *norm;
    const attn_runtime *runtime;
    attn_dtype compute;
    size_t rows;
    const char *x;
    char *y;
};

static void norm_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct norm_run *run = argument;
    const size_t row = index * TOKEN_ROWS, at = row * run->norm->d * attn_dtype_bytes(run->compute);
    attn_kernel_of(run->runtime->kernel, run->compute)
        ->norm(run->norm, attn_min(run->rows - row, TOKEN_ROWS), run->x + at, run->y + at);
}

void attn_rows_norm(const struct attn_row_norm *norm, attn_dtype compute, size_t rows, const void *x, void *y,
                    const attn_runtime *runtime)
{
    struct norm_run run = {norm, runtime, compute, rows, x, y};
    attn_spread(runtime, attn_ceil_div(rows, TOKEN_ROWS), norm_task, &run);
}

/* *normed = norm(x), in memory of its own, if there is a norm. */
static void pre_norm(struct layer_run *run, struct attn_row_norm norm, const char *x, const char **normed)
{
    const size_t tokens = layer_query_tokens(run);
    if (norm.type == ATTN_NORM_NONE)
        return;
    char *y = layer_take(run, tokens * norm.d);
    if (y == NULL)
        return;
    attn_rows_norm(&norm, run->plan->compute, tokens, x, y, run->runtime);
    *normed = y;
}

/* The norm of the layer at that position, for rows of d numbers. */
static struct attn_row_norm norm_of_layer(const attn_request *request, attn_norm_position position, size_t d)
{
    const attn_options *options = &request->options;
    return attn_row_norm_of(options->norm_position == position ? options->norm : ATTN_NORM_NONE, &request->weights.norm,
                            options->norm_eps, d);
}

void attn_layer_pre_norm(struct layer_run *run)
{
    run->x_q = run->request->inputs.query->data;
    pre_norm(run, norm_of_layer(run->request, ATTN_NORM_PRE, run->plan->dims.d_query), run->x_q, &run->x_q);
}

/* ---- after ---- */

/*
 * The end of a branch: sum = residual + scale * dropout(norm(x)) if changes, and then output = post-norm(sum). The norm
 * and the scale are those of branches in the options. sum may be x, and output may be sum.
 */
struct ending {
    const struct layer_run *run;
    bool changes, drops;
    const attn_affine *norm;
    const char *x, *residual; /* residual NULL: 0 */
    char *sum, *output;
    struct attn_row_norm post; /* of rows of d numbers; type ATTN_NORM_NONE: none */
};

/* count numbers of sum from number first on: residual + scale * dropout(x). */
static void add_numbers(const struct ending *ending, const char *x, size_t first, size_t count)
{
    const struct layer_run *run = ending->run;
    const attn_options *options = &run->request->options;
    const double p = ending->drops ? options->dropout : 0;
    uint8_t keep[4096];
    for (size_t done = 0; done < count; done += sizeof keep) {
        const size_t some = attn_min(count - done, sizeof keep), at = (first + done) * run->element;
        if (p > 0)
            layer_kernel(run)->dropout_keep(options->dropout_seed, DROPOUT_RESIDUAL, p, first + done, some, keep);
        const struct attn_branch_sum sum = {
            .x = x + at,
            .residual = ending->residual == NULL ? NULL : ending->residual + at,
            .keep = p > 0 ? keep : NULL,
            .gain = p < 1 ? 1 / (1 - p) : 0,
            .scale = options->residual_scale == 0 ? 1 : options->residual_scale,
            .y = ending->sum + at,
        };
        layer_kernel(run)->add_branch(&sum, some);
    }
}

static void end_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct ending *ending = argument;
    const struct layer_run *run = ending->run;
    const attn_options *options = &run->request->options;
    const size_t d = ending->post.d, row = index * TOKEN_ROWS, at = row * d * run->element;
    const size_t rows = attn_min(layer_query_tokens(run) - row, TOKEN_ROWS);
    const char *x = ending->x;
    if (ending->changes && options->branch_norm != ATTN_NORM_NONE) {
        const struct attn_row_norm norm =
            attn_row_norm_of(options->branch_norm, ending->norm, options->branch_norm_eps, d);
        layer_kernel(run)->norm(&norm, rows, x + at, ending->sum + at);
        x = ending->sum;
    }
    if (ending->changes)
        add_numbers(ending, x, row * d, rows * d);
    if (ending->post.type != ATTN_NORM_NONE)
        layer_kernel(run)->norm(&ending->post, rows, (ending->changes ? ending->sum : x) + at, ending->output + at);
}

static void end_branch(struct ending *ending)
{
    if (ending->changes || ending->post.type != ATTN_NORM_NONE)
        attn_spread(ending->run->runtime, attn_ceil_div(layer_query_tokens(ending->run), TOKEN_ROWS), end_task, ending);
}

/* A row that the caller changed: residual + branch, and the post-norm. */
static void end_row(const struct ending *ending, const char *branch, size_t row)
{
    const size_t d = ending->post.d, at = row * d * ending->run->element;
    const struct attn_branch_sum sum = {.x = branch + at,
                                        .residual = ending->residual == NULL ? NULL : ending->residual + at,
                                        .gain = 1,
                                        .scale = 1,
                                        .y = ending->sum + at};
    layer_kernel(ending->run)->add_branch(&sum, d);
    if (ending->post.type != ATTN_NORM_NONE)
        layer_kernel(ending->run)->norm(&ending->post, 1, ending->sum + at, ending->output + at);
}

/* The branch alone is made beside the sum of all rows, and the changed rows are summed again. */
static void end_edited_branch(struct layer_run *run, struct ending *ending, attn_edit_place place)
{
    const attn_dims *dims = &run->plan->dims;
    const size_t d = ending->post.d, rows = layer_query_tokens(run);
    struct ending alone = *ending;
    if (!attn_is_edited(run->request, place)) {
        end_branch(ending);
        return;
    }
    alone.sum = alone.output = layer_take(run, rows * d);
    if (alone.sum == NULL)
        return;
    alone.changes = true;
    alone.residual = NULL;
    alone.post.type = ATTN_NORM_NONE;
    end_branch(&alone);
    end_branch(ending);
    const attn_tensor branch =
        attn_tensor_view(alone.sum, run->plan->compute, 3, (const size_t[]){dims->batch, dims->q_len, d});
    const bool *changed = attn_layer_edit(run, place, &branch, rows);
    for (size_t row = 0; changed != NULL && row < rows; row++)
        if (changed[row])
            end_row(ending, alone.sum, row);
}

void attn_layer_finish(struct layer_run *run)
{
    const attn_options *options = &run->request->options;
    const size_t d = run->plan->dims.d_attended, count = layer_query_tokens(run) * d;
    const bool changes = attn_changes_sum(options), has_post = attn_is_post_normed(options);
    const bool projected_is_kept = layer_wants(run, ATTN_STEP_PROJECTED) || run->projected == run->gated;
    run->summed = changes && projected_is_kept ? layer_take(run, count) : run->projected;
    const bool sum_is_kept =
        layer_wants(run, ATTN_STEP_RESIDUAL) || (run->summed == run->projected && projected_is_kept);
    run->output = has_post && sum_is_kept ? layer_take(run, count) : run->summed;
    if (run->summed == NULL || run->output == NULL)
        return;
    struct ending ending = {.run = run,
                            .changes = changes,
                            .drops = options->dropout_residual,
                            .norm = &run->request->weights.branch_norm,
                            .x = run->projected,
                            .residual = options->residual ? run->request->inputs.query->data : NULL,
                            .sum = run->summed,
                            .output = run->output,
                            .post = norm_of_layer(run->request, ATTN_NORM_POST, d)};
    end_edited_branch(run, &ending, ATTN_EDIT_ATTENTION_OUTPUT);
}

/* ---- the network ---- */

attn_projection attn_feed_forward_slice(const attn_request *request, const attn_dims *dims,
                                        enum attn_feed_forward_role role)
{
    const attn_feed_forward_weights *w = &request->weights.feed_forward;
    const attn_layout layout = request->weights.layout;
    if (role == FEED_FORWARD_DOWN)
        return attn_projection_of_matrix(&w->down, layout, dims->d_ff, dims->d_out);
    return attn_projection_of_matrix(role == FEED_FORWARD_UP ? &w->up : &w->gate, layout,
                                     attn_feed_forward_d_in(request, dims), dims->d_ff);
}

static struct attn_product product_of(const struct attn_feed_forward *network, enum attn_feed_forward_role role,
                                      const char *x, char *y)
{
    const attn_dtype compute = network->request->options.compute;
    const attn_projection slice = attn_feed_forward_slice(network->request, network->dims, role);
    const struct attn_product tokens = {.x = x, .y = y, .batch = network->dims->batch, .rows = network->dims->q_len};
    struct attn_product product;
    attn_projection_products(&slice, network->request->weights.layout, attn_dtype_bytes(compute),
                             compute == ATTN_F32 ? network->runtime->kernel : NULL, &tokens, &product);
    return product;
}

static void multiply(const struct attn_feed_forward *network, struct attn_product *products, size_t count)
{
    attn_products_run(products, count, network->request->options.compute, network->request->weights.layout,
                      network->runtime, network->scratch);
}

static size_t hidden_numbers(const attn_dims *dims)
{
    return dims->batch * dims->q_len * dims->d_ff;
}

void attn_feed_forward_expand(const struct attn_feed_forward *network)
{
    const bool is_gated = network->gate != NULL;
    struct attn_product products[2] = {product_of(network, FEED_FORWARD_UP, network->x, network->up)};
    if (is_gated)
        products[1] = product_of(network, FEED_FORWARD_GATE, network->x, network->gate);
    multiply(network, products, is_gated ? 2 : 1);
    attn_numbers_activate(network->request->options.feed_forward.activation, network->request->options.compute,
                          hidden_numbers(network->dims), is_gated ? network->gate : network->up,
                          is_gated ? network->up : NULL, network->hidden, network->runtime);
}

/* ---- around the network ---- */

/* The norm of the network at that position, for rows of d numbers. */
static struct attn_row_norm norm_of_network(const attn_request *request, attn_norm_position position, size_t d)
{
    const attn_feed_forward_options *own = &request->options.feed_forward;
    return attn_row_norm_of(own->position == position ? own->norm : ATTN_NORM_NONE, &request->weights.feed_forward.norm,
                            own->norm_eps, d);
}

static bool is_normed(const attn_request *request, attn_norm_position position)
{
    return norm_of_network(request, position, 0).type != ATTN_NORM_NONE;
}

/* Whether the result of the network is not yet the output before a post-norm. */
static bool changes_sum(const attn_options *options)
{
    return options->feed_forward.residual || attn_changes_branch(options);
}

size_t attn_feed_forward_numbers(const attn_request *request, const attn_dims *dims)
{
    const attn_options *options = &request->options;
    const size_t tokens = dims->batch * dims->q_len;
    if (!attn_has_feed_forward(dims))
        return 0;
    size_t numbers = hidden_numbers(dims) * (request->weights.feed_forward.gate.weight != NULL ? 2 : 1);
    if (is_normed(request, ATTN_NORM_PRE))
        numbers += tokens * attn_feed_forward_d_in(request, dims);
    size_t arrays = 1; /* of rows of output */
    if (attn_wants(options, ATTN_STEP_FEED_FORWARD) && (changes_sum(options) || is_normed(request, ATTN_NORM_POST)))
        arrays++;
    arrays -= attn_wants(options, ATTN_STEP_OUTPUT);
    arrays -= arrays > 0 && attn_wants(options, ATTN_STEP_FEED_FORWARD);
    return numbers + arrays * tokens * dims->d_out;
}

/* What the network reads. */
static void prepare_input(struct layer_run *run)
{
    const attn_request *request = run->request;
    const bool is_parallel = request->options.feed_forward.parallel;
    const size_t d = attn_feed_forward_d_in(request, &run->plan->dims);
    run->ff_input = is_parallel ? run->x_q : run->attended;
    pre_norm(run, norm_of_network(request, ATTN_NORM_PRE, d), is_parallel ? request->inputs.query->data : run->attended,
             &run->ff_input);
}

/* The network that all tokens share. */
static void run_shared_network(struct layer_run *run)
{
    const attn_dims *d = &run->plan->dims;
    const bool is_gated = run->request->weights.feed_forward.gate.weight != NULL;
    struct attn_feed_forward network = {.request = run->request,
                                        .dims = d,
                                        .runtime = run->runtime,
                                        .scratch = run->product_scratch,
                                        .x = run->ff_input};
    network.up = layer_take(run, hidden_numbers(d));
    network.gate = is_gated ? layer_take(run, hidden_numbers(d)) : NULL;
    network.hidden = network.up;
    if (network.up == NULL || (is_gated && network.gate == NULL))
        return;
    attn_feed_forward_expand(&network);
    struct attn_product down = product_of(&network, FEED_FORWARD_DOWN, network.hidden, run->expanded);
    multiply(&network, &down, 1);
}

static void run_network(struct layer_run *run)
{
    const attn_dims *d = &run->plan->dims;
    run->expanded = layer_take(run, layer_query_tokens(run) * d->d_out);
    if (d->d_ff > 0 && layer_goes_on(run))
        run_shared_network(run);
    if (layer_goes_on(run))
        attn_layer_experts(run);
}

/* The sum overwrites the result of the network, unless that is a wanted step. */
void attn_layer_feed_forward(struct layer_run *run)
{
    const attn_request *request = run->request;
    const size_t d = run->plan->dims.d_out;
    if (!attn_has_feed_forward(&run->plan->dims))
        return;
    run->attended = run->output;
    prepare_input(run);
    if (layer_goes_on(run))
        run_network(run);
    if (!layer_goes_on(run))
        return;
    const struct attn_row_norm post = norm_of_network(request, ATTN_NORM_POST, d);
    const bool changes = changes_sum(&request->options);
    run->output = run->expanded;
    if ((changes || post.type != ATTN_NORM_NONE) && layer_wants(run, ATTN_STEP_FEED_FORWARD))
        run->output = layer_take(run, layer_query_tokens(run) * d);
    if (run->output == NULL)
        return;
    struct ending ending = {.run = run,
                            .changes = changes,
                            .norm = &request->weights.feed_forward.branch_norm,
                            .x = run->expanded,
                            .residual = request->options.feed_forward.residual ? run->attended : NULL,
                            .sum = run->output,
                            .output = run->output,
                            .post = post};
    end_edited_branch(run, &ending, ATTN_EDIT_FEED_FORWARD);
}
