/*
 * recurrence.c: linear attention with an update rule (attn/mechanism.h): a state for each key head, position after position;
 * and its map, row after row. In double, for both types.
 */
#include "attention/attention.h"

#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "base/size.h"
#include "formulas/formulas.h"

enum {
    COLUMNS = 32, /* of the state in a task: a column depends on no other */
    ROWS = 16,    /* of the map in a task; its loops over them are vectorised */
    GATES = 256,  /* positions in a task that makes gates */
    TAKES_MAX = 4,
};

struct recurrence {
    struct attn_recurrence read;
    struct attn_heads_job *job;
    const attn_runtime *runtime;
    char *scratch;
    size_t scratch_bytes;
};

/* ---- what a position reads ---- */

/* How many numbers a position has in a tensor of tokens. */
static size_t numbers_of_position(const attn_plan *plan, const attn_tensor *tensor)
{
    const size_t positions = plan->dims.batch * plan->dims.kv_len;
    return tensor == NULL || positions == 0 ? 0 : attn_tensor_count(tensor) / positions;
}

static size_t gate_width_of(const attn_plan *plan)
{
    return numbers_of_position(plan, plan->request.inputs.decay) / plan->dims.kv_heads;
}

static size_t gate_numbers(const attn_plan *plan)
{
    return plan->dims.batch * plan->dims.kv_heads * plan->dims.kv_len * gate_width_of(plan);
}

size_t attn_recurrence_gates_bytes(const attn_plan *plan)
{
    return gate_numbers(plan) * sizeof(double);
}

static void gate_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct attn_recurrence *run = argument;
    const struct attn_heads_job *job = run->job;
    const size_t blocks = attn_ceil_div(job->kv_len, GATES), head = index / blocks, width = run->gate_width;
    const size_t b = head / job->kv_heads, kv_head = head % job->kv_heads;
    const size_t end = attn_min((index % blocks + 1) * GATES, job->kv_len);
    for (size_t t = index % blocks * GATES; t < end; t++) {
        const size_t from = attn_recurrence_token(run, job->kv_heads, width, b, kv_head, t);
        double *to = run->gates + attn_recurrence_position(run, b, kv_head, t) * width;
        for (size_t f = 0; f < width; f++)
            to[f] = exp(attn_number_get(run->decay.data, run->decay.dtype, from + f));
    }
}

static struct attn_vector numbers_of(const attn_tensor *tensor)
{
    return tensor == NULL ? (struct attn_vector){0} : (struct attn_vector){tensor->data, tensor->dtype};
}

bool attn_recurrence_begin(struct attn_recurrence *run, const attn_plan *plan, const struct attn_heads_job *job,
                           const attn_runtime *runtime, attn_arena *arena)
{
    const attn_inputs *inputs = &plan->request.inputs;
    *run = (struct attn_recurrence){.plan = plan,
                                    .job = job,
                                    .decay = numbers_of(inputs->decay),
                                    .beta = numbers_of(inputs->beta),
                                    .past_state = numbers_of(inputs->past_state),
                                    .beta_heads = numbers_of_position(plan, inputs->beta),
                                    .gate_width = gate_width_of(plan),
                                    .gates = attn_arena_take(arena, gate_numbers(plan), sizeof *run->gates)};
    if (run->gates != NULL && run->gate_width > 0)
        attn_spread(runtime, job->batch * job->kv_heads * attn_ceil_div(job->kv_len, GATES), gate_task, run);
    return run->gates != NULL;
}

/* ---- the state ---- */

/* Some columns of the state of a key head. */
struct columns {
    const struct recurrence *run;
    size_t b, kv_head, first, count;
    double *state;              /* (d_k, COLUMNS) */
    double *key, *query, *gate; /* (d_k) */
    double learnt[COLUMNS], out[COLUMNS];
};

static size_t state_at(const struct columns *c, size_t f)
{
    const struct attn_heads_job *job = c->run->job;
    return ((c->b * job->kv_heads + c->kv_head) * job->d_k + f) * job->d_v + c->first;
}

static void begin_state(struct columns *c)
{
    const struct attn_vector past = c->run->read.past_state;
    memset(c->state, 0, c->run->job->d_k * COLUMNS * sizeof *c->state);
    for (size_t f = 0; past.data != NULL && f < c->run->job->d_k; f++)
        attn_recurrence_read(past, state_at(c, f), c->count, c->state + f * COLUMNS);
}

static void end_state(const struct columns *c)
{
    const struct attn_heads_job *job = c->run->job;
    for (size_t f = 0; job->present_state != NULL && f < job->d_k; f++)
        for (size_t n = 0; n < c->count; n++)
            attn_number_put(job->present_state, job->compute, state_at(c, f) + n, c->state[f * COLUMNS + n]);
}

/* to = S^T x. */
static void ask_state(const struct columns *c, const double *x, double to[restrict COLUMNS])
{
    double sum[COLUMNS] = {0};
    for (size_t f = 0; f < c->run->job->d_k; f++)
        for (size_t n = 0; n < COLUMNS; n++)
            sum[n] += c->state[f * COLUMNS + n] * x[f];
    memcpy(to, sum, sizeof sum);
}

static void forget(struct columns *c, const double *gate)
{
    for (size_t f = 0; gate != NULL && f < c->run->job->d_k; f++)
        for (size_t n = 0; n < COLUMNS; n++)
            c->state[f * COLUMNS + n] *= gate[f];
}

/* From S_t-1 to S_t. */
static void learn(struct columns *c, size_t t)
{
    const struct recurrence *run = c->run;
    const struct attn_heads_job *job = run->job;
    const struct attn_vector k = attn_keys_row(&job->k, c->b, c->kv_head, t),
                             v = attn_keys_row(&job->v, c->b, c->kv_head, t);
    const double beta = attn_recurrence_beta(&run->read, c->b, c->kv_head, t);
    attn_recurrence_read(k, 0, job->d_k, c->key);
    memset(c->learnt, 0, sizeof c->learnt);
    attn_recurrence_read(v, c->first, c->count, c->learnt);
    forget(c, attn_recurrence_gates(&run->read, c->b, c->kv_head, t, c->gate));
    if (run->read.beta.data != NULL) {
        ask_state(c, c->key, c->out);
        for (size_t n = 0; n < COLUMNS; n++)
            c->learnt[n] = beta * (c->learnt[n] - c->out[n]);
    }
    for (size_t f = 0; f < job->d_k; f++)
        for (size_t n = 0; n < COLUMNS; n++)
            c->state[f * COLUMNS + n] += c->key[f] * c->learnt[n];
}

static void answer_query(struct columns *c, size_t h, size_t t)
{
    const struct attn_heads_job *job = c->run->job;
    const struct attn_vector q = attn_operand_row(&job->q, c->b, h, t);
    const size_t to = attn_operand_at(&job->context, c->b, h, t) + c->first;
    attn_recurrence_read(q, 0, job->d_k, c->query);
    ask_state(c, c->query, c->out);
    for (size_t n = 0; n < c->count; n++)
        attn_number_put((void *)(uintptr_t)job->context.data, job->compute, to + n, job->scale * c->out[n]);
}

/* A query before any key, and without a state from before, has no keys: its context is 0 whatever its numbers are. */
static void answer_nothing(struct columns *c, size_t h, size_t t)
{
    const struct attn_heads_job *job = c->run->job;
    const size_t to = attn_operand_at(&job->context, c->b, h, t) + c->first;
    for (size_t n = 0; n < c->count; n++)
        attn_number_put((void *)(uintptr_t)job->context.data, job->compute, to + n, 0);
    if (c->first == 0)
        job->row_is_empty[(c->b * job->heads + h) * job->q_len + t] = true;
}

static size_t column_blocks(const struct attn_heads_job *job)
{
    return attn_ceil_div(job->d_v, COLUMNS);
}

static void state_task(void *argument, size_t index, size_t worker)
{
    const struct recurrence *run = argument;
    const struct attn_heads_job *job = run->job;
    const size_t blocks = column_blocks(job), head = index / blocks, group = job->heads / job->kv_heads;
    struct columns c = {.run = run, .b = head / job->kv_heads, .kv_head = head % job->kv_heads};
    struct attn_pace pace = attn_pace_begin(run->runtime);
    bool has_state = run->read.past_state.data != NULL;
    c.first = index % blocks * COLUMNS;
    c.count = attn_min(COLUMNS, job->d_v - c.first);
    c.state = (double *)(void *)(run->scratch + worker * run->scratch_bytes);
    c.key = c.state + job->d_k * COLUMNS;
    c.query = c.key + job->d_k;
    c.gate = c.query + job->d_k;
    begin_state(&c);
    for (size_t t = 0; t < job->kv_len; t++) {
        if (attn_pace_stops(&pace, job->d_k * COLUMNS))
            return;
        if (attn_recurrence_sees(&run->read, c.b, t)) {
            learn(&c, t);
            has_state = true;
        }
        for (size_t h = c.kv_head * group; h < (c.kv_head + 1) * group; h++)
            (has_state ? answer_query : answer_nothing)(&c, h, t);
    }
    end_state(&c);
}

/* ---- the map ---- */

/* Rows of the map of a head: from key to key down, left[f][r] is what row r still asks feature f of the state. */
struct rows {
    const struct recurrence *run;
    size_t b, h, kv_head, first, end;
    double *left;       /* (d_k, ROWS) */
    double *key, *gate; /* (d_k) */
    double *weights;    /* (ROWS, kv_len) */
};

/* Row t begins where its own key is the next one. */
static void begin_row(struct rows *rows, size_t t)
{
    const struct attn_heads_job *job = rows->run->job;
    const struct attn_vector q = attn_operand_row(&job->q, rows->b, rows->h, t);
    for (size_t f = 0; f < job->d_k; f++)
        rows->left[f * ROWS + t - rows->first] = job->scale * attn_number_get(q.data, q.dtype, f);
}

/* Weights of key j, and what each row asks of the state before it. Rows that have not begun ask for nothing. */
static void weigh_key(struct rows *rows, size_t j)
{
    const struct recurrence *run = rows->run;
    const struct attn_heads_job *job = run->job;
    const double *gate = attn_recurrence_gates(&run->read, rows->b, rows->kv_head, j, rows->gate);
    const double beta = attn_recurrence_beta(&run->read, rows->b, rows->kv_head, j);
    double weight[ROWS] = {0};
    attn_recurrence_read(attn_keys_row(&job->k, rows->b, rows->kv_head, j), 0, job->d_k, rows->key);
    for (size_t f = 0; f < job->d_k; f++)
        for (size_t r = 0; r < ROWS; r++)
            weight[r] += rows->left[f * ROWS + r] * rows->key[f];
    for (size_t r = 0; r < ROWS; r++)
        weight[r] *= beta;
    for (size_t f = 0; run->read.beta.data != NULL && f < job->d_k; f++)
        for (size_t r = 0; r < ROWS; r++)
            rows->left[f * ROWS + r] -= weight[r] * rows->key[f];
    for (size_t f = 0; gate != NULL && f < job->d_k; f++)
        for (size_t r = 0; r < ROWS; r++)
            rows->left[f * ROWS + r] *= gate[f];
    for (size_t i = attn_max(rows->first, j); i < rows->end; i++)
        rows->weights[(i - rows->first) * job->kv_len + j] = weight[i - rows->first];
}

static size_t row_blocks(const struct attn_heads_job *job)
{
    return attn_ceil_div(job->q_len, ROWS);
}

static void map_task(void *argument, size_t index, size_t worker)
{
    const struct recurrence *run = argument;
    const struct attn_heads_job *job = run->job;
    const size_t head = index / row_blocks(job);
    struct rows rows = {.run = run, .b = head / job->heads, .h = head % job->heads};
    struct attn_pace pace = attn_pace_begin(run->runtime);
    rows.kv_head = rows.h / (job->heads / job->kv_heads);
    rows.first = index % row_blocks(job) * ROWS;
    rows.end = attn_min(rows.first + ROWS, job->q_len);
    rows.left = (double *)(void *)(run->scratch + worker * run->scratch_bytes);
    rows.key = rows.left + job->d_k * ROWS;
    rows.gate = rows.key + job->d_k;
    rows.weights = rows.gate + job->d_k;
    memset(rows.left, 0, job->d_k * ROWS * sizeof *rows.left);
    memset(rows.weights, 0, ROWS * job->kv_len * sizeof *rows.weights);
    for (size_t j = rows.end; j-- > 0;) {
        if (attn_pace_stops(&pace, job->d_k * ROWS))
            return;
        if (j >= rows.first)
            begin_row(&rows, j);
        if (attn_recurrence_sees(&run->read, rows.b, j))
            weigh_key(&rows, j);
    }
    for (size_t i = rows.first; i < rows.end; i++)
        for (int which = MAP_ATTENTION; which < MAP_COUNT; which++)
            attn_map_keep_row(job, which, rows.b, rows.h, i, rows.weights + (i - rows.first) * job->kv_len, NULL);
}

/* ---- the run ---- */

static bool wants_map(const attn_plan *plan)
{
    return (plan->want & (ATTN_STEP_BIT(ATTN_STEP_ATTENTION) | ATTN_STEP_BIT(ATTN_STEP_ATTENTION_MEAN) |
                          ATTN_STEP_BIT(ATTN_STEP_CONTRIBUTION))) != 0;
}

struct attn_bytes attn_recurrence_bytes(const attn_plan *plan)
{
    const attn_dims *d = &plan->dims;
    const size_t rows = d->batch * d->heads * d->q_len, listed = attn_min(rows, ATTN_EMPTY_ROWS_LISTED);
    const size_t of_state = d->d_k * (COLUMNS + 3),
                 of_map = wants_map(plan) ? d->d_k * (ROWS + 2) + ROWS * d->kv_len : 0;
    return (struct attn_bytes){
        .scratch = attn_round_up(attn_max(of_state, of_map) * sizeof(double), ATTN_ALIGNMENT),
        .shared =
            gate_numbers(plan) * sizeof(double) + rows + listed * sizeof(attn_row) + (size_t)TAKES_MAX * ATTN_ALIGNMENT,
    };
}

/* What an update takes for each number of the state. */
static double update_flops(const attn_plan *plan)
{
    const attn_mechanism *mechanism = &plan->request.options.mechanism;
    return 2 + (attn_has_decay(mechanism) ? 1 : 0) + (attn_has_beta(mechanism) ? 2 : 0);
}

static double state_flops(const attn_plan *plan)
{
    const attn_dims *d = &plan->dims;
    const double keys = (double)d->batch * (double)d->kv_heads * (double)d->kv_len;
    const double queries = (double)d->batch * (double)d->heads * (double)d->q_len;
    return (keys * update_flops(plan) + queries * 2) * (double)d->d_k * (double)d->d_v;
}

static double map_flops(const attn_plan *plan)
{
    const attn_dims *d = &plan->dims;
    const double rows = (double)d->batch * (double)d->heads * (double)d->q_len;
    return wants_map(plan) ? rows * (double)d->kv_len / 2 * (double)d->d_k * update_flops(plan) : 0;
}

double attn_recurrence_flops(const attn_plan *plan)
{
    return state_flops(plan) + map_flops(plan);
}

double attn_recurrence_time_flops(const attn_plan *plan)
{
    /* Measured on a core of 100 GFLOP/s, which does 6 to 12 of them in a state, and 2 to 4 in a map. */
    return state_flops(plan) * 17 + map_flops(plan) * 40;
}

static bool take_memory(struct recurrence *run, attn_arena *arena)
{
    struct attn_heads_job *job = run->job;
    run->scratch = attn_arena_take(arena, run->runtime->threads, run->scratch_bytes);
    job->row_is_empty = attn_arena_take_zeroed(arena, job->batch * job->heads, job->q_len);
    return run->scratch != NULL && job->row_is_empty != NULL;
}

attn_status attn_recurrence_run(const attn_plan *plan, struct attn_heads_job *job, const attn_runtime *runtime,
                                attn_arena *arena, attn_result *result, attn_error *err)
{
    struct recurrence run = {.job = job, .runtime = runtime, .scratch_bytes = attn_recurrence_bytes(plan).scratch};
    const size_t kv_heads = job->batch * job->kv_heads;
    if (!take_memory(&run, arena) || !attn_recurrence_begin(&run.read, plan, job, runtime, arena))
        return attn_fail_no_memory(err);
    attn_spread(runtime, kv_heads * column_blocks(job), state_task, &run);
    if (wants_map(plan))
        attn_spread(runtime, job->batch * job->heads * row_blocks(job), map_task, &run);
    if (attn_is_cancelled(runtime))
        return attn_fail_stopped(err);
    return attn_heads_list_empty(job, runtime, arena, result, err);
}
