/* feed_forward.c: gradients of a feed-forward network, from the output of the block back to its attention. */
#include "backward/backward.h"

#include "base/parallel.h"
#include "base/size.h"
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

/* ---- the stage ---- */

static const attn_dims *dims_of(const struct backward_run *run)
{
    return &run->plan->forward.dims;
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
    const size_t hidden = request->weights.feed_forward.gate.weight != NULL ? 4 : 3;
    return dims->batch * dims->q_len *
           (hidden * dims->d_ff + attn_feed_forward_d_in(request, dims) +
            (is_post_normed(request) ? 2 * dims->d_out : 0) +
            (attn_changes_branch(&request->options) ? dims->d_out : 0));
}

static char *take(struct backward_run *run, size_t features)
{
    return backward_take(run, backward_query_tokens(run) * features, run->element);
}

static void differentiate_norm(const struct backward_run *run, const void *x, size_t d, const char *grad_y,
                               char *grad_x)
{
    const struct attn_gradient_norm norm = {.type = run->request->options.feed_forward.norm,
                                            .eps = run->request->options.feed_forward.norm_eps,
                                            .rows = backward_query_tokens(run),
                                            .d = d,
                                            .gains = 1,
                                            .gain = run->request->weights.feed_forward.norm.weight,
                                            .x = x,
                                            .grad_y = grad_y,
                                            .grad_x = grad_x};
    attn_gradient_norm_run(run, &norm, ATTN_GRADIENT_FEED_FORWARD_NORM_WEIGHT);
}

static struct attn_gradient_projection describe(const struct backward_run *run, enum attn_feed_forward_role role,
                                                const char *x, const char *grad_y)
{
    const attn_dims *d = dims_of(run);
    return (struct attn_gradient_projection){attn_feed_forward_slice(run->request, d, role), d->q_len, x, grad_y};
}

/* *grad_sum: of the sum before a post-norm. */
static void go_through_post_norm(struct backward_run *run, const char **grad_sum)
{
    const size_t d_out = dims_of(run)->d_out;
    *grad_sum = run->grad_output;
    if (!is_post_normed(run->request))
        return;
    char *sum = take(run, d_out), *grad = take(run, d_out);
    if (sum == NULL || grad == NULL)
        return;
    const bool has_residual = run->request->options.feed_forward.residual;
    attn_gradient_add(run, backward_query_tokens(run) * d_out, backward_step(run, ATTN_STEP_FEED_FORWARD)->data,
                      has_residual ? backward_step(run, ATTN_STEP_ATTENTION_OUTPUT)->data : NULL, sum);
    differentiate_norm(run, sum, d_out, run->grad_output, grad);
    *grad_sum = grad;
}

/* *grad_y: of the result of the network. */
static void go_through_branch(struct backward_run *run, const char *grad_sum, const char **grad_y)
{
    const size_t d_out = dims_of(run)->d_out;
    *grad_y = grad_sum;
    if (!attn_changes_branch(&run->request->options))
        return;
    char *grad = take(run, d_out);
    if (grad != NULL)
        attn_gradient_of_branch(run, &run->request->weights.feed_forward.branch_norm, d_out,
                                backward_step(run, ATTN_STEP_FEED_FORWARD)->data, grad_sum, grad);
    *grad_y = grad;
}

/* *grad_x: of the input of the network. */
static void go_through_network(struct backward_run *run, const char *grad_y, char **grad_x)
{
    const attn_dims *d = dims_of(run);
    const char *input = run->kept.ff_input;
    const bool is_gated = run->request->weights.feed_forward.gate.weight != NULL;
    struct hidden_gradients h = {.network = {.request = run->request,
                                             .dims = d,
                                             .runtime = run->runtime,
                                             .scratch = run->kept.product_scratch,
                                             .x = input},
                                 .count = backward_query_tokens(run) * d->d_ff};
    h.network.up = take(run, d->d_ff);
    h.network.gate = is_gated ? take(run, d->d_ff) : NULL;
    h.network.hidden = take(run, d->d_ff);
    h.grad_hidden = take(run, d->d_ff);
    *grad_x = take(run, attn_feed_forward_d_in(run->request, d));
    if (!backward_goes_on(run))
        return;
    attn_feed_forward_expand(&h.network);
    const struct attn_gradient_projection down = describe(run, FEED_FORWARD_DOWN, h.network.hidden, grad_y);
    attn_gradient_of_affine(run, &down, ATTN_GRADIENT_FEED_FORWARD_DOWN_WEIGHT);
    attn_gradient_of_input(run, &down, 1, d->q_len, d->d_ff, h.grad_hidden);
    h.grad_gate = is_gated ? h.network.hidden : NULL;
    attn_spread(run->runtime, attn_ceil_div(h.count, NUMBERS), activate_task, &h);
    const struct attn_gradient_projection readers[] = {describe(run, FEED_FORWARD_UP, input, h.grad_hidden),
                                                       describe(run, FEED_FORWARD_GATE, input, h.grad_gate)};
    attn_gradient_of_affine(run, &readers[0], ATTN_GRADIENT_FEED_FORWARD_UP_WEIGHT);
    if (is_gated)
        attn_gradient_of_affine(run, &readers[1], ATTN_GRADIENT_FEED_FORWARD_GATE_WEIGHT);
    attn_gradient_of_input(run, readers, is_gated ? 2 : 1, d->q_len, readers[0].slices.inner, *grad_x);
}

void attn_gradient_feed_forward_run(struct backward_run *run)
{
    const attn_feed_forward_options *own = &run->request->options.feed_forward;
    const size_t d_in = attn_feed_forward_d_in(run->request, dims_of(run));
    const char *grad_sum, *grad_y = NULL;
    char *grad_x = NULL;
    if (dims_of(run)->d_ff == 0)
        return;
    go_through_post_norm(run, &grad_sum);
    if (backward_goes_on(run))
        go_through_branch(run, grad_sum, &grad_y);
    if (backward_goes_on(run))
        go_through_network(run, grad_y, &grad_x);
    if (!backward_goes_on(run))
        return;
    if (own->norm != ATTN_NORM_NONE && own->position == ATTN_NORM_PRE)
        differentiate_norm(run,
                           own->parallel ? run->request->inputs.query->data
                                         : backward_step(run, ATTN_STEP_ATTENTION_OUTPUT)->data,
                           d_in, grad_x, grad_x);
    run->grad_query = own->parallel ? grad_x : NULL;
    run->grad_output = own->parallel ? grad_sum : grad_x;
    if (!own->parallel && own->residual)
        attn_gradient_add(run, backward_query_tokens(run) * d_in, grad_x, grad_sum, grad_x);
}
