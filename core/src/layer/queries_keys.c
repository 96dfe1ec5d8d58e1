/* queries_keys.c: normalises and rotates queries and keys. */
#include "layer/layer.h"

#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "base/size.h"
#include "request/request.h"

enum { TOKENS = 64 /* tokens per task, with all their heads */, TAKES_MAX = 10 };

/* ---- the run ---- */

/* Cosines and sines of the tokens of one side. */
struct table {
    const char *cos, *sin;
    size_t batch_step;        /* rows from one batch item to the next; 0: all share one table */
    const int64_t *positions; /* the row of each token; NULL: token i has row i */
    size_t positions_step;
};

/* The queries or the new keys, between projection and heads. */
struct part {
    struct attn_operand from;
    size_t heads, len, d;
    const attn_affine *norm;   /* NULL: not normalised */
    const struct table *table; /* NULL: not rotated */
    char *to;                  /* (batch, heads, len, d) */
    size_t first_task;
};

struct qk_run;

/* Normalises and rotates tokens from … to of one item, or rotates them back. row: scratch memory. */
typedef void change_tokens(const struct qk_run *run, const struct part *part, size_t b, size_t from, size_t to,
                           char *row);

struct qk_run {
    const attn_plan *plan;
    const attn_runtime *runtime;
    const struct attn_kernel_type *kernel;
    attn_arena *arena;
    size_t element;
    struct table query_table, key_table;
    /* what table_task fills */
    const double *w;
    double attention_factor;
    char *cos, *sin;
    size_t rows_of_item;
    const attn_tensor *positions;
    /* what part_task does */
    struct part parts[2];
    size_t part_count;
    change_tokens *change;
    char *scratch;
    size_t scratch_bytes;
};

/* ---- tables of cosines and sines ---- */

/* The given table of a side, if it has one. */
static void take_given(const attn_rope_side *side, struct table *table)
{
    if (side->cos == NULL)
        return;
    *table = (struct table){.cos = side->cos->data, .sin = side->sin->data};
    if (side->positions != NULL) {
        const attn_tensor *p = side->positions;
        table->positions = p->data;
        table->positions_step = p->rank == 2 && p->shape[0] > 1 ? p->shape[1] : 0;
    } else if (side->cos->rank == 3 && side->cos->shape[0] > 1) {
        table->batch_step = side->cos->shape[1];
    }
}

static void table_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct qk_run *run = argument;
    const size_t pairs = run->plan->rope_dim / 2, past_len = run->plan->dims.past_len;
    const size_t all = run->rows_of_item, first = index * TOKENS, last = attn_min(first + TOKENS, all);
    for (size_t row = first; row < last && !attn_is_cancelled(run->runtime); row++) {
        const double position =
            run->positions == NULL ? (double)(past_len + row) : (double)((const int64_t *)run->positions->data)[row];
        for (size_t i = 0; i < pairs; i++) {
            const double angle = position * run->w[i];
            const double c = cos(angle) * run->attention_factor, s = sin(angle) * run->attention_factor;
            if (run->plan->compute == ATTN_F32) {
                ((float *)run->cos)[row * pairs + i] = (float)c;
                ((float *)run->sin)[row * pairs + i] = (float)s;
            } else {
                ((double *)run->cos)[row * pairs + i] = c;
                ((double *)run->sin)[row * pairs + i] = s;
            }
        }
    }
}

/* Rows of the table of one side. The default table serves both sides. */
static size_t table_rows(const attn_rope_side *side, const attn_dims *dims)
{
    if (side->cos != NULL)
        return 0;
    return side->positions == NULL ? attn_max(dims->q_len, attn_new_len(dims)) : attn_tensor_count(side->positions);
}

static bool make_table(struct qk_run *run, const attn_rope_side *side, struct table *table)
{
    const size_t pairs = run->plan->rope_dim / 2, rows = table_rows(side, &run->plan->dims);
    run->cos = attn_arena_take(run->arena, rows * pairs, run->element);
    run->sin = attn_arena_take(run->arena, rows * pairs, run->element);
    if (run->cos == NULL || run->sin == NULL)
        return false;
    run->rows_of_item = rows;
    run->positions = side->positions;
    attn_spread(run->runtime, attn_ceil_div(rows, TOKENS), table_task, run);
    const attn_tensor *p = side->positions;
    *table = (struct table){.cos = run->cos, .sin = run->sin};
    table->batch_step = p != NULL && p->rank == 2 && p->shape[0] > 1 ? p->shape[1] : 0;
    return true;
}

static attn_status make_tables(struct qk_run *run, attn_error *err)
{
    const attn_rope *rope = &run->plan->request.options.rope;
    double *w = attn_arena_take(run->arena, run->plan->rope_dim / 2, sizeof *w);
    if (w == NULL)
        return attn_fail_no_memory(err);
    if (rope->query.cos == NULL || rope->key.cos == NULL)
        run->attention_factor = attn_rope_frequencies(rope, run->plan->rope_dim, run->plan->rope_length, w);
    run->w = w;
    const bool shares =
        rope->query.cos == NULL && rope->key.cos == NULL && rope->query.positions == rope->key.positions;
    bool is_made = rope->query.cos != NULL || make_table(run, &rope->query, &run->query_table);
    run->key_table = run->query_table;
    if (is_made && !shares && rope->key.cos == NULL)
        is_made = make_table(run, &rope->key, &run->key_table);
    take_given(&rope->query, &run->query_table);
    take_given(&rope->key, &run->key_table);
    return is_made ? ATTN_OK : attn_fail_no_memory(err);
}

/* ---- tokens ---- */

/* One head of a token, in the compute type: where it is, or widened into row. */
static const void *source(const struct qk_run *run, const struct part *part, size_t b, size_t h, size_t token,
                          char *row)
{
    const struct attn_vector from = attn_operand_row(&part->from, b, h, token);
    if (from.dtype == run->plan->compute)
        return from.data;
    attn_vector_read(from, run->plan->compute, part->d, row);
    return row;
}

static char *target(const struct qk_run *run, const struct part *part, size_t b, size_t h, size_t row)
{
    return part->to + ((b * part->heads + h) * part->len + row) * part->d * run->element;
}

static const void *vector_at(const attn_tensor *vector, size_t at, size_t element)
{
    return vector == NULL ? NULL : (const char *)vector->data + at * element;
}

/* Normalises all heads of a token into row: (heads, d). */
static void norm_token(const struct qk_run *run, const struct part *part, size_t b, size_t token, char *row)
{
    const attn_options *options = &run->plan->request.options;
    const attn_tensor *shaped = part->norm->weight != NULL ? part->norm->weight : part->norm->bias;
    const bool is_whole = shaped != NULL && shaped->rank == 1 && shaped->shape[0] != part->d;
    const size_t own = shaped != NULL && shaped->rank == 2 ? part->d : 0, bytes = part->d * run->element;
    for (size_t h = 0; h < part->heads; h++)
        attn_vector_read(attn_operand_row(&part->from, b, h, token), run->plan->compute, part->d, row + h * bytes);
    struct attn_row_norm norm = attn_row_norm_of(options->qk_norm, part->norm, options->qk_norm_eps,
                                                 is_whole ? part->heads * part->d : part->d);
    if (own == 0) {
        run->kernel->norm(&norm, is_whole ? 1 : part->heads, row, row);
        return;
    }
    for (size_t h = 0; h < part->heads; h++) {
        norm.gain = vector_at(part->norm->weight, h * own, run->element);
        norm.shift = vector_at(part->norm->bias, h * own, run->element);
        run->kernel->norm(&norm, 1, row + h * bytes, row + h * bytes);
    }
}

static size_t table_row(const struct table *t, size_t b, size_t token)
{
    return t->positions != NULL ? (size_t)t->positions[b * t->positions_step + token] : b * t->batch_step + token;
}

static void turn(const struct qk_run *run, const struct part *part, size_t b, size_t token, bool is_back, const char *x,
                 char *y)
{
    const struct table *t = part->table;
    const size_t at = table_row(t, b, token) * (run->plan->rope_dim / 2) * run->element;
    const size_t shared = run->plan->dims.d_shared, first = shared > 0 ? part->d - shared : 0;
    const struct attn_rotation rotation = {.layout = run->plan->request.options.rope.layout,
                                           .d = part->d - first,
                                           .dim = run->plan->rope_dim,
                                           .inverse = is_back};
    memmove(y, x, first * run->element); /* y may be x */
    run->kernel->rotate(&rotation, t->cos + at, t->sin + at, x + first * run->element, y + first * run->element);
}

static void change(const struct qk_run *run, const struct part *part, size_t b, size_t from, size_t to, char *row)
{
    const size_t bytes = part->d * run->element;
    for (size_t token = from; token < to; token++) {
        if (part->norm != NULL)
            norm_token(run, part, b, token, row);
        for (size_t h = 0; h < part->heads; h++) {
            const char *x = part->norm != NULL ? row + h * bytes : source(run, part, b, h, token, row);
            char *y = target(run, part, b, h, token);
            if (part->table != NULL)
                turn(run, part, b, token, false, x, y);
            else
                memcpy(y, x, bytes);
        }
    }
}

static void part_task(void *argument, size_t index, size_t worker)
{
    const struct qk_run *run = argument;
    const struct part *part = run->parts;
    while (part + 1 < run->parts + run->part_count && part[1].first_task <= index)
        part++;
    const size_t across = attn_ceil_div(part->len, TOKENS), block = index - part->first_task;
    const size_t b = block / across, first = block % across * TOKENS;
    run->change(run, part, b, first, attn_min(first + TOKENS, part->len), run->scratch + worker * run->scratch_bytes);
}

static void run_parts(struct qk_run *run)
{
    size_t tasks = 0;
    for (size_t p = 0; p < run->part_count; p++) {
        run->parts[p].first_task = tasks;
        tasks += run->plan->dims.batch * attn_ceil_div(run->parts[p].len, TOKENS);
    }
    attn_spread(run->runtime, tasks, part_task, run);
}

static attn_status prepare(struct qk_run *run, size_t scratch_bytes, attn_error *err)
{
    run->kernel = attn_kernel_of(run->runtime->kernel, run->plan->compute);
    run->element = attn_dtype_bytes(run->plan->compute);
    run->scratch_bytes = scratch_bytes;
    run->scratch = attn_arena_take(run->arena, run->runtime->threads, scratch_bytes);
    if (run->scratch == NULL)
        return attn_fail_no_memory(err);
    return run->plan->rope_dim != 0 ? make_tables(run, err) : ATTN_OK;
}

/* Kernels read queries in their own type. */
static bool widens_queries(const attn_plan *plan)
{
    return !plan->request.is_layer && plan->request.inputs.query != NULL &&
           plan->request.inputs.query->dtype != plan->compute;
}

static void describe_parts(struct qk_run *run, const struct attn_heads_job *job)
{
    const attn_dims *d = &run->plan->dims;
    const attn_weights *weights = &run->plan->request.weights;
    const bool turns = run->plan->rope_dim != 0, norms = run->plan->request.options.qk_norm != ATTN_NORM_NONE;
    run->parts[run->part_count++] = (struct part){.from = job->q,
                                                  .heads = d->heads,
                                                  .len = d->q_len,
                                                  .d = d->d_k,
                                                  .norm = norms ? &weights->query_norm : NULL,
                                                  .table = turns ? &run->query_table : NULL};
    if (!norms && !turns)
        return;
    run->parts[run->part_count++] = (struct part){.from = job->k.added,
                                                  .heads = d->kv_heads,
                                                  .len = attn_new_len(d),
                                                  .d = d->d_k,
                                                  .norm = norms ? &weights->key_norm : NULL,
                                                  .table = turns ? &run->key_table : NULL};
}

static struct attn_operand changed(const struct qk_run *run, const struct part *part)
{
    return attn_operand_by_heads(part->to, run->plan->compute, part->heads, part->len, part->d);
}

attn_status attn_qk_run(const attn_plan *plan, const attn_runtime *runtime, attn_arena *arena,
                        struct attn_heads_job *job, attn_error *err)
{
    struct qk_run run = {.plan = plan, .runtime = runtime, .arena = arena, .change = change};
    if (!attn_qk_is_changed(&plan->request.options) && !widens_queries(plan))
        return ATTN_OK;
    const attn_status status = prepare(&run, attn_qk_scratch_bytes(plan), err);
    if (status != ATTN_OK)
        return status;
    describe_parts(&run, job);
    for (size_t p = 0; p < run.part_count; p++) {
        struct part *part = &run.parts[p];
        part->to = attn_arena_take(arena, plan->dims.batch * part->heads * part->len * part->d, run.element);
        if (part->to == NULL)
            return attn_fail_no_memory(err);
    }
    run_parts(&run);
    job->q = changed(&run, &run.parts[0]);
    if (run.part_count > 1)
        job->k.added = changed(&run, &run.parts[1]);
    return ATTN_OK;
}

/* ---- the backward pass ---- */

static void turn_back(const struct qk_run *run, const struct part *part, size_t b, size_t from, size_t to, char *row)
{
    for (size_t token = from; token < to && !attn_is_cancelled(run->runtime); token++)
        for (size_t h = 0; h < part->heads; h++) {
            char *y = (char *)(uintptr_t)attn_operand_row(&part->from, b, h, token).data;
            memcpy(row, y, part->d * run->element);
            turn(run, part, b, token, true, row, y);
        }
}

size_t attn_qk_turn_back_scratch_bytes(const attn_plan *plan)
{
    const size_t bytes = plan->dims.d_k * attn_dtype_bytes(plan->compute);
    return plan->rope_dim == 0 ? 0 : attn_round_up(bytes, ATTN_ALIGNMENT);
}

attn_status attn_qk_turn_back(const attn_plan *plan, const attn_runtime *runtime, attn_arena *arena,
                              const struct attn_operand *grad_q, const struct attn_operand *grad_k, attn_error *err)
{
    const attn_dims *d = &plan->dims;
    struct qk_run run = {.plan = plan, .runtime = runtime, .arena = arena, .change = turn_back};
    if (plan->rope_dim == 0)
        return ATTN_OK;
    const attn_status status = prepare(&run, attn_qk_turn_back_scratch_bytes(plan), err);
    if (status != ATTN_OK)
        return status;
    const struct part parts[] = {
        {.from = *grad_q, .heads = d->heads, .len = d->q_len, .d = d->d_k, .table = &run.query_table},
        {.from = *grad_k, .heads = d->kv_heads, .len = attn_new_len(d), .d = d->d_k, .table = &run.key_table}};
    for (size_t p = 0; p < sizeof parts / sizeof *parts; p++)
        if (parts[p].from.data != NULL)
            run.parts[run.part_count++] = parts[p];
    run_parts(&run);
    return ATTN_OK;
}

/* ---- weight ---- */

size_t attn_qk_scratch_bytes(const attn_plan *plan)
{
    const attn_dims *d = &plan->dims;
    return plan->request.options.qk_norm == ATTN_NORM_NONE && plan->request.is_layer
               ? 0
               : attn_round_up(attn_max(d->heads, d->kv_heads) * d->d_k * attn_dtype_bytes(plan->compute),
                               ATTN_ALIGNMENT);
}

static size_t table_numbers(const attn_plan *plan)
{
    const attn_rope *rope = &plan->request.options.rope;
    return (table_rows(&rope->query, &plan->dims) + table_rows(&rope->key, &plan->dims)) * plan->rope_dim;
}

size_t attn_qk_bytes(const attn_plan *plan)
{
    const attn_dims *d = &plan->dims;
    size_t numbers = plan->rope_dim != 0 ? table_numbers(plan) : 0;
    if (attn_qk_is_changed(&plan->request.options) || widens_queries(plan))
        numbers += d->batch * d->heads * d->q_len * d->d_k;
    if (attn_qk_is_changed(&plan->request.options))
        numbers += d->batch * d->kv_heads * attn_new_len(d) * d->d_k;
    return numbers * attn_dtype_bytes(plan->compute) + plan->rope_dim * sizeof(double) +
           (size_t)TAKES_MAX * ATTN_ALIGNMENT;
}

double attn_qk_flops(const attn_plan *plan)
{
    const attn_dims *d = &plan->dims;
    const double of_feature = (plan->rope_dim != 0 ? 3 : 0) + (plan->request.options.qk_norm != ATTN_NORM_NONE ? 6 : 0);
    const double features = (double)d->batch *
                            ((double)d->q_len * (double)d->heads + (double)attn_new_len(d) * (double)d->kv_heads) *
                            (double)d->d_k;
    return features * of_feature + (plan->rope_dim != 0 ? 50 * (double)table_numbers(plan) : 0);
}
