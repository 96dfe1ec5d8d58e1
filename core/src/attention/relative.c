/* relative.c: what relative positions add to the scores: products of queries and keys by the tables' rows. */
#include "attention/attention.h"

#include "base/parallel.h"
#include "base/size.h"
#include "gemm/gemm.h"
#include "request/request.h"

enum { ROWS = 64 /* queries or keys per task */ };

/* ---- the rows that are in use ---- */

static int64_t lowest_offset(const attn_mask *mask, int64_t *highest)
{
    int64_t lowest = *highest = attn_mask_offset(mask, 0);
    for (size_t b = 1; b < mask->batch && mask->offset != NULL; b++) {
        const int64_t offset = attn_mask_offset(mask, b);
        lowest = offset < lowest ? offset : lowest;
        *highest = offset > *highest ? offset : *highest;
    }
    return lowest;
}

struct attn_relative_rows attn_relative_rows_of(const attn_request *request, const attn_mask *mask)
{
    const attn_relative_position *own = &request->options.relative_position;
    const attn_tensor *table = attn_relative_table(request);
    struct attn_relative_rows rows = {0};
    if (table == NULL || mask->q_len == 0 || mask->kv_len == 0 || mask->batch == 0)
        return rows;
    int64_t highest;
    const int64_t farthest = (int64_t)mask->kv_len - 1 - lowest_offset(mask, &highest);
    const int64_t nearest = 1 - (int64_t)mask->q_len - highest;
    rows.first = attn_relative_row(farthest, table->shape[0], own->buckets, own->max_distance);
    rows.count = attn_relative_row(nearest, table->shape[0], own->buckets, own->max_distance) + 1 - rows.first;
    return rows;
}

/* ---- the terms ---- */

static size_t items(const attn_mask *mask)
{
    return mask->offset == NULL || mask->offset_stride == 0 ? 1 : mask->batch;
}

/* The rows of one side, and the table that they are multiplied by. */
struct side {
    struct attn_keys from; /* queries have no past */
    size_t heads, len;     /* heads that from has */
    const char *table;     /* its first row in use */
    size_t table_heads;    /* heads that the table has */
    char *to;              /* (batch, all heads, len, width); NULL: there is no such term */
};

struct relative_run {
    const struct attn_heads_job *job;
    const attn_runtime *runtime;
    size_t element, width, tasks[2];
    struct side sides[2];
    char *scratch;
    size_t scratch_bytes;
};

static void multiply(const struct relative_run *run, const struct side *side, size_t head, size_t rows, const char *x,
                     char *y, char *scratch)
{
    const size_t d = run->job->d_k, stride = side->table_heads * d, own = head / (run->job->heads / side->table_heads);
    memset(y, 0, rows * run->width * run->element);
    for (size_t column = 0; column < run->width; column += GEMM_COLUMNS) {
        const struct attn_gemm_block block = {.x = x,
                                              .w = side->table + (column * stride + own * d) * run->element,
                                              .dtype = run->job->compute,
                                              .y = y + column * run->element,
                                              .rows = rows,
                                              .columns = attn_min(run->width - column, GEMM_COLUMNS),
                                              .inner = d,
                                              .x_stride = d,
                                              .w_stride = stride,
                                              .y_stride = run->width,
                                              .layout = ATTN_LAYOUT_OUT_IN,
                                              .adds = true};
        attn_multiply_block(&block, run->job->compute, run->runtime, scratch);
    }
}

/* Some rows of one head, by the table. */
static void term_task(void *argument, size_t index, size_t worker)
{
    const struct relative_run *run = argument;
    const struct attn_heads_job *job = run->job;
    const struct side *side = &run->sides[index < run->tasks[0] ? 0 : 1];
    index -= index < run->tasks[0] ? 0 : run->tasks[0];
    const size_t across = attn_ceil_div(side->len, ROWS), head = index / across, first = index % across * ROWS;
    const size_t b = head / job->heads, h = head % job->heads, rows = attn_min(side->len - first, ROWS);
    char *scratch = run->scratch + worker * run->scratch_bytes, *x = scratch + GEMM_SCRATCH * run->element;
    for (size_t r = 0; r < rows; r++)
        attn_vector_read(attn_keys_row(&side->from, b, h / (job->heads / side->heads), first + r), job->compute,
                         job->d_k, x + r * job->d_k * run->element);
    multiply(run, side, h, rows, x, side->to + (head * side->len + first) * run->width * run->element, scratch);
}

static size_t term_tasks(const struct relative_run *run, const struct side *side)
{
    return side->to == NULL ? 0 : run->job->batch * run->job->heads * attn_ceil_div(side->len, ROWS);
}

/* The column of each distance, for every item that has an offset of its own. */
static void fill_columns(const attn_request *request, const attn_mask *mask, size_t first, uint32_t *columns)
{
    const attn_relative_position *own = &request->options.relative_position;
    const size_t rows = attn_relative_table(request)->shape[0], distances = mask->q_len + mask->kv_len - 1;
    for (size_t b = 0; b < items(mask); b++, columns += mask->q_len + mask->kv_len)
        for (size_t n = 0; n < distances; n++) {
            const int64_t distance = 1 - (int64_t)mask->q_len + (int64_t)n - attn_mask_offset(mask, b);
            const size_t row = attn_relative_row(distance, rows, own->buckets, own->max_distance);
            columns[n] = (uint32_t)(row - first);
        }
}

/* ---- weight and run ---- */

/* Numbers of the terms, as a double, so that it cannot overflow. */
double attn_relative_numbers(const attn_plan *plan)
{
    const attn_request *request = &plan->request;
    const attn_mask *mask = attn_mask_of(plan);
    const double width = (double)attn_relative_rows_of(request, mask).count;
    const double heads = (double)plan->dims.batch * (double)plan->dims.heads * width;
    return heads * ((attn_has_relative_key(request) ? (double)mask->q_len : 0) +
                    (attn_has_relative_query(request) ? (double)mask->kv_len : 0));
}

struct attn_bytes attn_relative_bytes(const attn_plan *plan)
{
    const attn_mask *mask = attn_mask_of(plan);
    const size_t element = attn_dtype_bytes(plan->compute);
    if (attn_relative_table(&plan->request) == NULL)
        return (struct attn_bytes){0, 0};
    const size_t copied = attn_min(ROWS, attn_max(mask->q_len, mask->kv_len)) * plan->dims.d_k;
    return (struct attn_bytes){.scratch = attn_round_up((GEMM_SCRATCH + copied) * element, ATTN_ALIGNMENT),
                               .shared = (size_t)attn_relative_numbers(plan) * element +
                                         items(mask) * (mask->q_len + mask->kv_len) * sizeof(uint32_t)};
}

/* Takes memory for the side's terms. Without a table there is none. */
static bool take_side(const struct relative_run *run, struct side *side, attn_arena *arena)
{
    if (side->table != NULL)
        side->to = attn_arena_take(arena, run->job->batch * run->job->heads * side->len * run->width, run->element);
    return side->table == NULL || side->to != NULL;
}

attn_status attn_relative_run(const attn_plan *plan, const char *key_table, const char *query_table,
                              const attn_runtime *runtime, attn_arena *arena, struct attn_heads_job *job,
                              attn_error *err)
{
    const attn_mask *mask = job->mask;
    const struct attn_relative_rows rows = attn_relative_rows_of(&plan->request, mask);
    if (rows.count == 0)
        return ATTN_OK;
    struct relative_run run = {.job = job,
                               .runtime = runtime,
                               .element = attn_dtype_bytes(job->compute),
                               .width = rows.count,
                               .scratch_bytes = attn_relative_bytes(plan).scratch};
    run.sides[0] = (struct side){{.added = job->q}, job->heads, job->q_len, key_table, job->kv_heads, NULL};
    run.sides[1] = (struct side){job->k, job->kv_heads, job->kv_len, query_table, job->heads, NULL};
    uint32_t *columns = attn_arena_take(arena, items(mask) * (mask->q_len + mask->kv_len), sizeof *columns);
    run.scratch = attn_arena_take(arena, runtime->threads, run.scratch_bytes);
    if (columns == NULL || run.scratch == NULL || !take_side(&run, &run.sides[0], arena) ||
        !take_side(&run, &run.sides[1], arena))
        return attn_fail_no_memory(err);
    for (int s = 0; s < 2; s++)
        run.tasks[s] = term_tasks(&run, &run.sides[s]);
    attn_spread(runtime, run.tasks[0] + run.tasks[1], term_task, &run);
    fill_columns(&plan->request, mask, rows.first, columns);
    job->relative = (struct attn_relative_scores){.of_queries = run.sides[0].to,
                                                  .of_keys = run.sides[1].to,
                                                  .columns = columns,
                                                  .item_stride = items(mask) == 1 ? 0 : mask->q_len + mask->kv_len,
                                                  .width = rows.count};
    return ATTN_OK;
}
