/*
 * experts.c: the mixture of experts of a feed-forward network. Tokens are grouped by the experts that they chose, so that
 * each chosen expert takes one product for each of its matrices.
 *
 * A pair is a token and one of its experts. Pairs are numbered by token, then by rank, the place of the expert among
 * those of the token. Their rows lie in the order of items, experts and tokens: slot[pair] is the row of a pair.
 */
#include "layer/stages.h"

#include <math.h>
#include <string.h>

#include "base/number.h"
#include "base/parallel.h"
#include "base/size.h"

struct mixture {
    struct layer_run *run;
    const attn_experts *experts;
    const attn_expert_options *options;
    size_t tokens, count, per_token, d_in, d_expert, d_out;
    char *logits;    /* (tokens, count) */
    int64_t *chosen; /* (tokens, per_token) */
    char *weights;   /* likewise */
    size_t *slot;    /* likewise */
    size_t *first;   /* (batch, count): the first row of an expert, and at the end the number of rows */
    char *rows;      /* (pairs, d_in), and then (pairs, d_out) */
    char *up, *gate; /* (pairs, d_expert); gate NULL: none */
    char *both;      /* (pairs, 2 d_expert), of pairs of columns */
    char *shared;    /* (tokens): the logit of the gate of the shared network; NULL: none */
};

static bool is_gated(const attn_request *request)
{
    return request->options.feed_forward.experts.pairs ||
           request->weights.feed_forward.experts.each[0].gate.weight != NULL;
}

/* ---- the choice ---- */

/* Whether a logit goes before one that has a lower index. */
static bool is_larger(double logit, double other)
{
    return logit > other || (isnan(other) && !isnan(logit));
}

/* The per_token largest logits, in descending order; equal ones by their index. */
static void choose(const struct mixture *m, const char *logits, int64_t *chosen)
{
    const attn_dtype compute = m->run->plan->compute;
    size_t kept = 0;
    for (size_t e = 0; e < m->count; e++) {
        const double logit = attn_number_get(logits, compute, e);
        size_t at = kept;
        while (at > 0 && is_larger(logit, attn_number_get(logits, compute, (size_t)chosen[at - 1])))
            at--;
        if (at == m->per_token)
            continue;
        kept += kept < m->per_token;
        memmove(chosen + at + 1, chosen + at, (kept - 1 - at) * sizeof *chosen);
        chosen[at] = (int64_t)e;
    }
}

/* The largest logit is the first of the chosen ones. Subtracting it keeps exp in range. */
static void weigh(const struct mixture *m, const char *logits, const int64_t *chosen, size_t pair)
{
    const attn_dtype compute = m->run->plan->compute;
    const double largest = attn_number_get(logits, compute, (size_t)chosen[0]);
    double sum = 0;
    for (size_t n = 0; n < (m->options->normalised ? m->per_token : m->count); n++)
        sum += exp(attn_number_get(logits, compute, m->options->normalised ? (size_t)chosen[n] : n) - largest);
    for (size_t r = 0; r < m->per_token; r++)
        attn_number_put(m->weights, compute, pair + r,
                        exp(attn_number_get(logits, compute, (size_t)chosen[r]) - largest) / sum);
}

static void choose_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct mixture *m = argument;
    const size_t end = attn_min(m->tokens, (index + 1) * TOKEN_ROWS);
    for (size_t token = index * TOKEN_ROWS; token < end; token++) {
        const char *logits = m->logits + token * m->count * m->run->element;
        choose(m, logits, m->chosen + token * m->per_token);
        weigh(m, logits, m->chosen + token * m->per_token, token * m->per_token);
    }
}

/* Counts the tokens of each expert, item by item, and gives each pair its row. */
static void group(const struct mixture *m)
{
    const size_t batch = m->run->plan->dims.batch, pairs = m->tokens * m->per_token;
    const size_t pairs_of_item = pairs / attn_max(batch, 1);
    memset(m->first, 0, (batch * m->count + 1) * sizeof *m->first);
    for (size_t pair = 0; pair < pairs; pair++)
        m->first[pair / pairs_of_item * m->count + (size_t)m->chosen[pair] + 1]++;
    for (size_t n = 0; n < batch * m->count; n++)
        m->first[n + 1] += m->first[n];
    for (size_t pair = 0; pair < pairs; pair++)
        m->slot[pair] = m->first[pair / pairs_of_item * m->count + (size_t)m->chosen[pair]]++;
    for (size_t n = batch * m->count; n > 0; n--) /* each has become the first row of the next one */
        m->first[n] = m->first[n - 1];
    m->first[0] = 0;
}

/* ---- products ---- */

static void add_product(const struct mixture *m, const attn_affine *affine, attn_layout layout, size_t inner,
                        size_t columns, const struct attn_product *rows, struct attn_product *product)
{
    const attn_kernel *kernel = m->run->plan->compute == ATTN_F32 ? m->run->runtime->kernel : NULL;
    const attn_projection slice = attn_projection_of_matrix(affine, layout, inner, columns);
    attn_projection_products(&slice, layout, m->run->element, kernel, rows, product);
}

static void multiply(const struct mixture *m, struct attn_product *products, size_t count, attn_layout layout)
{
    attn_products_run(products, count, m->run->plan->compute, layout, m->run->runtime, m->run->product_scratch);
}

/* The logits of the router, and of the gate of the shared network. */
static void route(const struct mixture *m)
{
    const attn_layout layout = m->run->request->weights.layout;
    const attn_dims *d = &m->run->plan->dims;
    struct attn_product products[2], tokens = {.x = m->run->ff_input, .batch = d->batch, .rows = d->q_len};
    tokens.y = m->logits;
    add_product(m, &m->experts->router, layout, m->d_in, m->count, &tokens, &products[0]);
    tokens.y = m->shared;
    if (m->shared != NULL)
        add_product(m, &m->experts->shared_gate, layout, m->d_in, 1, &tokens, &products[1]);
    multiply(m, products, m->shared != NULL ? 2 : 1, layout);
    attn_spread(m->run->runtime, attn_ceil_div(m->tokens, TOKEN_ROWS), choose_task, (void *)(uintptr_t)m);
}

/* The product of each group of rows by one matrix of its expert; member is its place in attn_expert. */
static size_t add_groups(const struct mixture *m, size_t member, size_t inner, size_t columns, const char *x, char *y,
                         struct attn_product *products)
{
    size_t count = 0;
    for (size_t n = 0; n < m->run->plan->dims.batch * m->count; n++) {
        const attn_expert *expert = &m->experts->each[n % m->count];
        const attn_affine *affine = (const attn_affine *)(const void *)((const char *)expert + member);
        const size_t first = m->first[n], rows = m->first[n + 1] - first;
        const struct attn_product group = {.x = x + first * inner * m->run->element,
                                           .y = y + first * columns * m->run->element,
                                           .batch = 1,
                                           .rows = rows};
        if (rows > 0)
            add_product(m, affine, m->experts->layout, inner, columns, &group, &products[count++]);
    }
    return count;
}

/* ---- between the products ---- */

/* Copies each token to the rows of its pairs. */
static void gather_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct mixture *m = argument;
    const size_t bytes = m->d_in * m->run->element, end = attn_min(m->tokens, (index + 1) * TOKEN_ROWS);
    for (size_t token = index * TOKEN_ROWS; token < end; token++)
        for (size_t r = 0; r < m->per_token; r++)
            memcpy(m->rows + m->slot[token * m->per_token + r] * bytes, m->run->ff_input + token * bytes, bytes);
}

/* A number that is NaN stays NaN. */
static double clamp(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

/* Divides pairs of columns into gate and up, and applies limit and offset. Without pairs it does so in place. */
static void limit_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct mixture *m = argument;
    const attn_dtype compute = m->run->plan->compute;
    const double limit = m->options->limit != 0 ? m->options->limit : (double)INFINITY;
    const size_t end = attn_min(m->tokens * m->per_token, (index + 1) * TOKEN_ROWS) * m->d_expert;
    for (size_t at = index * TOKEN_ROWS * m->d_expert; at < end; at++) {
        const double gate =
            attn_number_get(m->both != NULL ? m->both : m->gate, compute, m->both != NULL ? 2 * at : at);
        const double up =
            attn_number_get(m->both != NULL ? m->both : m->up, compute, m->both != NULL ? 2 * at + 1 : at);
        attn_number_put(m->gate, compute, at, gate > limit ? limit : gate);
        attn_number_put(m->up, compute, at, clamp(up, -limit, limit) + m->options->offset);
    }
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* The sum of the experts' results of each token, and of the shared network's. */
static void add_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct mixture *m = argument;
    const attn_dtype compute = m->run->plan->compute;
    const size_t end = attn_min(m->tokens, (index + 1) * TOKEN_ROWS);
    for (size_t token = index * TOKEN_ROWS; token < end; token++) {
        const size_t pair = token * m->per_token;
        const bool has_shared = m->run->plan->dims.d_ff > 0;
        const double gate = m->shared != NULL ? sigmoid(attn_number_get(m->shared, compute, token)) : 1;
        for (size_t j = 0; j < m->d_out; j++) {
            double sum = 0;
            for (size_t r = 0; r < m->per_token; r++)
                sum += attn_number_get(m->weights, compute, pair + r) *
                       attn_number_get(m->rows, compute, m->slot[pair + r] * m->d_out + j);
            if (has_shared)
                sum += gate * attn_number_get(m->run->expanded, compute, token * m->d_out + j);
            attn_number_put(m->run->expanded, compute, token * m->d_out + j, sum);
        }
    }
}

static void spread(const struct mixture *m, size_t rows, attn_task *task)
{
    attn_spread(m->run->runtime, attn_ceil_div(rows, TOKEN_ROWS), task, (void *)(uintptr_t)m);
}

/* ---- size ---- */

static size_t pairs_of(const attn_request *request, const attn_dims *dims)
{
    return dims->batch * dims->q_len * request->options.feed_forward.experts.per_token;
}

/* Numbers of the compute type for each pair: its row, and what is between up and down. */
static size_t numbers_of_pair(const attn_request *request, const attn_dims *dims)
{
    const size_t arrays = 1U + is_gated(request) + 2U * request->options.feed_forward.experts.pairs;
    return attn_max(attn_feed_forward_d_in(request, dims), dims->d_out) + arrays * dims->d_expert;
}

double attn_experts_numbers(const attn_request *request, const attn_dims *dims)
{
    if (dims->experts == 0)
        return 0;
    const double tokens = (double)dims->batch * (double)dims->q_len;
    return tokens * ((double)request->options.feed_forward.experts.per_token * (double)numbers_of_pair(request, dims) +
                     2 * (double)dims->experts);
}

size_t attn_experts_bytes(const attn_request *request, const attn_dims *dims)
{
    if (dims->experts == 0)
        return 0;
    const size_t element = attn_dtype_bytes(request->options.compute), tokens = dims->batch * dims->q_len;
    const size_t pairs = pairs_of(request, dims), groups = dims->batch * dims->experts;
    return tokens * (dims->experts + 1) * element + pairs * (numbers_of_pair(request, dims) + 1) * element +
           pairs * (sizeof(int64_t) + sizeof(size_t)) + (groups + 1) * sizeof(size_t) +
           2 * groups * sizeof(struct attn_product);
}

double attn_experts_flops(const attn_request *request, const attn_dims *dims)
{
    if (dims->experts == 0)
        return 0;
    const double tokens = (double)dims->batch * (double)dims->q_len, experts = (double)dims->experts;
    const double per_token = (double)request->options.feed_forward.experts.per_token;
    const double d_in = (double)attn_feed_forward_d_in(request, dims), d_out = (double)dims->d_out;
    const double expert = 2 * (double)dims->d_expert * (d_in * (is_gated(request) ? 2 : 1) + d_out);
    return tokens * (2 * d_in * experts + experts * (30 + per_token) +
                     per_token * (expert + 30 * (double)dims->d_expert + 4 * d_out));
}

/* ---- the run ---- */

static void take_memory(struct mixture *m, struct attn_product **products)
{
    struct layer_run *run = m->run;
    const size_t pairs = m->tokens * m->per_token, groups = run->plan->dims.batch * m->count;
    const bool gated = is_gated(run->request);
    m->logits = layer_take(run, m->tokens * m->count);
    m->chosen = layer_take_of(run, pairs, sizeof *m->chosen);
    m->weights = layer_take(run, pairs);
    m->slot = layer_take_of(run, pairs, sizeof *m->slot);
    m->first = layer_take_of(run, groups + 1, sizeof *m->first);
    m->rows = layer_take(run, pairs * attn_max(m->d_in, m->d_out));
    m->up = layer_take(run, pairs * m->d_expert);
    m->gate = gated ? layer_take(run, pairs * m->d_expert) : NULL;
    m->both = m->options->pairs ? layer_take(run, pairs * 2 * m->d_expert) : NULL;
    m->shared = m->experts->shared_gate.weight != NULL ? layer_take(run, m->tokens) : NULL;
    *products = layer_take_of(run, 2 * groups, sizeof **products);
}

/* The rows of all pairs become the results of their experts. */
static void run_experts(const struct mixture *m, struct attn_product *products)
{
    const size_t pairs = m->tokens * m->per_token, columns = m->both != NULL ? 2 * m->d_expert : m->d_expert;
    char *const up = m->both != NULL ? m->both : m->up;
    size_t count = add_groups(m, offsetof(attn_expert, up), m->d_in, columns, m->rows, up, products);
    if (m->gate != NULL && m->both == NULL)
        count += add_groups(m, offsetof(attn_expert, gate), m->d_in, columns, m->rows, m->gate, products + count);
    multiply(m, products, count, m->experts->layout);
    if (m->both != NULL || m->options->limit != 0 || m->options->offset != 0)
        spread(m, pairs, limit_task);
    attn_numbers_activate(m->run->request->options.feed_forward.activation, m->run->plan->compute, pairs * m->d_expert,
                          m->gate != NULL ? m->gate : m->up, m->gate != NULL ? m->up : NULL, m->up, m->run->runtime);
    count = add_groups(m, offsetof(attn_expert, down), m->d_expert, m->d_out, m->up, m->rows, products);
    multiply(m, products, count, m->experts->layout);
}

void attn_layer_experts(struct layer_run *run)
{
    const attn_dims *d = &run->plan->dims;
    const attn_request *request = run->request;
    struct mixture m = {.run = run,
                        .experts = &request->weights.feed_forward.experts,
                        .options = &request->options.feed_forward.experts,
                        .tokens = layer_query_tokens(run),
                        .count = d->experts,
                        .per_token = request->options.feed_forward.experts.per_token,
                        .d_in = attn_feed_forward_d_in(request, d),
                        .d_expert = d->d_expert,
                        .d_out = d->d_out};
    struct attn_product *products;
    if (d->experts == 0)
        return;
    take_memory(&m, &products);
    if (!layer_goes_on(run))
        return;
    route(&m);
    if (attn_is_cancelled(run->runtime)) { /* what is chosen may be no expert */
        run->status = attn_fail_stopped(run->err);
        return;
    }
    group(&m);
    spread(&m, m.tokens, gather_task);
    run_experts(&m, products);
    spread(&m, m.tokens, add_task);
    const size_t shape[] = {d->batch, d->q_len, m.per_token};
    run->result->expert_indices = attn_tensor_view(m.chosen, ATTN_I64, 3, shape);
    run->result->expert_weights = attn_tensor_view(m.weights, run->plan->compute, 3, shape);
}
