/* recurrence.c: the backward pass of linear with an update rule: from the last position of a key head back to its first. */
#include "attention/attention.h"

#include <string.h>

#include "backward/backward.h"
#include "base/parallel.h"
#include "base/size.h"

enum {
    KEPT = 64, /* positions between two states that are kept; the states between them are computed again */
    TAKES_MAX = 6,
};

struct gradient_run {
    struct attn_recurrence read;
    const struct attn_gradient_heads *heads;
    const attn_runtime *runtime;
    double *beta, *scale; /* (batch, kv_heads, len): of the beta that heads may share; (batch, kv_heads): parts of it */
    char *scratch;
    size_t scratch_bytes;
};

/* A key head. */
struct head {
    const struct gradient_run *run;
    size_t b, kv_head, d_k, d_v, size;  /* size: numbers of a state */
    double *kept, *before;              /* states before positions 0, KEPT, …, and before those of a block */
    double *state, *grad;               /* (d_k, d_v) */
    double *key, *query, *gate, *asked; /* (d_k) */
    double *rest, *out, *learnt;        /* (d_v); rest: v - S'^T k, or v without beta */
    double beta;
    size_t begins; /* the first position whose queries have keys, or a state from before */
};

static bool has_beta(const struct head *head)
{
    return head->run->read.beta.data != NULL;
}

/* to (d_v) = S^T x */
static void ask(const struct head *head, const double *state, const double *x, double *to)
{
    memset(to, 0, head->d_v * sizeof *to);
    for (size_t f = 0; f < head->d_k; f++)
        for (size_t c = 0; c < head->d_v; c++)
            to[c] += state[f * head->d_v + c] * x[f];
}

/* to (d_k) = S y */
static void spread(const struct head *head, const double *state, const double *y, double *to)
{
    for (size_t f = 0; f < head->d_k; f++) {
        double sum = 0;
        for (size_t c = 0; c < head->d_v; c++)
            sum += state[f * head->d_v + c] * y[c];
        to[f] = sum;
    }
}

/* S += factor x y^T */
static void add(const struct head *head, double factor, const double *x, const double *y, double *state)
{
    for (size_t f = 0; f < head->d_k; f++)
        for (size_t c = 0; c < head->d_v; c++)
            state[f * head->d_v + c] += factor * x[f] * y[c];
}

static void scale_rows(const struct head *head, const double *gate, double *state)
{
    for (size_t f = 0; gate != NULL && f < head->d_k; f++)
        for (size_t c = 0; c < head->d_v; c++)
            state[f * head->d_v + c] *= gate[f];
}

/* Reads position t, and makes S' of the state before it; then head->rest is what the position learns, over beta. */
static const double *forget(struct head *head, size_t t, double *state)
{
    const struct attn_recurrence *read = &head->run->read;
    const double *gate = attn_recurrence_gates(read, head->b, head->kv_head, t, head->gate);
    attn_recurrence_read(attn_keys_row(&read->job->k, head->b, head->kv_head, t), 0, head->d_k, head->key);
    attn_recurrence_read(attn_keys_row(&read->job->v, head->b, head->kv_head, t), 0, head->d_v, head->rest);
    head->beta = attn_recurrence_beta(read, head->b, head->kv_head, t);
    scale_rows(head, gate, state);
    if (!has_beta(head))
        return gate;
    ask(head, state, head->key, head->out);
    for (size_t c = 0; c < head->d_v; c++)
        head->rest[c] -= head->out[c];
    return gate;
}

static void step(struct head *head, size_t t, double *state)
{
    if (!attn_recurrence_sees(&head->run->read, head->b, t))
        return;
    forget(head, t, state);
    add(head, head->beta, head->key, head->rest, state);
}

/* ---- one position back ---- */

static void put(const struct attn_operand *to, size_t b, size_t h, size_t t, size_t count, const double *numbers,
                double factor)
{
    const size_t at = to->data == NULL ? 0 : attn_operand_at(to, b, h, t);
    for (size_t n = 0; to->data != NULL && n < count; n++)
        attn_number_put((void *)(uintptr_t)to->data, to->dtype, at + n, factor * numbers[n]);
}

/* Queries of position t read the state behind it. */
static void queries_back(struct head *head, size_t t)
{
    const struct gradient_run *run = head->run;
    const struct attn_heads_job *job = run->read.job;
    const size_t group = job->heads / job->kv_heads;
    for (size_t h = head->kv_head * group; h < (head->kv_head + 1) * group; h++) {
        const struct attn_vector grad = attn_operand_row(&run->heads->grad_context, head->b, h, t);
        attn_recurrence_read(attn_operand_row(&job->q, head->b, h, t), 0, head->d_k, head->query);
        attn_recurrence_read(grad, 0, head->d_v, head->out);
        spread(head, head->state, head->out, head->asked);
        put(&run->heads->grad_q, head->b, h, t, head->d_k, head->asked, job->scale);
        for (size_t f = 0; f < head->d_k; f++)
            run->scale[head->b * job->kv_heads + head->kv_head] += head->query[f] * head->asked[f];
        add(head, job->scale, head->query, head->out, head->grad);
    }
}

/* As the forward pass, whatever numbers such a query has, or what is behind its context. */
static void empty_queries_back(struct head *head, size_t t)
{
    const struct gradient_run *run = head->run;
    const size_t group = run->read.job->heads / run->read.job->kv_heads;
    memset(head->query, 0, head->d_k * sizeof *head->query);
    for (size_t h = head->kv_head * group; h < (head->kv_head + 1) * group; h++)
        put(&run->heads->grad_q, head->b, h, t, head->d_k, head->query, 1);
}

/* head->grad is dS'. */
static void decay_back(const struct head *head, size_t t, const double *before, const double *gate)
{
    const struct attn_recurrence *read = &head->run->read;
    const size_t width = read->gate_width;
    void *to = head->run->heads->grad_decay;
    const size_t at = attn_recurrence_token(read, read->job->kv_heads, width, head->b, head->kv_head, t);
    double all = 0;
    for (size_t f = 0; to != NULL && f < head->d_k; f++) {
        double sum = 0;
        for (size_t c = 0; c < head->d_v; c++)
            sum += head->grad[f * head->d_v + c] * before[f * head->d_v + c];
        all = (width == 1 ? all : 0) + gate[f] * sum;
        attn_number_put(to, read->job->compute, at + (width == 1 ? 0 : f), all);
    }
}

static void key_back(struct head *head, size_t t, const double *before)
{
    const struct gradient_run *run = head->run;
    memcpy(head->state, before, head->size * sizeof *before);
    const double *gate = forget(head, t, head->state);
    ask(head, head->grad, head->key, head->learnt); /* du */
    spread(head, head->grad, head->rest, head->query);
    put(&run->heads->grad_v, head->b, head->kv_head, t, head->d_v, head->learnt, head->beta);
    if (has_beta(head)) {
        double grad_beta = 0;
        for (size_t c = 0; c < head->d_v; c++)
            grad_beta += head->learnt[c] * head->rest[c];
        run->beta[attn_recurrence_position(&run->read, head->b, head->kv_head, t)] = grad_beta;
        spread(head, head->state, head->learnt, head->asked);
        for (size_t f = 0; f < head->d_k; f++)
            head->query[f] -= head->asked[f];
        add(head, -head->beta, head->key, head->learnt, head->grad);
    }
    put(&run->heads->grad_k, head->b, head->kv_head, t, head->d_k, head->query, head->beta);
    if (gate != NULL)
        decay_back(head, t, before, gate);
    scale_rows(head, gate, head->grad);
}

/* A hidden key has gradients of 0, those of decay are 0 before. */
static void nothing_back(struct head *head, size_t t)
{
    memset(head->key, 0, head->d_k * sizeof *head->key);
    memset(head->rest, 0, head->d_v * sizeof *head->rest);
    put(&head->run->heads->grad_k, head->b, head->kv_head, t, head->d_k, head->key, 1);
    put(&head->run->heads->grad_v, head->b, head->kv_head, t, head->d_v, head->rest, 1);
}

static void position_back(struct head *head, size_t t, const double *before)
{
    memcpy(head->state, before, head->size * sizeof *before);
    step(head, t, head->state);
    (t < head->begins ? empty_queries_back : queries_back)(head, t);
    (attn_recurrence_sees(&head->run->read, head->b, t) ? key_back(head, t, before) : nothing_back(head, t));
}

/* ---- a head ---- */

static size_t blocks_of(size_t len)
{
    return attn_ceil_div(len, KEPT);
}

static struct head lay_out(const struct gradient_run *run, size_t index, size_t worker)
{
    const struct attn_heads_job *job = run->read.job;
    struct head head = {.run = run,
                        .b = index / job->kv_heads,
                        .kv_head = index % job->kv_heads,
                        .d_k = job->d_k,
                        .d_v = job->d_v,
                        .size = job->d_k * job->d_v};
    head.kept = (double *)(void *)(run->scratch + worker * run->scratch_bytes);
    head.before = head.kept + blocks_of(job->kv_len) * head.size;
    head.state = head.before + KEPT * head.size;
    head.grad = head.state + head.size;
    head.key = head.grad + head.size;
    head.query = head.key + head.d_k;
    head.gate = head.query + head.d_k;
    head.asked = head.gate + head.d_k;
    head.rest = head.asked + head.d_k;
    head.out = head.rest + head.d_v;
    head.learnt = head.out + head.d_v;
    return head;
}

/* The states before each block. False when the work is cancelled. */
static bool keep_states(struct head *head, struct attn_pace *pace)
{
    const struct attn_heads_job *job = head->run->read.job;
    const struct attn_vector past = head->run->read.past_state;
    memset(head->state, 0, head->size * sizeof *head->state);
    head->begins = past.data != NULL ? 0 : job->kv_len;
    if (past.data != NULL)
        attn_recurrence_read(past, (head->b * job->kv_heads + head->kv_head) * head->size, head->size, head->state);
    for (size_t t = 0; t < job->kv_len; t++) {
        if (attn_pace_stops(pace, 2 * head->size))
            return false;
        if (t < head->begins && attn_recurrence_sees(&head->run->read, head->b, t))
            head->begins = t;
        if (t % KEPT == 0)
            memcpy(head->kept + t / KEPT * head->size, head->state, head->size * sizeof *head->state);
        step(head, t, head->state);
    }
    return true;
}

/* False when the work is cancelled. */
static bool block_back(struct head *head, size_t first, struct attn_pace *pace)
{
    const size_t end = attn_min(first + KEPT, head->run->read.job->kv_len);
    memcpy(head->before, head->kept + first / KEPT * head->size, head->size * sizeof *head->before);
    for (size_t t = first; t + 1 < end; t++) {
        double *next = head->before + (t + 1 - first) * head->size;
        memcpy(next, next - head->size, head->size * sizeof *next);
        step(head, t, next);
    }
    for (size_t t = end; t-- > first;) {
        if (attn_pace_stops(pace, 8 * head->size))
            return false;
        position_back(head, t, head->before + (t - first) * head->size);
    }
    return true;
}

static void head_task(void *argument, size_t index, size_t worker)
{
    const struct gradient_run *run = argument;
    const struct attn_heads_job *job = run->read.job;
    struct head head = lay_out(run, index, worker);
    struct attn_pace pace = attn_pace_begin(run->runtime);
    memset(head.grad, 0, head.size * sizeof *head.grad);
    if (!keep_states(&head, &pace))
        return;
    for (size_t block = blocks_of(job->kv_len); block-- > 0;)
        if (!block_back(&head, block * KEPT, &pace))
            return;
    for (size_t n = 0; run->heads->grad_past_state != NULL && n < head.size; n++)
        attn_number_put(run->heads->grad_past_state, job->compute, index * head.size + n, head.grad[n]);
}

/* ---- the run ---- */

double attn_gradient_recurrence_numbers(const attn_plan *plan)
{
    const double d_k = (double)plan->dims.d_k, d_v = (double)plan->dims.d_v;
    return d_k * d_v * ((double)blocks_of(plan->dims.kv_len) + KEPT + 2) + 4 * (d_k + d_v);
}

struct attn_bytes attn_gradient_recurrence_bytes(const attn_plan *plan)
{
    const attn_dims *d = &plan->dims;
    const size_t numbers = d->d_k * d->d_v * (blocks_of(d->kv_len) + KEPT + 2) + 4 * (d->d_k + d->d_v);
    return (struct attn_bytes){
        .scratch = attn_round_up(numbers * sizeof(double), ATTN_ALIGNMENT),
        .shared = attn_recurrence_gates_bytes(plan) + d->batch * d->kv_heads * (d->kv_len + 1) * sizeof(double) +
                  (size_t)TAKES_MAX * ATTN_ALIGNMENT,
    };
}

double attn_gradient_recurrence_flops(const attn_plan *plan)
{
    return 5 * attn_recurrence_flops(plan);
}

/* A beta that heads share has the sum of their gradients. */
static void finish_beta(const struct gradient_run *run)
{
    const struct attn_recurrence *read = &run->read;
    const struct attn_heads_job *job = read->job;
    const size_t heads = read->beta_heads, shared = heads == 0 ? 0 : job->kv_heads / heads;
    for (size_t at = 0; run->heads->grad_beta != NULL && at < job->batch * heads * job->kv_len; at++) {
        const size_t t = at % job->kv_len, head = at / job->kv_len % heads, b = at / job->kv_len / heads;
        double sum = 0;
        for (size_t h = head * shared; h < (head + 1) * shared; h++)
            sum += run->beta[attn_recurrence_position(read, b, h, t)];
        attn_number_put(run->heads->grad_beta, job->compute, attn_recurrence_token(read, heads, 1, b, head, t), sum);
    }
}

attn_status attn_gradient_recurrence_run(const attn_plan *plan, const struct attn_gradient_heads *heads,
                                         const attn_runtime *runtime, attn_arena *arena, attn_error *err)
{
    const struct attn_heads_job *job = &heads->job;
    const size_t kv_heads = job->batch * job->kv_heads;
    struct gradient_run run = {
        .heads = heads, .runtime = runtime, .scratch_bytes = attn_gradient_recurrence_bytes(plan).scratch};
    run.scratch = attn_arena_take(arena, runtime->threads, run.scratch_bytes);
    run.beta = attn_arena_take_zeroed(arena, kv_heads * job->kv_len, sizeof *run.beta);
    run.scale = attn_arena_take_zeroed(arena, kv_heads, sizeof *run.scale);
    if (run.scratch == NULL || run.beta == NULL || run.scale == NULL ||
        !attn_recurrence_begin(&run.read, plan, job, runtime, arena))
        return attn_fail_no_memory(err);
    if (heads->grad_decay != NULL)
        memset(heads->grad_decay, 0, attn_tensor_count(plan->request.inputs.decay) * attn_dtype_bytes(job->compute));
    attn_spread(runtime, kv_heads, head_task, &run);
    if (attn_is_cancelled(runtime))
        return attn_fail_stopped(err);
    finish_beta(&run);
    for (size_t n = 0; heads->grad_scale != NULL && n < kv_heads; n++)
        *heads->grad_scale += run.scale[n];
    return ATTN_OK;
}
