/* feed_forward.c: gradients of a feed-forward network, from the output of the block back to its attention. */
#include "backward/feed_forward.h"

#include "backward/norm.h"
#include "backward/projection.h"
#include "base/parallel.h"
#include "base/size.h"
#include "kernel/entries.h"
#include "layer/layer.h"
#include "request/request.h"

enum { NUMBERS = 8192 }; /* per task of an elementwise loop */

/* ---- the network ---- */

/* The buffers of a network: (tokens, d_ff) each. */
struct hidden_gradients {
    struct attn_feed_forward network;
    size_t count;
    char *grad_hidden; /* becomes that of up */
    char *grad_gate;   /* takes the place of hidden; NULL: no gate */
};

static void activate_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct hidden_gradients *h = argument;
    const struct attn_feed_forward *network = &h->network;
    const attn_dtype compute = network->request->options.compute;
    const size_t first = index * NUMBERS, at = first * attn_dtype_bytes(compute);
    const bool is_gated = h->grad_gate != NULL;
    const struct attn_activation_gradient gradient = {
        .activation = network->request->options.feed_forward.activation,
        .n = attn_min(h->count - first, NUMBERS),
        .up = network->up + at,
        .gate = is_gated ? network->gate + at : NULL,
        .grad_hidden = h->grad_hidden + at,
        .grad_gate = is_gated ? h->grad_gate + at : NULL,
    };
    attn_kernel_of(network->runtime->kernel, compute)->activate_back(&gradient);
}

/* ---- parts ---- */

static const attn_dims *dims_of(const struct attn_gradient_feed_forward *run)
{
    return &run->plan->forward.dims;
}

static size_t tokens_of(const attn_dims *dims)
{
    return dims->batch * dims->q_len;
}

static bool is_post_normed(const attn_request *request)
{
    const attn_feed_forward_options *own = &request->options.feed_forward;
    return own->norm != ATTN_NORM_NONE && own->position == ATTN_NORM_POST;
}

size_t attn_gradient_feed_forward_numbers(const attn_request *request, const attn_dims *dims)
{
    if (dims->d_ff == 0)
        return 0;
    const size_t tokens = tokens_of(dims), hidden = request->weights.feed_forward.gate.weight != NULL ? 4 : 3;
    return tokens * (hidden * dims->d_ff + attn_feed_forward_d_in(request, dims) +
                     (is_post_normed(request) ? 2 * dims->d_out : 0));
}

static char *take(struct attn_gradient_feed_forward *run, size_t features)
{
    return attn_arena_take(run->arena, tokens_of(dims_of(run)) * features,
                           attn_dtype_bytes(run->plan->forward.compute));
}

/* The memory of a gradient; NULL when it is not wanted. */
static void *wanted(const struct attn_gradient_feed_forward *run, attn_gradient gradient)
{
    return run->result->gradient[gradient].data;
}

static void differentiate_norm(const struct attn_gradient_feed_forward *run, const void *x, size_t d,
                               const char *grad_y, char *grad_x)
{
    const attn_tensor *gain = run->request->weights.feed_forward.norm.weight;
    const struct attn_gradient_norm norm = {
        .type = run->request->options.feed_forward.norm,
        .compute = run->plan->forward.compute,
        .eps = run->request->options.feed_forward.norm_eps,
        .rows = tokens_of(dims_of(run)),
        .gains = 1,
        .d = d,
        .x = x,
        .gain = gain == NULL ? NULL : gain->data,
        .grad_y = grad_y,
        .grad_x = grad_x,
        .grad_gain = wanted(run, ATTN_GRADIENT_FEED_FORWARD_NORM_WEIGHT),
        .grad_shift = wanted(run, ATTN_GRADIENT_FEED_FORWARD_NORM_BIAS),
        .partial = run->partials,
    };
    attn_gradient_norm_run(&norm, run->runtime);
}

static struct attn_gradient_projection describe(const struct attn_gradient_feed_forward *run,
                                                enum attn_feed_forward_role role, const char *x, const char *grad_y)
{
    const attn_dims *d = dims_of(run);
    return (struct attn_gradient_projection){.slices = attn_feed_forward_slice(run->request, d, role),
                                             .layout = run->request->weights.layout,
                                             .batch = d->batch,
                                             .len = d->q_len,
                                             .x = x,
                                             .grad_y = grad_y,
                                             .is_live = run->is_live};
}

static void differentiate_affine(const struct attn_gradient_feed_forward *run, const struct attn_gradient_projection *p,
                                 attn_gradient weight, attn_gradient bias)
{
    const attn_dtype compute = run->plan->forward.compute;
    if (wanted(run, weight) != NULL) {
        attn_gradient_find_live(compute, p->batch * p->len, p->slices.columns, p->grad_y, run->is_live);
        attn_gradient_of_weight(p, compute, wanted(run, weight), run->affine_scratch, run->runtime);
    }
    if (wanted(run, bias) != NULL)
        attn_gradient_of_bias(p, compute, wanted(run, bias), run->runtime);
}

/* ---- the run ---- */

/* *grad_sum: of the sum before a post-norm. */
static attn_status go_through_post_norm(struct attn_gradient_feed_forward *run, const char **grad_sum, attn_error *err)
{
    const size_t d_out = dims_of(run)->d_out;
    const attn_tensor *step = run->result->forward.step;
    *grad_sum = run->grad_output;
    if (!is_post_normed(run->request))
        return ATTN_OK;
    char *sum = take(run, d_out), *grad = take(run, d_out);
    if (sum == NULL || grad == NULL)
        return attn_fail_no_memory(err);
    const bool has_residual = run->request->options.feed_forward.residual;
    attn_gradient_add(run->plan->forward.compute, tokens_of(dims_of(run)) * d_out, step[ATTN_STEP_FEED_FORWARD].data,
                      has_residual ? step[ATTN_STEP_ATTENTION_OUTPUT].data : NULL, sum, run->runtime);
    differentiate_norm(run, sum, d_out, run->grad_output, grad);
    *grad_sum = grad;
    return ATTN_OK;
}

/* *grad_x: of the input of the network. */
static attn_status go_through_network(struct attn_gradient_feed_forward *run, const char *grad_y, char **grad_x,
                                      attn_error *err)
{
    const attn_dims *d = dims_of(run);
    const attn_dtype compute = run->plan->forward.compute;
    const bool is_gated = run->request->weights.feed_forward.gate.weight != NULL;
    struct hidden_gradients h = {.network = {.request = run->request,
                                             .dims = d,
                                             .runtime = run->runtime,
                                             .scratch = run->product_scratch,
                                             .x = run->input},
                                 .count = tokens_of(d) * d->d_ff};
    h.network.up = take(run, d->d_ff);
    h.network.gate = is_gated ? take(run, d->d_ff) : NULL;
    h.network.hidden = take(run, d->d_ff);
    h.grad_hidden = take(run, d->d_ff);
    *grad_x = take(run, attn_feed_forward_d_in(run->request, d));
    if (h.network.up == NULL || (is_gated && h.network.gate == NULL) || h.network.hidden == NULL ||
        h.grad_hidden == NULL || *grad_x == NULL)
        return attn_fail_no_memory(err);
    attn_feed_forward_expand(&h.network);
    const struct attn_gradient_projection down = describe(run, FEED_FORWARD_DOWN, h.network.hidden, grad_y);
    differentiate_affine(run, &down, ATTN_GRADIENT_FEED_FORWARD_DOWN_WEIGHT, ATTN_GRADIENT_FEED_FORWARD_DOWN_BIAS);
    attn_gradient_of_input(&down, 1, compute, d->batch, d->q_len, d->d_ff, h.grad_hidden, run->affine_scratch,
                           run->runtime);
    h.grad_gate = is_gated ? h.network.hidden : NULL;
    attn_spread(run->runtime, attn_ceil_div(h.count, NUMBERS), activate_task, &h);
    const struct attn_gradient_projection readers[] = {describe(run, FEED_FORWARD_UP, run->input, h.grad_hidden),
                                                       describe(run, FEED_FORWARD_GATE, run->input, h.grad_gate)};
    differentiate_affine(run, &readers[0], ATTN_GRADIENT_FEED_FORWARD_UP_WEIGHT, ATTN_GRADIENT_FEED_FORWARD_UP_BIAS);
    if (is_gated)
        differentiate_affine(run, &readers[1], ATTN_GRADIENT_FEED_FORWARD_GATE_WEIGHT,
                             ATTN_GRADIENT_FEED_FORWARD_GATE_BIAS);
    attn_gradient_of_input(readers, is_gated ? 2 : 1, compute, d->batch, d->q_len, readers[0].slices.inner, *grad_x,
                           run->affine_scratch, run->runtime);
    return ATTN_OK;
}

attn_status attn_gradient_feed_forward_run(struct attn_gradient_feed_forward *run, attn_error *err)
{
    const attn_feed_forward_options *own = &run->request->options.feed_forward;
    const size_t d_in = attn_feed_forward_d_in(run->request, dims_of(run));
    const void *attended = run->result->forward.step[ATTN_STEP_ATTENTION_OUTPUT].data;
    const char *grad_sum;
    char *grad_x = NULL;
    attn_status status = go_through_post_norm(run, &grad_sum, err);
    if (status == ATTN_OK)
        status = go_through_network(run, grad_sum, &grad_x, err);
    if (status != ATTN_OK)
        return status;
    if (own->norm != ATTN_NORM_NONE && own->position == ATTN_NORM_PRE)
        differentiate_norm(run, own->parallel ? run->request->inputs.query->data : attended, d_in, grad_x, grad_x);
    run->grad_query = own->parallel ? grad_x : NULL;
    run->grad_attended = own->parallel ? grad_sum : grad_x;
    if (!own->parallel && own->residual)
        attn_gradient_add(run->plan->forward.compute, tokens_of(dims_of(run)) * d_in, grad_x, grad_sum, grad_x,
                          run->runtime);
    return ATTN_OK;
}
