/* starts.c: attention from given scores or given weights, row by row. */
#include "attention/attention.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "base/parallel.h"
#include "base/size.h"
#include "formulas/formulas.h"
#include "kernel/entries.h"

enum {
    ROWS = 16, /* queries of a task */
    TAKES_MAX = 8,
    KEY_COST = 16, /* a key of a row takes as long as so many numbers that are read */
};

struct starts_run {
    const attn_request *request;
    struct attn_heads_job *job;
    const attn_runtime *runtime;
    char *scratch;
    size_t scratch_bytes;
};

/* The row of a query. x holds its scores, and then its weights, for every key. */
struct row {
    const struct starts_run *run;
    size_t b, h, i, task;
    bool sees;                 /* whether the query may attend to any key */
    double *x, *bias;          /* (kv_len) */
    double *sum, *low, *value; /* (d_v) */
    uint8_t *allow, *keep;
    struct attn_pace pace;
};

/* A sum that keeps what plain addition would lose: two-sum, without a branch (Knuth, 1969). */
static inline void add(double *sum, double *low, double x)
{
    const double before = *sum, after = before + x, added = after - before;
    *low += (before - (after - added)) + (x - added);
    *sum = after;
}

/* low is NaN where the sum is not finite. */
static double total(double sum, double low)
{
    return isfinite(sum) ? sum + low : sum;
}

static double rounded(const struct row *row, double x)
{
    return row->run->job->compute == ATTN_F32 ? (double)(float)x : x;
}

/* Index of the row among those of all heads. */
static size_t row_number(const struct row *row)
{
    const struct attn_heads_job *job = row->run->job;
    return (row->b * job->heads + row->h) * job->q_len + row->i;
}

static void put_number(const struct row *row, void *numbers, double x)
{
    if (numbers != NULL)
        attn_number_put(numbers, row->run->job->compute, row_number(row), x);
}

static void keep_row(const struct row *row, int which, const uint8_t *visible)
{
    attn_map_keep_row(row->run->job, which, row->b, row->h, row->i, row->x, visible);
}

static bool read_row(struct row *row, const attn_tensor *map)
{
    const struct attn_heads_job *job = row->run->job;
    const size_t first = row_number(row) * job->kv_len;
    for (size_t j = 0; j < job->kv_len; j++) {
        if (attn_pace_stops(&row->pace, 1))
            return false;
        row->x[j] = attn_number_get(map->data, job->compute, first + j);
    }
    return true;
}

/* ---- scores ---- */

/* The steps scores and scaled show a key that some query of the head sees, to a query that sees some key. */
static void keep_before_mask(struct row *row, int which)
{
    const struct attn_heads_job *job = row->run->job;
    if (job->map[which].data == NULL)
        return;
    const size_t head = row->b * job->heads + row->h;
    if (job->query_sees[head * job->q_len + row->i]) {
        keep_row(row, which, job->key_is_seen + head * job->kv_len);
        return;
    }
    memset(row->keep, 0, job->kv_len);
    keep_row(row, which, row->keep);
}

/* A score of -infinity hides its key, whatever the scale. */
static void scale_row(struct row *row)
{
    const struct attn_heads_job *job = row->run->job;
    const double scale = rounded(row, job->scale), cap = rounded(row, job->options->softcap);
    for (size_t j = 0; j < job->kv_len; j++) {
        double x = scale * row->x[j];
        if (row->x[j] == -(double)INFINITY)
            continue;
        if (cap > 0)
            x = cap * tanh(x / cap);
        row->x[j] = rounded(row, x);
    }
}

/* The largest score, and with a softcap c how many the cap saturates: |x| >= c tanh 3, so |s| >= 3 c. */
static void measure_row(struct row *row)
{
    const double saturated = 0.99505475368673045;
    struct attn_heads_job *job = row->run->job;
    for (size_t j = 0; j < job->kv_len; j++) {
        const double size = fabs(row->x[j]);
        if (!row->allow[j] || !isfinite(size))
            continue;
        job->task_max_abs[row->task] = fmax(job->task_max_abs[row->task], size);
        job->task_capped[row->task] += job->options->softcap > 0;
        job->task_saturated[row->task] += job->options->softcap > 0 && size >= job->options->softcap * saturated;
    }
}

/* Adds the biases, and hides what the mask hides. */
static void mask_row(struct row *row)
{
    const struct attn_heads_job *job = row->run->job;
    if (job->distance_bias.data != NULL || job->mask->bias != NULL) {
        attn_bias_row(&job->distance_bias, job->mask, job->compute, row->b, row->h, row->i, 0, job->kv_len, row->bias);
        for (size_t j = 0; j < job->kv_len; j++)
            row->x[j] = rounded(row, row->x[j] + row->bias[j]);
    }
    for (size_t j = 0; j < job->kv_len; j++)
        row->x[j] = row->allow[j] ? row->x[j] : -(double)INFINITY;
}

static double largest_of(const struct row *row)
{
    double largest = -(double)INFINITY;
    for (size_t j = 0; j < row->run->job->kv_len; j++)
        largest = row->x[j] > largest ? row->x[j] : largest;
    return largest;
}

static double sink_of(const struct row *row)
{
    const attn_tensor *sinks = row->run->job->options->sinks;
    return sinks == NULL ? -(double)INFINITY
                         : attn_number_at(sinks->data, sinks->dtype, (ptrdiff_t)row->h * sinks->stride[0]);
}

/* Overwrites the scores by e^(x - top); *sum is their sum. False when the work is cancelled. */
static bool exponentiate(struct row *row, double top, double *sum)
{
    double low = 0;
    *sum = 0;
    for (size_t j = 0; j < row->run->job->kv_len; j++) {
        if (attn_pace_stops(&row->pace, KEY_COST))
            return false;
        row->x[j] = row->allow[j] ? exp(row->x[j] - top) : 0;
        add(sum, &low, row->x[j]);
    }
    *sum = total(*sum, low);
    return true;
}

/* p ln p; 0 at p = 0. */
static double moment(double p)
{
    return p == 0 ? 0 : p * log(p);
}

/* -sum p ln p over the keys, and p_sink. */
static double entropy_of(const struct row *row, double sink)
{
    double sum = 0, low = 0;
    for (size_t j = 0; j < row->run->job->kv_len; j++)
        add(&sum, &low, moment(row->x[j]));
    add(&sum, &low, moment(sink));
    return 0 - total(sum, low);
}

/* Scores that are all -infinity have 0 for their largest: then their exponentials are 0, and not NaN. */
static double finite_or_zero(double largest)
{
    return largest == -(double)INFINITY ? 0 : largest;
}

/* Writes weights and numbers of the row. Without keys the weights are 0. False when the work is cancelled. */
static bool softmax_row(struct row *row)
{
    const struct attn_heads_job *job = row->run->job;
    const double largest = largest_of(row), logit = sink_of(row);
    const double top = finite_or_zero(largest), higher = finite_or_zero(logit > largest ? logit : largest);
    double keys;
    if (!exponentiate(row, top, &keys))
        return false;
    const bool has_sum = row->sees || job->options->sinks != NULL;
    const double of_keys = largest == higher ? 1 : exp(top - higher), of_sink = exp(logit - higher);
    const double whole = (row->sees ? of_keys * keys : 0) + of_sink,
                 sink = job->options->sinks == NULL ? 0 : of_sink / whole;
    for (size_t j = 0; j < job->kv_len; j++)
        row->x[j] = row->allow[j] ? of_keys * row->x[j] / whole : 0;
    put_number(row, job->lse, has_sum ? higher + log(whole) : -(double)INFINITY);
    put_number(row, job->lse_keys, row->sees ? top + log(keys) : -(double)INFINITY);
    put_number(row, job->sink, sink);
    if (job->entropy != NULL)
        put_number(row, job->entropy, has_sum ? entropy_of(row, sink) : 0);
    return true;
}

/* From the scores to the weights. False when the work is cancelled. */
static bool weigh_scores(struct row *row)
{
    const struct attn_heads_job *job = row->run->job;
    const attn_span span = attn_mask_span(job->mask, row->b, row->i);
    row->sees = attn_mask_row(job->mask, job->compute, row->b, row->h, row->i, span, 0, job->kv_len, row->allow);
    if (!read_row(row, row->run->request->inputs.scores))
        return false;
    keep_before_mask(row, MAP_SCORES);
    scale_row(row);
    keep_before_mask(row, MAP_SCALED);
    measure_row(row);
    mask_row(row);
    keep_row(row, MAP_MASKED, NULL);
    return softmax_row(row);
}

/* ---- weights ---- */

static bool take_weights(struct row *row)
{
    const struct attn_heads_job *job = row->run->job;
    row->sees = job->kv_len > 0;
    if (!read_row(row, row->run->request->inputs.attention))
        return false;
    for (size_t j = 0; j < job->kv_len; j++)
        row->allow[j] = row->x[j] != 0;
    if (job->entropy != NULL)
        put_number(row, job->entropy, entropy_of(row, 0));
    return true;
}

static void drop_row(struct row *row)
{
    const struct attn_heads_job *job = row->run->job;
    const double gain = job->dropout < 1 ? 1 / (1 - job->dropout) : 0;
    if (!(job->dropout > 0))
        return;
    attn_kernel_of(row->run->runtime->kernel, job->compute)
        ->dropout_keep(job->options->dropout_seed, DROPOUT_ATTENTION, job->dropout,
                       (uint64_t)row_number(row) * job->kv_len, job->kv_len, row->keep);
    for (size_t j = 0; j < job->kv_len; j++)
        row->x[j] = row->keep[j] ? row->x[j] * gain : 0;
    keep_row(row, MAP_DROPPED, NULL);
}

/* A value as doubles. */
static void read_value(struct row *row, struct attn_vector v)
{
    const size_t d_v = row->run->job->d_v;
    for (size_t c = 0; c < d_v; c++)
        row->value[c] = attn_number_get(v.data, v.dtype, c);
}

static void add_value(double *restrict sum, double *restrict low, double weight, const double *restrict value,
                      size_t d_v)
{
    for (size_t c = 0; c < d_v; c++)
        add(&sum[c], &low[c], weight * value[c]);
}

/* The sum of the weights times the values of the keys that row->allow has. False when the work is cancelled. */
static bool sum_values(struct row *row)
{
    const struct attn_heads_job *job = row->run->job;
    const size_t kv_head = row->h / (job->heads / job->kv_heads), d_v = job->d_v;
    memset(row->sum, 0, d_v * sizeof *row->sum);
    memset(row->low, 0, d_v * sizeof *row->low);
    for (size_t j = 0; j < job->kv_len; j++) {
        if (attn_pace_stops(&row->pace, d_v))
            return false;
        if (!row->allow[j] || d_v == 0)
            continue;
        read_value(row, attn_keys_row(&job->v, row->b, kv_head, j));
        add_value(row->sum, row->low, row->x[j], row->value, d_v);
    }
    const size_t to = attn_operand_at(&job->context, row->b, row->h, row->i);
    for (size_t c = 0; c < d_v; c++)
        attn_number_put((void *)(uintptr_t)job->context.data, job->compute, to + c, total(row->sum[c], row->low[c]));
    return true;
}

/* ---- the run ---- */

/* False when the work is cancelled. */
static bool attend_row(struct row *row)
{
    const struct attn_heads_job *job = row->run->job;
    if (!(row->run->request->inputs.scores != NULL ? weigh_scores : take_weights)(row))
        return false;
    job->row_is_empty[row_number(row)] = !row->sees;
    keep_row(row, MAP_ATTENTION, NULL);
    keep_row(row, MAP_MEAN_SOURCE, NULL);
    drop_row(row);
    return sum_values(row);
}

static size_t row_blocks(const struct attn_heads_job *job)
{
    return attn_ceil_div(job->q_len, ROWS);
}

static size_t tasks_of(const struct attn_heads_job *job)
{
    return job->batch * job->heads * row_blocks(job);
}

static void row_task(void *argument, size_t index, size_t worker)
{
    const struct starts_run *run = argument;
    const struct attn_heads_job *job = run->job;
    const size_t head = index / row_blocks(job), first = index % row_blocks(job) * ROWS;
    struct row row = {.run = run, .b = head / job->heads, .h = head % job->heads, .task = index};
    row.pace = attn_pace_begin(run->runtime);
    row.x = (double *)(void *)(run->scratch + worker * run->scratch_bytes);
    row.bias = row.x + job->kv_len;
    row.sum = row.bias + job->kv_len;
    row.low = row.sum + job->d_v;
    row.value = row.low + job->d_v;
    row.allow = (uint8_t *)(row.value + job->d_v);
    row.keep = row.allow + job->kv_len;
    for (row.i = first; row.i < job->q_len && row.i < first + ROWS; row.i++)
        if (!attend_row(&row))
            return;
}

static bool take_memory(struct starts_run *run, attn_arena *arena)
{
    struct attn_heads_job *job = run->job;
    run->scratch = attn_arena_take(arena, run->runtime->threads, run->scratch_bytes);
    job->row_is_empty = attn_arena_take_zeroed(arena, job->batch * job->heads, job->q_len);
    return run->scratch != NULL && job->row_is_empty != NULL && attn_heads_take_counts(job, tasks_of(job), arena);
}

attn_status attn_starts_run(const attn_request *request, struct attn_heads_job *job, const attn_runtime *runtime,
                            attn_arena *arena, attn_result *result, attn_error *err)
{
    struct starts_run run = {
        .request = request, .job = job, .runtime = runtime, .scratch_bytes = attn_starts_bytes(job).scratch};
    const attn_status status = take_memory(&run, arena) ? attn_seen_find(job, runtime, arena) : ATTN_ERR_NO_MEMORY;
    if (status != ATTN_OK)
        return attn_fail_no_memory(err);
    assert(attn_tensor_is_contiguous(attn_start_of(&request->inputs)));
    attn_spread(runtime, tasks_of(job), row_task, &run);
    if (attn_is_cancelled(runtime))
        return attn_fail_stopped(err);
    return attn_heads_gather(job, tasks_of(job), runtime, arena, result, err);
}

/* ---- weight ---- */

struct attn_bytes attn_starts_bytes(const struct attn_heads_job *job)
{
    const size_t rows = job->batch * job->heads * job->q_len, listed = attn_min(rows, ATTN_EMPTY_ROWS_LISTED);
    const size_t scratch = (2 * job->kv_len + 3 * job->d_v) * sizeof(double) + 2 * job->kv_len;
    return (struct attn_bytes){
        .scratch = attn_round_up(scratch, ATTN_ALIGNMENT),
        .shared = rows + attn_seen_bytes(job) + tasks_of(job) * (sizeof(double) + 2 * sizeof(size_t)) +
                  listed * sizeof(attn_row) + (size_t)TAKES_MAX * ATTN_ALIGNMENT,
    };
}

static double cells_of(const attn_plan *plan)
{
    const attn_dims *d = &plan->dims;
    return (double)d->batch * (double)d->heads * (double)d->q_len * (double)d->kv_len;
}

double attn_starts_flops(const attn_plan *plan)
{
    return cells_of(plan) * (2 * (double)plan->dims.d_v + 8);
}

double attn_starts_time_flops(const attn_plan *plan)
{
    /* Measured on a core of 100 GFLOP/s: the cost of a cell, and of each of its values. */
    const double cell = 5000, value = 150;
    return cells_of(plan) * (cell + value * (double)plan->dims.d_v);
}
