/* backward_features.c: the backward pass of linear and performer. */
#include "backward/backward_features.h"

#include <math.h>
#include <string.h>

#include "attention/feature_keys.h"
#include "attention/feature_maps.h"
#include "backward/backward_phi.h"
#include "base/number.h"
#include "base/pace.h"
#include "base/size.h"
#include "formulas/features.h"

enum {
    QUERIES = 64,   /* of a task */
    SEEN_KEYS = 64, /* keys per lookup: one bit each of a 64-bit number */
    TAKES_MAX = 10,
};

struct feature_gradients {
    const struct attn_gradient_heads *heads;
    struct attn_feature_keys keys;
    double *phi_q;     /* (batch, heads, q_len, m) */
    double *grad_sums; /* (batch, heads, q_len, width): dS */
    uint8_t *is_live;  /* (batch, heads, q_len): has a key and a nonzero dO; only then phi_q and grad_sums are set */
    size_t *order;     /* (batch, q_len): queries sorted by the end of their spans, */
    size_t *starts;    /* (batch, kv_len + 2): and how many spans end before a key */
    /* (batch, kv_heads, key_blocks + 1, m, width): R of the queries that end in the block or later */
    double *suffix_sums;
    double *largest_parts; /* (batch, kv_heads, key_blocks): of the largest P s of a head */
    double *scale_parts;   /* one for each task */
    char *scratch;
    size_t scratch_bytes;
};

/* The scratch memory of a task. */
struct scratch {
    double *product;     /* m: dphi, then du */
    double *row, *value; /* width: (v_j, 1), or a sum of them */
    double *x;           /* d_k + d_v: the gradient of a token */
    double *sums;        /* (m, width) */
    /*
     * pair by pair: for each query of a key head, (group, q_len): a bit per key of a range of SEEN_KEYS, set if visible
     */
    uint64_t *seen;
    size_t seen_first; /* the first key of that range; SIZE_MAX: no range yet */
};

static struct scratch scratch_of(const struct feature_gradients *run, size_t worker)
{
    const struct attn_feature_keys *keys = &run->keys;
    double *memory = (double *)(void *)(run->scratch + worker * run->scratch_bytes);
    struct scratch scratch = {.product = memory, .seen_first = SIZE_MAX};
    scratch.row = scratch.product + keys->m;
    scratch.value = scratch.row + keys->width;
    scratch.x = scratch.value + keys->width;
    scratch.sums = scratch.x + keys->job->d_k + keys->job->d_v;
    scratch.seen = (uint64_t *)(void *)(scratch.sums + keys->m * keys->width);
    return scratch;
}

static size_t group_of(const struct attn_heads_job *job)
{
    return job->heads / job->kv_heads;
}

static size_t query_tasks(const struct attn_heads_job *job)
{
    return job->batch * job->heads * attn_ceil_div(job->q_len, QUERIES);
}

static size_t key_tasks(const struct feature_gradients *run)
{
    return run->keys.job->batch * run->keys.job->kv_heads * run->keys.key_blocks;
}

static const double *phi_of_key(const struct feature_gradients *run, size_t kv_head, size_t j)
{
    return run->keys.phi + (kv_head * run->keys.job->kv_len + j) * run->keys.m;
}

/* (v_j, 1) */
static void read_value(const struct feature_gradients *run, size_t kv_head, size_t j, double *row)
{
    const struct attn_heads_job *job = run->keys.job;
    const struct attn_vector v = attn_keys_row(&job->v, kv_head / job->kv_heads, kv_head % job->kv_heads, j);
    for (size_t c = 0; c < job->d_v; c++)
        row[c] = attn_number_get(v.data, v.dtype, c);
    row[job->d_v] = 1;
}

/* to += factor from */
static void add(double *to, double factor, const double *from, size_t count)
{
    for (size_t n = 0; n < count; n++)
        to[n] += factor * from[n];
}

/* ---- queries ---- */

struct query {
    size_t b, h, i, row;
    struct attn_feature_sums sums;
    struct attn_feature_look look;
};

static bool is_zero(const struct feature_gradients *run, const struct query *query)
{
    const struct attn_operand *grad = &run->heads->grad_context;
    const size_t at = attn_operand_at(grad, query->b, query->h, query->i);
    for (size_t c = 0; c < run->keys.job->d_v; c++)
        if (attn_number_get(grad->data, run->keys.job->compute, at + c) != 0)
            return false;
    return true;
}

static void put_query(const struct feature_gradients *run, const struct query *query, const double *x)
{
    const struct attn_operand *to = &run->heads->grad_q;
    const size_t at = attn_operand_at(to, query->b, query->h, query->i);
    for (size_t f = 0; to->data != NULL && f < run->keys.job->d_k; f++)
        attn_number_put((void *)(uintptr_t)to->data, run->keys.job->compute, at + f, x == NULL ? 0 : x[f]);
}

/* Writes S into row: from running sums, or pair by pair. */
static void sum_keys(const struct feature_gradients *run, struct query *query, attn_span span, const double *phi,
                     struct scratch *scratch)
{
    const struct attn_feature_keys *keys = &run->keys;
    memset(scratch->row, 0, keys->width * sizeof *scratch->row);
    if (keys->is_running) {
        attn_feature_advance(keys, &query->sums, span.to);
        for (size_t r = 0; r < keys->m; r++)
            add(scratch->row, phi[r], query->sums.sums + r * keys->width, keys->width);
        return;
    }
    for (size_t j = span.from; j < span.to && !attn_is_cancelled(keys->runtime); j++)
        if (attn_feature_allows(keys, &query->look, query->b, query->h, query->i, j)) {
            read_value(run, query->sums.head, j, scratch->value);
            add(scratch->row, attn_feature_dot(phi, phi_of_key(run, query->sums.head, j), keys->m), scratch->value,
                keys->width);
        }
}

/* dS, from S in row. */
static void differentiate_quotient(const struct feature_gradients *run, const struct query *query, const double *row,
                                   double *grad_sums)
{
    const struct attn_heads_job *job = run->keys.job;
    const struct attn_operand *grad = &run->heads->grad_context;
    const size_t at = attn_operand_at(grad, query->b, query->h, query->i);
    const double divisor = attn_feature_divisor(run->keys.mechanism, row[job->d_v]);
    double product = 0;
    for (size_t c = 0; c < job->d_v; c++) {
        const double dO = attn_number_get(grad->data, job->compute, at + c);
        grad_sums[c] = dO / divisor;
        product += dO * row[c];
    }
    grad_sums[job->d_v] = run->keys.mechanism->is_unnormalised ? 0 : -product / divisor / divisor;
}

/* Writes dphi(q) into product. */
static void differentiate_sums(const struct feature_gradients *run, struct query *query, attn_span span,
                               const double *grad_sums, struct scratch *scratch)
{
    const struct attn_feature_keys *keys = &run->keys;
    memset(scratch->product, 0, keys->m * sizeof *scratch->product);
    for (size_t r = 0; keys->is_running && r < keys->m; r++)
        scratch->product[r] = attn_feature_dot(query->sums.sums + r * keys->width, grad_sums, keys->width);
    for (size_t j = span.from; !keys->is_running && j < span.to && !attn_is_cancelled(keys->runtime); j++)
        if (attn_feature_allows(keys, &query->look, query->b, query->h, query->i, j)) {
            read_value(run, query->sums.head, j, scratch->value);
            add(scratch->product, attn_feature_dot(scratch->value, grad_sums, keys->width),
                phi_of_key(run, query->sums.head, j), keys->m);
        }
}

static double differentiate_query(const struct feature_gradients *run, struct query *query, struct scratch *scratch)
{
    const struct attn_feature_keys *keys = &run->keys;
    const attn_span span = attn_mask_span(keys->job->mask, query->b, query->i);
    const bool is_live =
        attn_feature_sees(keys, &query->look, query->b, query->h, query->i, span) && !is_zero(run, query);
    double *phi = run->phi_q + query->row * keys->m, *grad_sums = run->grad_sums + query->row * keys->width;
    run->is_live[query->row] = is_live;
    if (!is_live) {
        put_query(run, query, NULL);
        return 0;
    }
    attn_feature_map_query(keys, query->b, query->h, query->i, phi);
    sum_keys(run, query, span, phi, scratch);
    differentiate_quotient(run, query, scratch->row, grad_sums);
    differentiate_sums(run, query, span, grad_sums, scratch);
    const double of_scale = attn_gradient_phi_of_query(
        keys, attn_operand_row(&keys->job->q, query->b, query->h, query->i), phi, scratch->product, scratch->x);
    put_query(run, query, scratch->x);
    return of_scale;
}

static void query_task(void *argument, size_t index, size_t worker)
{
    const struct feature_gradients *run = argument;
    const struct attn_heads_job *job = run->keys.job;
    const size_t across = attn_ceil_div(job->q_len, QUERIES), head = index / across, first = index % across * QUERIES;
    struct scratch scratch = scratch_of(run, worker);
    struct query query = {.b = head / job->heads, .h = head % job->heads, .sums = {.at = SIZE_MAX}};
    query.sums.head = query.b * job->kv_heads + query.h / group_of(job);
    query.sums.sums = scratch.sums;
    double of_scale = 0;
    for (query.i = first; query.i < attn_min(first + QUERIES, job->q_len) && !attn_is_cancelled(run->keys.runtime);
         query.i++) {
        query.row = head * job->q_len + query.i;
        of_scale += differentiate_query(run, &query, &scratch);
    }
    run->scale_parts[index] = of_scale;
}

/* ---- R, from the last query back ---- */

/* Task: sorts the queries of one item by the end of their spans. */
static void order_task(void *argument, size_t b, size_t worker)
{
    (void)worker;
    const struct feature_gradients *run = argument;
    const struct attn_heads_job *job = run->keys.job;
    size_t *order = run->order + b * job->q_len, *starts = run->starts + b * (job->kv_len + 2);
    memset(starts, 0, (job->kv_len + 2) * sizeof *starts);
    for (size_t i = 0; i < job->q_len; i++) {
        const attn_span span = attn_mask_span(job->mask, b, i);
        starts[(span.from < span.to ? span.to : 0) + 1]++;
    }
    for (size_t end = 1; end < job->kv_len + 2; end++)
        starts[end] += starts[end - 1];
    for (size_t i = job->q_len; i-- > 0;) {
        const attn_span span = attn_mask_span(job->mask, b, i);
        order[--starts[(span.from < span.to ? span.to : 0) + 1]] = i;
    }
    /* The loop has moved each start down to the one before it. */
    memmove(starts, starts + 1, (job->kv_len + 1) * sizeof *starts);
    starts[job->kv_len + 1] = job->q_len;
}

/* sums += R of the queries of a group whose spans end in [from, to). */
static void add_queries(const struct feature_gradients *run, size_t kv_head, size_t from, size_t to, double *sums)
{
    const struct attn_feature_keys *keys = &run->keys;
    const struct attn_heads_job *job = keys->job;
    const size_t b = kv_head / job->kv_heads, group = group_of(job), *starts = run->starts + b * (job->kv_len + 2);
    for (size_t n = starts[from]; n < starts[to] && !attn_is_cancelled(keys->runtime); n++)
        for (size_t h = kv_head % job->kv_heads * group; h < (kv_head % job->kv_heads + 1) * group; h++) {
            const size_t row = (b * job->heads + h) * job->q_len + run->order[b * job->q_len + n];
            for (size_t r = 0; run->is_live[row] && r < keys->m; r++)
                add(sums + r * keys->width, run->phi_q[row * keys->m + r], run->grad_sums + row * keys->width,
                    keys->width);
        }
}

static double *suffix_sums_of(const struct feature_gradients *run, size_t kv_head, size_t block)
{
    return run->suffix_sums + (kv_head * (run->keys.key_blocks + 1) + block) * run->keys.m * run->keys.width;
}

/* Task: R of the queries whose spans end in one block of keys. */
static void block_sums_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct feature_gradients *run = argument;
    const size_t all = run->keys.key_blocks + 1, kv_head = index / all, block = index % all;
    const size_t end = run->keys.job->kv_len + 1;
    double *sums = suffix_sums_of(run, kv_head, block);
    memset(sums, 0, run->keys.m * run->keys.width * sizeof *sums);
    add_queries(run, kv_head, attn_min(block * FEATURE_KEYS, end), attn_min((block + 1) * FEATURE_KEYS, end), sums);
}

/* Task: suffix sums over the blocks of one head. */
static void suffix_sums_task(void *argument, size_t kv_head, size_t worker)
{
    (void)worker;
    const struct feature_gradients *run = argument;
    for (size_t block = run->keys.key_blocks; block-- > 0;)
        add(suffix_sums_of(run, kv_head, block), 1, suffix_sums_of(run, kv_head, block + 1),
            run->keys.m * run->keys.width);
}

/* ---- keys ---- */

static void put_key(const struct feature_gradients *run, const struct attn_operand *to_past,
                    const struct attn_operand *to_new, size_t kv_head, size_t j, size_t d, const double *from)
{
    const struct attn_heads_job *job = run->keys.job;
    const size_t past_len = run->heads->past_len;
    const struct attn_operand *to = j < past_len ? to_past : to_new;
    if (to->data == NULL)
        return;
    const size_t at =
        attn_operand_at(to, kv_head / job->kv_heads, kv_head % job->kv_heads, j < past_len ? j : j - past_len);
    for (size_t f = 0; f < d; f++)
        attn_number_put((void *)(uintptr_t)to->data, job->compute, at + f, from[f]);
}

/* Writes dphi(k_j) into product and dv_j into x, from R. */
static void take_from_sums(const struct feature_gradients *run, const double *phi, struct scratch *scratch)
{
    const struct attn_feature_keys *keys = &run->keys;
    for (size_t r = 0; r < keys->m; r++) {
        const double *row = scratch->sums + r * keys->width;
        scratch->product[r] = attn_feature_dot(row, scratch->value, keys->width);
        add(scratch->x, phi[r], row, keys->job->d_v);
    }
}

/* Looks up which queries of a key head may attend to the keys of the range around j: once for the whole range. */
static void see_run(const struct feature_gradients *run, size_t kv_head, size_t j, struct scratch *scratch)
{
    const struct attn_heads_job *job = run->keys.job;
    const size_t b = kv_head / job->kv_heads, group = group_of(job), head = kv_head % job->kv_heads * group;
    const size_t first = j / SEEN_KEYS * SEEN_KEYS, end = attn_min(first + SEEN_KEYS, job->kv_len);
    if (first == scratch->seen_first)
        return;
    scratch->seen_first = first;
    for (size_t row = 0; row < group * job->q_len && !attn_is_cancelled(run->keys.runtime); row++) {
        const size_t h = head + row / job->q_len, i = row % job->q_len;
        uint8_t allow[SEEN_KEYS];
        scratch->seen[row] = 0;
        if (!run->is_live[(b * job->heads + h) * job->q_len + i])
            continue;
        attn_mask_row(job->mask, job->compute, b, h, i, attn_mask_span(job->mask, b, i), first, end, allow);
        for (size_t key = first; key < end; key++)
            scratch->seen[row] |= (uint64_t)(allow[key - first] != 0) << (key - first);
    }
}

/* The same pair by pair, over every query that may attend to the key. */
static void take_from_queries(const struct feature_gradients *run, size_t kv_head, size_t j, const double *phi,
                              struct scratch *scratch)
{
    const struct attn_feature_keys *keys = &run->keys;
    const struct attn_heads_job *job = keys->job;
    const size_t b = kv_head / job->kv_heads, group = group_of(job), first = kv_head % job->kv_heads * group;
    see_run(run, kv_head, j, scratch);
    memset(scratch->product, 0, keys->m * sizeof *scratch->product);
    for (size_t h = first; h < first + group; h++)
        for (size_t i = 0; i < job->q_len && !attn_is_cancelled(keys->runtime); i++) {
            const size_t row = (b * job->heads + h) * job->q_len + i;
            if ((scratch->seen[(h - first) * job->q_len + i] >> (j - scratch->seen_first) & 1) == 0)
                continue;
            const double *phi_q = run->phi_q + row * keys->m, *grad_sums = run->grad_sums + row * keys->width;
            add(scratch->product, attn_feature_dot(grad_sums, scratch->value, keys->width), phi_q, keys->m);
            add(scratch->x, attn_feature_dot(phi_q, phi, keys->m), grad_sums, job->d_v);
        }
}

static double differentiate_key(const struct feature_gradients *run, size_t kv_head, size_t j, struct scratch *scratch,
                                double *of_largest)
{
    const struct attn_feature_keys *keys = &run->keys;
    const struct attn_gradient_heads *heads = run->heads;
    const struct attn_heads_job *job = keys->job;
    const double *phi = phi_of_key(run, kv_head, j);
    const bool is_seen = keys->is_seen[kv_head * job->kv_len + j];
    double of_scale = 0;
    memset(scratch->x, 0, (job->d_k + job->d_v) * sizeof *scratch->x);
    if (is_seen) {
        read_value(run, kv_head, j, scratch->value);
        if (keys->is_running)
            take_from_sums(run, phi, scratch);
        else
            take_from_queries(run, kv_head, j, phi, scratch);
    }
    put_key(run, &heads->grad_past_v, &heads->grad_v, kv_head, j, job->d_v, scratch->x);
    if (is_seen)
        of_scale =
            attn_gradient_phi_of_key(keys, attn_keys_row(&job->k, kv_head / job->kv_heads, kv_head % job->kv_heads, j),
                                     phi, scratch->product, scratch->x, of_largest);
    put_key(run, &heads->grad_past_k, &heads->grad_k, kv_head, j, job->d_k, scratch->x);
    return of_scale;
}

/* Task: one block of keys, from the last key to the first. R grows by the queries whose spans end after each key. */
static void key_task(void *argument, size_t index, size_t worker)
{
    const struct feature_gradients *run = argument;
    const struct attn_feature_keys *keys = &run->keys;
    const size_t kv_head = index / keys->key_blocks, block = index % keys->key_blocks, first = block * FEATURE_KEYS;
    struct scratch scratch = scratch_of(run, worker);
    double of_scale = 0, of_largest = 0;
    if (keys->is_running)
        memcpy(scratch.sums, suffix_sums_of(run, kv_head, block + 1), keys->m * keys->width * sizeof *scratch.sums);
    for (size_t j = attn_min(first + FEATURE_KEYS, keys->job->kv_len);
         j-- > first && !attn_is_cancelled(keys->runtime);) {
        if (keys->is_running && (j + 1) % FEATURE_KEYS != 0)
            add_queries(run, kv_head, j + 1, j + 2, scratch.sums);
        of_scale += differentiate_key(run, kv_head, j, &scratch, &of_largest);
    }
    run->largest_parts[index] = of_largest;
    run->scale_parts[query_tasks(keys->job) + index] = of_scale;
}

/* Task: adds the gradient of the largest P s of a head to the key and the feature that attained it. */
static void largest_task(void *argument, size_t kv_head, size_t worker)
{
    (void)worker;
    const struct feature_gradients *run = argument;
    const struct attn_feature_keys *keys = &run->keys;
    const struct attn_heads_job *job = keys->job;
    const struct attn_gradient_heads *heads = run->heads;
    const size_t j = keys->largest_at[kv_head] / keys->m, r = keys->largest_at[kv_head] % keys->m;
    const size_t b = kv_head / job->kv_heads, h = kv_head % job->kv_heads, past_len = heads->past_len;
    const struct attn_vector k = attn_keys_row(&job->k, b, h, j);
    const struct attn_operand *to = j < past_len ? &heads->grad_past_k : &heads->grad_k;
    const size_t at = attn_operand_at(to, b, h, j < past_len ? j : j - past_len);
    const double factor = attn_feature_key_factor(keys);
    double total = 0, of_scale = 0;
    for (size_t block = 0; block < keys->key_blocks; block++)
        total += run->largest_parts[kv_head * keys->key_blocks + block];
    for (size_t f = 0; keys->largest[kv_head] > -HUGE_VAL && f < job->d_k; f++) {
        const double ds = keys->projection[f * keys->m + r] * total;
        of_scale += ds * factor * attn_number_get(k.data, k.dtype, f);
        if (to->data != NULL)
            attn_number_add((void *)(uintptr_t)to->data, job->compute, at + f, factor * ds);
    }
    run->scale_parts[query_tasks(job) + key_tasks(run) + kv_head] =
        keys->plan->scale == 0 ? 0 : of_scale / (2 * keys->plan->scale);
}

/* ---- the run ---- */

struct counts {
    size_t query_rows, key_heads, suffix_sums, tasks;
};

static struct counts count(const struct attn_feature_keys *keys)
{
    const attn_dims *d = &keys->plan->dims;
    const size_t key_heads = d->batch * d->kv_heads;
    return (struct counts){
        .query_rows = d->batch * d->heads * d->q_len,
        .key_heads = key_heads,
        .suffix_sums = keys->is_running ? key_heads * (keys->key_blocks + 1) * keys->m * keys->width : 0,
        .tasks = d->batch * d->heads * attn_ceil_div(d->q_len, QUERIES) + key_heads * (keys->key_blocks + 1)};
}

size_t attn_gradient_features_scratch_bytes(const attn_plan *plan, const attn_request *request)
{
    const size_t m = attn_mechanism_features(&request->options.mechanism, plan->dims.d_k), width = plan->dims.d_v + 1;
    const size_t rows = plan->dims.heads / plan->dims.kv_heads * plan->dims.q_len;
    const size_t bytes = (m + 2 * width + plan->dims.d_k + plan->dims.d_v + m * width) * sizeof(double) +
                         (plan->has_running_sums ? 0 : rows * sizeof(uint64_t));
    return attn_round_up(bytes, ATTN_ALIGNMENT);
}

size_t attn_gradient_features_shared_bytes(const attn_plan *plan, const attn_request *request)
{
    const attn_dims *d = &plan->dims;
    const struct attn_feature_keys keys = attn_feature_keys_describe(plan, request, NULL, NULL);
    const struct counts counts = count(&keys);
    const size_t numbers = counts.query_rows * (keys.m + keys.width) + counts.suffix_sums +
                           counts.key_heads * keys.key_blocks + counts.tasks;
    return attn_feature_keys_bytes(plan, request) + numbers * sizeof(double) + counts.query_rows +
           d->batch * (d->q_len + d->kv_len + 2) * sizeof(size_t) + (size_t)TAKES_MAX * ATTN_ALIGNMENT;
}

/*
 * The cost of the forward pass, and two or three times each of its products. A mask that is no run of keys is asked for
 * every pair here, hidden or not, which takes the time of some hundred operations.
 */
double attn_gradient_features_flops(const attn_plan *plan, const attn_request *request)
{
    const attn_dims *d = &plan->dims;
    const double pairs = (double)d->batch * (double)d->heads * (double)d->q_len * (double)d->kv_len;
    return 4 * (attn_feature_maps_flops(plan, request) + (plan->has_running_sums ? 0 : 100 * pairs));
}

static bool take_memory(struct feature_gradients *run, attn_arena *arena)
{
    const struct attn_feature_keys *keys = &run->keys;
    const attn_dims *d = &keys->plan->dims;
    const struct counts counts = count(keys);
    run->scratch = attn_arena_take(arena, keys->runtime->threads, run->scratch_bytes);
    run->phi_q = attn_arena_take(arena, counts.query_rows * keys->m, sizeof *run->phi_q);
    run->grad_sums = attn_arena_take(arena, counts.query_rows * keys->width, sizeof *run->grad_sums);
    run->is_live = attn_arena_take(arena, counts.query_rows, 1);
    run->order = attn_arena_take(arena, d->batch * d->q_len, sizeof *run->order);
    run->starts = attn_arena_take(arena, d->batch * (d->kv_len + 2), sizeof *run->starts);
    run->suffix_sums = attn_arena_take(arena, counts.suffix_sums, sizeof *run->suffix_sums);
    run->largest_parts = attn_arena_take(arena, counts.key_heads * keys->key_blocks, sizeof *run->largest_parts);
    run->scale_parts = attn_arena_take_zeroed(arena, counts.tasks, sizeof *run->scale_parts);
    return run->scratch != NULL && run->phi_q != NULL && run->grad_sums != NULL && run->is_live != NULL &&
           run->order != NULL && run->starts != NULL && run->suffix_sums != NULL && run->largest_parts != NULL &&
           run->scale_parts != NULL;
}

attn_status attn_gradient_features_run(const attn_plan *plan, const attn_request *request,
                                       const struct attn_gradient_heads *heads, const attn_runtime *runtime,
                                       attn_arena *arena, attn_error *err)
{
    struct feature_gradients run = {.heads = heads,
                                    .keys = attn_feature_keys_describe(plan, request, &heads->job, runtime),
                                    .scratch_bytes = attn_gradient_features_scratch_bytes(plan, request)};
    attn_status status = take_memory(&run, arena) ? attn_feature_keys_prepare(&run.keys, arena) : ATTN_ERR_NO_MEMORY;
    if (status == ATTN_ERR_NO_MEMORY)
        return attn_fail(err, status, NULL, "not enough memory for the gradients of the features");
    if (status != ATTN_OK)
        return attn_fail_stopped(err);
    const struct counts counts = count(&run.keys);
    attn_spread(run.keys.runtime, query_tasks(&heads->job), query_task, &run);
    if (run.keys.is_running) {
        attn_spread(run.keys.runtime, plan->dims.batch, order_task, &run);
        attn_spread(run.keys.runtime, counts.key_heads * (run.keys.key_blocks + 1), block_sums_task, &run);
        attn_spread(run.keys.runtime, counts.key_heads, suffix_sums_task, &run);
    }
    attn_spread(run.keys.runtime, key_tasks(&run), key_task, &run);
    if (run.keys.mechanism->type == ATTN_PERFORMER)
        attn_spread(run.keys.runtime, counts.key_heads, largest_task, &run);
    if (attn_is_cancelled(run.keys.runtime))
        return attn_fail_stopped(err);
    double scale = 0;
    for (size_t t = 0; t < counts.tasks; t++)
        scale += run.scale_parts[t];
    if (heads->grad_scale != NULL)
        *heads->grad_scale = scale;
    return ATTN_OK;
}
