/* feed_forward.c: the feed-forward network of a block: norm, up and gate, activation, down, residual. */
#include "layer/feed_forward.h"

#include "base/parallel.h"
#include "base/size.h"
#include "kernel/entries.h"
#include "layer/residual.h"
#include "request/request.h"

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

enum { ACTIVATED = 8192 }; /* numbers per task of an activation */

static size_t hidden_numbers(const attn_dims *dims)
{
    return dims->batch * dims->q_len * dims->d_ff;
}

static void activate_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct attn_feed_forward *network = argument;
    const attn_dtype compute = network->request->options.compute;
    const size_t first = index * ACTIVATED, count = attn_min(hidden_numbers(network->dims) - first, ACTIVATED);
    const size_t at = first * attn_dtype_bytes(compute);
    const bool is_gated = network->gate != NULL;
    attn_kernel_of(network->runtime->kernel, compute)
        ->activate(network->request->options.feed_forward.activation, count,
                   (is_gated ? network->gate : network->up) + at, is_gated ? network->up + at : NULL,
                   network->hidden + at);
}

void attn_feed_forward_expand(const struct attn_feed_forward *network)
{
    struct attn_product products[2];
    size_t count = 0;
    products[count++] = product_of(network, FEED_FORWARD_UP, network->x, network->up);
    if (network->gate != NULL)
        products[count++] = product_of(network, FEED_FORWARD_GATE, network->x, network->gate);
    multiply(network, products, count);
    attn_spread(network->runtime, attn_ceil_div(hidden_numbers(network->dims), ACTIVATED), activate_task,
                (void *)(uintptr_t)network);
}

void attn_feed_forward_contract(const struct attn_feed_forward *network)
{
    struct attn_product product = product_of(network, FEED_FORWARD_DOWN, network->hidden, network->y);
    multiply(network, &product, 1);
}

/* ---- around it ---- */

static bool is_normed(const attn_request *request, attn_norm_position position)
{
    const attn_feed_forward_options *own = &request->options.feed_forward;
    return own->norm != ATTN_NORM_NONE && own->position == position;
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
    if (dims->d_ff == 0)
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

static void norm_rows(const struct layer_run *run, size_t first, size_t rows, size_t d, const char *x, char *y)
{
    const attn_feed_forward_options *own = &run->request->options.feed_forward;
    const struct attn_row_norm norm =
        attn_row_norm_of(own->norm, &run->request->weights.feed_forward.norm, own->norm_eps, d);
    const size_t at = first * d * run->element;
    layer_kernel(run)->norm(&norm, rows, x + at, y + at);
}

static void pre_norm_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct layer_run *run = argument;
    const bool is_parallel = run->request->options.feed_forward.parallel;
    const size_t row = index * TOKEN_ROWS, rows = attn_min(layer_query_tokens(run) - row, TOKEN_ROWS);
    norm_rows(run, row, rows, attn_feed_forward_d_in(run->request, &run->plan->dims),
              is_parallel ? run->request->inputs.query->data : run->attended, run->ff_normed);
}

/* What the network reads. */
static attn_status prepare_input(struct layer_run *run)
{
    const attn_dims *d = &run->plan->dims;
    run->ff_input = run->request->options.feed_forward.parallel ? run->x_q : run->attended;
    if (!is_normed(run->request, ATTN_NORM_PRE))
        return ATTN_OK;
    run->ff_normed = layer_take(run, layer_query_tokens(run) * attn_feed_forward_d_in(run->request, d));
    if (run->ff_normed == NULL)
        return attn_fail_no_memory(run->err);
    attn_spread(run->runtime, attn_ceil_div(layer_query_tokens(run), TOKEN_ROWS), pre_norm_task, run);
    run->ff_input = run->ff_normed;
    return ATTN_OK;
}

static attn_status run_network(struct layer_run *run)
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
    network.y = run->expanded = layer_take(run, layer_query_tokens(run) * d->d_out);
    if (network.up == NULL || network.y == NULL || (is_gated && network.gate == NULL))
        return attn_fail_no_memory(run->err);
    attn_feed_forward_expand(&network);
    attn_feed_forward_contract(&network);
    return ATTN_OK;
}

static void finish_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct layer_run *run = argument;
    const size_t d = run->plan->dims.d_out, row = index * TOKEN_ROWS;
    const size_t rows = attn_min(layer_query_tokens(run) - row, TOKEN_ROWS);
    const char *from = run->expanded;
    if (changes_sum(&run->request->options)) {
        const struct attn_branch branch = {.norm = &run->request->weights.feed_forward.branch_norm,
                                           .x = run->expanded,
                                           .residual =
                                               run->request->options.feed_forward.residual ? run->attended : NULL,
                                           .sum = run->output,
                                           .d = d};
        attn_layer_add_branch(run, &branch, row, rows);
        from = run->output;
    }
    if (is_normed(run->request, ATTN_NORM_POST))
        norm_rows(run, row, rows, d, from, run->output);
}

/* The sum overwrites the result of the network, unless that is a wanted step. */
attn_status attn_layer_feed_forward(struct layer_run *run)
{
    const attn_options *options = &run->request->options;
    if (run->plan->dims.d_ff == 0)
        return ATTN_OK;
    run->attended = run->output;
    attn_status status = prepare_input(run);
    if (status == ATTN_OK)
        status = run_network(run);
    if (status != ATTN_OK)
        return status;
    const bool is_final = !changes_sum(options) && !is_normed(run->request, ATTN_NORM_POST);
    run->output = run->expanded;
    if (is_final)
        return ATTN_OK;
    if (layer_wants(run, ATTN_STEP_FEED_FORWARD))
        run->output = layer_take(run, layer_query_tokens(run) * run->plan->dims.d_out);
    if (run->output == NULL)
        return attn_fail_no_memory(run->err);
    attn_spread(run->runtime, attn_ceil_div(layer_query_tokens(run), TOKEN_ROWS), finish_task, run);
    return ATTN_OK;
}
