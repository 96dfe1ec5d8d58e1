/* linear.c: attention by feature maps: running sums over keys where the mask allows them, else pair by pair. */
#include "linear.h"

#include <math.h>
#include <string.h>

enum {
    LINEAR_KEYS = 256,   /* of a block whose sums are taken together: part of the result's bits */
    LINEAR_QUERIES = 64, /* queries of a task */
    TAKES_MAX = 12,
};

/* ---- checks ---- */

static attn_status check_performer(const attn_mechanism *m, const attn_request *request, const attn_dims *dims,
                                   attn_error *err)
{
    static const char *const field = "/options/mechanism/projection";
    const attn_tensor *p = m->projection;
    char shape[64];
    if (m->features > ATTN_PERFORMER_FEATURES_MAX)
        return attn_fail(err, ATTN_ERR_VALUE, "/options/mechanism/features", "features must be at most %d",
                         ATTN_PERFORMER_FEATURES_MAX);
    if (p == NULL)
        return ATTN_OK;
    if (p->dtype != request->options.compute || !attn_tensor_is_contiguous(p))
        return attn_fail(err, ATTN_ERR_FIELD, field, "the projection must be %s without gaps",
                         attn_dtype_name(request->options.compute));
    attn_shape_text(shape, sizeof shape, p->rank, p->shape);
    if (p->rank != 2 || p->shape[1] != dims->d_k || p->shape[0] == 0 || p->shape[0] > ATTN_PERFORMER_FEATURES_MAX ||
        (m->features != 0 && m->features != p->shape[0]))
        return attn_fail(err, ATTN_ERR_SHAPE, field, "the projection has shape %s, expected [features,%zu]", shape,
                         dims->d_k);
    return ATTN_OK;
}

static attn_status check_companions(const attn_request *request, attn_error *err)
{
    static const attn_step softmax_alone[] = {ATTN_STEP_SCORES,   ATTN_STEP_SCALED,  ATTN_STEP_MASKED, ATTN_STEP_LSE,
                                              ATTN_STEP_LSE_KEYS, ATTN_STEP_ENTROPY, ATTN_STEP_SINK};
    const attn_options *options = &request->options;
    for (size_t s = 0; s < sizeof softmax_alone / sizeof *softmax_alone; s++)
        if (options->want >> softmax_alone[s] & 1)
            return attn_fail(err, ATTN_ERR_FIELD, "/options/return", "\"%s\" belongs to mechanism softmax",
                             attn_step_name(softmax_alone[s]));
    if (options->softcap > 0)
        return attn_fail(err, ATTN_ERR_FIELD, "/options/softcap", "softcap belongs to mechanism softmax");
    if (options->dropout > 0 && options->dropout_attention)
        return attn_fail(err, ATTN_ERR_FIELD, "/options/dropout/where",
                         "dropout of weights belongs to mechanism softmax; \"residual\" is possible");
    if (options->sinks != NULL)
        return attn_fail(err, ATTN_ERR_FIELD, "/options/sinks", "sinks belong to mechanism softmax");
    if (options->alibi || options->alibi_slopes != NULL)
        return attn_fail(err, ATTN_ERR_FIELD, "/options/alibi", "alibi belongs to mechanism softmax");
    if (options->relative_bias.table != NULL)
        return attn_fail(err, ATTN_ERR_FIELD, "/options/relative_bias", "relative_bias belongs to mechanism softmax");
    if (request->masks.bias != NULL)
        return attn_fail(err, ATTN_ERR_FIELD, "/masks/bias", "a bias belongs to mechanism softmax; use attend");
    return ATTN_OK;
}

attn_status attn_linear_check(const attn_request *request, const attn_dims *dims, attn_error *err)
{
    const attn_mechanism *m = &request->options.mechanism;
    if (!attn_is_linear(&request->options))
        return ATTN_OK;
    if (!(m->eps >= 0 && isfinite(m->eps)))
        return attn_fail(err, ATTN_ERR_VALUE, "/options/mechanism/eps", "eps must be a finite number, 0 or more");
    if (m->type == ATTN_LINEAR && !m->is_unnormalised && request->options.has_scale)
        return attn_fail(err, ATTN_ERR_FIELD, "/options/scale",
                         "scale has no meaning for mechanism linear, unless it is not normalised");
    attn_status status = check_companions(request, err);
    return status == ATTN_OK && m->type == ATTN_PERFORMER ? check_performer(m, request, dims, err) : status;
}

/* ---- what a run works with ---- */

struct run {
    const attn_plan *plan;
    const attn_mechanism *mechanism;
    struct attn_heads_job *job;
    const attn_runtime *runtime;
    size_t m, width;      /* features of phi; numbers of a row of sums: d_v, and 1 for the denominator */
    size_t key_blocks;    /* of LINEAR_KEYS */
    bool is_running;      /* the mask leaves every query a run from key 0, and padding */
    double *projection;   /* performer: (m, d_k) */
    double *phi_k;        /* (batch, kv_heads, kv_len, m) */
    double *key_max;      /* performer: (batch, kv_heads) */
    uint8_t *key_is_seen; /* (batch, kv_heads, kv_len) */
    double *sums;         /* (batch, kv_heads, key_blocks + 1, m, width): of all keys before the block */
    char *scratch;
    size_t scratch_bytes;
};

size_t attn_mechanism_features(const attn_mechanism *mechanism, size_t d_k)
{
    if (mechanism->type == ATTN_LINEAR)
        return d_k;
    if (mechanism->projection != NULL)
        return mechanism->projection->shape[0];
    return mechanism->features == 0 ? ATTN_PERFORMER_FEATURES : mechanism->features;
}

static size_t block_count(size_t kv_len)
{
    return (kv_len + LINEAR_KEYS - 1) / LINEAR_KEYS;
}

static bool is_cancelled(const struct run *run)
{
    return run->runtime->is_cancelled != NULL && run->runtime->is_cancelled(run->runtime->cancel_context);
}

/* Nothing is looked up but padding, and every span that is not empty begins at key 0: a window that reaches far left.
 */
static bool is_running_mask(const attn_mask *mask)
{
    attn_mask without = *mask;
    without.padding = NULL;
    if (attn_mask_has_lookup(&without))
        return false;
    for (size_t b = 0; b < mask->batch; b++)
        for (size_t i = 0; i < mask->q_len; i++) {
            const attn_span span = attn_mask_span(mask, b, i);
            if (span.from != 0 && span.from < span.to)
                return false;
        }
    return true;
}

static bool is_real(const attn_mask *mask, size_t b, size_t j)
{
    return mask->padding == NULL ||
           mask->padding[(ptrdiff_t)b * mask->padding_stride[0] + (ptrdiff_t)j * mask->padding_stride[1]] != 0;
}

static double number_at(const struct run *run, const void *data, ptrdiff_t at)
{
    return run->job->compute == ATTN_F32 ? (double)((const float *)data)[at] : ((const double *)data)[at];
}

static ptrdiff_t place(const struct attn_operand *operand, size_t b, size_t h, size_t row)
{
    return (ptrdiff_t)b * operand->batch_stride + (ptrdiff_t)h * operand->head_stride +
           (ptrdiff_t)row * operand->row_stride;
}

/* ---- features ---- */

/* P s into phi; *half_square = |s|^2 / 2. s = sqrt(scale) x, a negative scale turning the queries round. */
static void project(const struct run *run, const void *data, ptrdiff_t at, double factor, double *half_square,
                    double *phi)
{
    const size_t d_k = run->job->d_k;
    double square = 0;
    memset(phi, 0, run->m * sizeof *phi);
    for (size_t f = 0; f < d_k; f++) {
        const double s = factor * number_at(run, data, at + (ptrdiff_t)f);
        square += s * s;
        for (size_t r = 0; r < run->m; r++)
            phi[r] += run->projection[f * run->m + r] * s;
    }
    *half_square = square / 2;
}

static double largest(const double *x, size_t count, double largest_before)
{
    for (size_t n = 0; n < count; n++)
        largest_before = x[n] > largest_before ? x[n] : largest_before;
    return largest_before;
}

static void to_features(const struct run *run, double half_square, double max, double *phi)
{
    const double ratio = 1 / sqrt((double)run->m), shift = half_square + (max > -HUGE_VAL ? max : 0);
    for (size_t r = 0; r < run->m; r++)
        phi[r] = ratio * (exp(phi[r] - shift) + run->mechanism->eps);
}

static void map_linear(const struct run *run, const void *data, ptrdiff_t at, double *phi)
{
    for (size_t f = 0; f < run->m; f++) {
        const double x = number_at(run, data, at + (ptrdiff_t)f);
        phi[f] = run->mechanism->is_identity ? x : x > 0 ? x + 1 : exp(x);
    }
}

static void map_query(const struct run *run, size_t b, size_t h, size_t i, double *phi)
{
    const struct attn_operand *q = &run->job->q;
    const double scale = run->plan->scale;
    if (run->mechanism->type == ATTN_LINEAR) {
        map_linear(run, q->data, place(q, b, h, i), phi);
        for (size_t f = 0; f < run->m && run->mechanism->is_unnormalised; f++)
            phi[f] *= scale;
        return;
    }
    double half_square;
    project(run, q->data, place(q, b, h, i), scale < 0 ? -sqrt(-scale) : sqrt(scale), &half_square, phi);
    to_features(run, half_square, largest(phi, run->m, -HUGE_VAL), phi);
}

/* Which keys some query of the group sees: those that are read at all. */
static void find_seen(const struct run *run, size_t b, size_t kv_head, uint8_t *seen)
{
    const struct attn_heads_job *job = run->job;
    const size_t group = job->heads / job->kv_heads;
    size_t end = 0;
    memset(seen, 0, job->kv_len);
    for (size_t i = 0; i < job->q_len && !is_cancelled(run); i++) {
        const attn_span span = attn_mask_span(job->mask, b, i);
        end = run->is_running && span.to > end ? span.to : end;
        for (size_t j = span.from; j < span.to && !run->is_running; j++)
            for (size_t h = kv_head * group; h < (kv_head + 1) * group && !seen[j]; h++)
                seen[j] = attn_mask_allows(job->mask, job->compute, b, h, i, j);
    }
    for (size_t j = 0; j < end; j++)
        seen[j] = is_real(job->mask, b, j);
}

/* Task: the keys of one head that are seen. Features, of performer before exp; the largest, whole blocks of sums. */
static void seen_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct run *run = argument;
    const struct attn_heads_job *job = run->job;
    find_seen(run, index / job->kv_heads, index % job->kv_heads, run->key_is_seen + index * job->kv_len);
}

static double key_factor(const struct run *run)
{
    return sqrt(fabs(run->plan->scale));
}

/* Task: the features of the keys of one block of one head; those of performer still lack the largest of the head. */
static void features_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct run *run = argument;
    const struct attn_heads_job *job = run->job;
    const size_t head = index / run->key_blocks, first = index % run->key_blocks * LINEAR_KEYS;
    const size_t b = head / job->kv_heads, h = head % job->kv_heads;
    const uint8_t *seen = run->key_is_seen + head * job->kv_len;
    for (size_t j = first; j < job->kv_len && j < first + LINEAR_KEYS && !is_cancelled(run); j++) {
        double half_square, *phi = run->phi_k + (head * job->kv_len + j) * run->m;
        if (!seen[j])
            continue;
        if (run->mechanism->type == ATTN_LINEAR)
            map_linear(run, job->k.data, place(&job->k, b, h, j), phi);
        else
            project(run, job->k.data, place(&job->k, b, h, j), key_factor(run), &half_square, phi);
    }
}

static void max_task(void *argument, size_t head, size_t worker)
{
    (void)worker;
    const struct run *run = argument;
    const size_t kv_len = run->job->kv_len;
    double max = -HUGE_VAL;
    for (size_t j = 0; j < kv_len; j++)
        if (run->key_is_seen[head * kv_len + j])
            max = largest(run->phi_k + (head * kv_len + j) * run->m, run->m, max);
    run->key_max[head] = max;
}

static void finish_features(const struct run *run, size_t head, size_t j, double *phi)
{
    const struct attn_heads_job *job = run->job;
    const size_t b = head / job->kv_heads, h = head % job->kv_heads;
    double square = 0;
    for (size_t f = 0; f < job->d_k; f++) {
        const double s = key_factor(run) * number_at(run, job->k.data, place(&job->k, b, h, j) + (ptrdiff_t)f);
        square += s * s;
    }
    to_features(run, square / 2, run->key_max[head], phi);
}

/* ---- sums ---- */

/* sums += phi(k_j) (v_j, 1) */
static void add_key(const struct run *run, size_t head, size_t j, double *sums)
{
    const struct attn_heads_job *job = run->job;
    const double *phi = run->phi_k + (head * job->kv_len + j) * run->m;
    const ptrdiff_t v = place(&job->v, head / job->kv_heads, head % job->kv_heads, j);
    for (size_t r = 0; r < run->m; r++) {
        double *row = sums + r * run->width;
        for (size_t c = 0; c < job->d_v; c++)
            row[c] += phi[r] * number_at(run, job->v.data, v + (ptrdiff_t)c);
        row[job->d_v] += phi[r];
    }
}

/* Task: what one block of keys of one head adds. */
static void sums_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct run *run = argument;
    const struct attn_heads_job *job = run->job;
    const size_t head = index / run->key_blocks, block = index % run->key_blocks, first = block * LINEAR_KEYS;
    double *sums = run->sums + (head * (run->key_blocks + 1) + block + 1) * run->m * run->width;
    if (run->is_running)
        memset(sums, 0, run->m * run->width * sizeof *sums);
    for (size_t j = first; j < job->kv_len && j < first + LINEAR_KEYS && !is_cancelled(run); j++) {
        if (!run->key_is_seen[head * job->kv_len + j])
            continue;
        if (run->mechanism->type == ATTN_PERFORMER)
            finish_features(run, head, j, run->phi_k + (head * job->kv_len + j) * run->m);
        if (run->is_running)
            add_key(run, head, j, sums);
    }
}

/* Task: the blocks of one head, each on top of those before it. */
static void pile_task(void *argument, size_t head, size_t worker)
{
    (void)worker;
    const struct run *run = argument;
    const size_t count = run->m * run->width;
    double *sums = run->sums + head * (run->key_blocks + 1) * count;
    memset(sums, 0, count * sizeof *sums);
    for (size_t block = 1; block <= run->key_blocks; block++)
        for (size_t n = 0; n < count; n++)
            sums[block * count + n] += sums[(block - 1) * count + n];
}

/* ---- queries ---- */

/* What a task needs for its rows. */
struct row {
    size_t b, h, i, kv_head; /* kv_head over all items */
    double *phi;             /* of the query */
    double *sums;            /* of the keys before at */
    size_t at;
    double *out; /* d_v, and the denominator */
};

/* Brings the sums to all keys before end: from the block's beginning on, key by key, wherever it came from. */
static void advance(const struct run *run, struct row *row, size_t end)
{
    const size_t count = run->m * run->width, block = end / LINEAR_KEYS;
    if (end < row->at || row->at < block * LINEAR_KEYS || row->at == SIZE_MAX) {
        memcpy(row->sums, run->sums + (row->kv_head * (run->key_blocks + 1) + block) * count,
               count * sizeof *row->sums);
        row->at = block * LINEAR_KEYS;
    }
    for (; row->at < end; row->at++)
        if (run->key_is_seen[row->kv_head * run->job->kv_len + row->at])
            add_key(run, row->kv_head, row->at, row->sums);
}

static bool allows(const struct run *run, const struct row *row, size_t j)
{
    return run->is_running ? is_real(run->job->mask, row->b, j)
                           : attn_mask_allows(run->job->mask, run->job->compute, row->b, row->h, row->i, j);
}

static bool any_allowed(const struct run *run, const struct row *row, attn_span span)
{
    for (size_t j = span.from; j < span.to; j++)
        if (allows(run, row, j))
            return true;
    return false;
}

static double dot(const double *a, const double *b, size_t count)
{
    double sum = 0;
    for (size_t n = 0; n < count; n++)
        sum += a[n] * b[n];
    return sum;
}

static double weight_of(const struct run *run, const struct row *row, size_t j)
{
    return dot(row->phi, run->phi_k + (row->kv_head * run->job->kv_len + j) * run->m, run->m);
}

static void sum_running(const struct run *run, struct row *row, attn_span span)
{
    advance(run, row, span.to);
    for (size_t r = 0; r < run->m; r++)
        for (size_t c = 0; c < run->width; c++)
            row->out[c] += row->phi[r] * row->sums[r * run->width + c];
}

static void sum_pairs(const struct run *run, const struct row *row, attn_span span)
{
    const struct attn_heads_job *job = run->job;
    for (size_t j = span.from; j < span.to && !is_cancelled(run); j++) {
        if (!allows(run, row, j))
            continue;
        const double w = weight_of(run, row, j);
        const ptrdiff_t v = place(&job->v, row->b, row->h / (job->heads / job->kv_heads), j);
        for (size_t c = 0; c < job->d_v; c++)
            row->out[c] += w * number_at(run, job->v.data, v + (ptrdiff_t)c);
        row->out[job->d_v] += w;
    }
}

static void put(const struct run *run, void *data, size_t at, double value)
{
    if (run->job->compute == ATTN_F32)
        ((float *)data)[at] = (float)value;
    else
        ((double *)data)[at] = value;
}

/* The equivalent weights of a row, in a map that keeps it. */
static void keep_row(const struct run *run, const struct row *row, int which, attn_span span, double divisor)
{
    const struct attn_heads_job *job = run->job;
    const struct attn_map *map = &job->map[which];
    const size_t head = map->all_heads || job->head_slot == NULL ? row->h : job->head_slot[row->h];
    const size_t heads = map->all_heads ? job->heads : job->kept_heads;
    const size_t query = job->query_slot == NULL ? row->i : job->query_slot[row->i];
    if (map->data == NULL || head == SIZE_MAX || query == SIZE_MAX)
        return;
    const size_t first = ((row->b * heads + head) * job->kept_queries + query) * job->kept_keys;
    for (size_t j = 0; j < job->kept_keys; j++)
        put(run, map->data, first + j, 0);
    for (size_t j = span.from; j < span.to && !is_cancelled(run); j++) {
        const size_t key = job->key_slot == NULL ? j : job->key_slot[j];
        if (key != SIZE_MAX && allows(run, row, j))
            put(run, map->data, first + key, weight_of(run, row, j) / divisor);
    }
}

static void attend_row(const struct run *run, struct row *row)
{
    const struct attn_heads_job *job = run->job;
    const attn_span span = attn_mask_span(job->mask, row->b, row->i);
    const bool sees = any_allowed(run, row, span);
    memset(row->out, 0, run->width * sizeof *row->out);
    if (sees) {
        map_query(run, row->b, row->h, row->i, row->phi);
        if (run->is_running)
            sum_running(run, row, span);
        else
            sum_pairs(run, row, span);
    }
    const double eps = run->mechanism->type == ATTN_LINEAR ? run->mechanism->eps : 0;
    const double divisor = run->mechanism->is_unnormalised || !sees ? 1 : row->out[job->d_v] + eps;
    const size_t to = (size_t)place(&job->context, row->b, row->h, row->i);
    for (size_t c = 0; c < job->d_v; c++)
        put(run, (void *)(uintptr_t)job->context.data, to + c, row->out[c] / divisor);
    job->row_is_empty[(row->b * job->heads + row->h) * job->q_len + row->i] = !sees;
    const attn_span kept = sees ? span : (attn_span){0, 0};
    keep_row(run, row, MAP_ATTENTION, kept, divisor);
    keep_row(run, row, MAP_MEAN_SOURCE, kept, divisor);
}

static size_t row_blocks(size_t q_len)
{
    return (q_len + LINEAR_QUERIES - 1) / LINEAR_QUERIES;
}

static void query_task(void *argument, size_t index, size_t worker)
{
    const struct run *run = argument;
    const struct attn_heads_job *job = run->job;
    const size_t across = row_blocks(job->q_len), head = index / across, first = index % across * LINEAR_QUERIES;
    struct row row = {.b = head / job->heads, .h = head % job->heads, .at = SIZE_MAX};
    row.kv_head = row.b * job->kv_heads + row.h / (job->heads / job->kv_heads);
    row.phi = (double *)(void *)(run->scratch + worker * run->scratch_bytes);
    row.out = row.phi + run->m;
    row.sums = row.out + run->width;
    for (row.i = first; row.i < job->q_len && row.i < first + LINEAR_QUERIES && !is_cancelled(run); row.i++)
        attend_row(run, &row);
}

/* ---- the run ---- */

/* False when it was cancelled. */
static bool draw_projection(const struct run *run, double *drawn)
{
    const size_t d_k = run->job->d_k;
    const uint64_t seed = run->mechanism->seed;
    for (size_t r = 0; r < run->m; r++) {
        if (is_cancelled(run))
            return false;
        attn_performer_direction(seed, r, d_k, drawn);
    }
    attn_performer_lengths(seed, run->m, d_k, drawn + run->m * d_k, drawn);
    return true;
}

/* By features first: (d_k, m), so that a feature of x meets all of them in a row. */
static attn_status prepare_projection(struct run *run, attn_arena *arena)
{
    const attn_mechanism *mechanism = run->mechanism;
    const size_t d_k = run->job->d_k, m = run->m;
    if (mechanism->type != ATTN_PERFORMER)
        return ATTN_OK;
    run->projection = attn_arena_take(arena, m * d_k, sizeof *run->projection);
    double *drawn = attn_arena_take(arena, (m + 1) * d_k, sizeof *drawn);
    if (run->projection == NULL || drawn == NULL)
        return ATTN_ERR_NO_MEMORY;
    if (mechanism->projection == NULL && !draw_projection(run, drawn))
        return ATTN_ERR_CANCELLED;
    for (size_t r = 0; r < m; r++)
        for (size_t f = 0; f < d_k; f++)
            run->projection[f * m + r] = mechanism->projection == NULL
                                             ? drawn[r * d_k + f]
                                             : number_at(run, mechanism->projection->data, (ptrdiff_t)(r * d_k + f));
    return ATTN_OK;
}

static bool take_memory(struct run *run, const attn_runtime *runtime, attn_arena *arena)
{
    struct attn_heads_job *job = run->job;
    const size_t kv_heads = job->batch * job->kv_heads;
    run->phi_k = attn_arena_take(arena, kv_heads * job->kv_len * run->m, sizeof *run->phi_k);
    run->key_is_seen = attn_arena_take(arena, kv_heads, job->kv_len);
    run->key_max = attn_arena_take(arena, kv_heads, sizeof *run->key_max);
    run->sums = attn_arena_take(arena, kv_heads * (run->key_blocks + 1) * run->m * run->width, sizeof *run->sums);
    run->scratch = attn_arena_take(arena, runtime->threads, run->scratch_bytes);
    job->row_is_empty = attn_arena_take_zeroed(arena, job->batch * job->heads, job->q_len);
    return run->phi_k != NULL && run->key_is_seen != NULL && run->key_max != NULL && run->sums != NULL &&
           run->scratch != NULL && job->row_is_empty != NULL;
}

static void spread(struct run *run, size_t tasks, attn_task *task)
{
    if (tasks > 0)
        run->runtime->run(run->runtime->context, tasks, task, run);
}

static attn_status fail_cancelled(attn_error *err)
{
    return attn_fail(err, ATTN_ERR_CANCELLED, NULL, "stopped before the end");
}

attn_status attn_linear_run(const attn_plan *plan, const attn_request *request, struct attn_heads_job *job,
                            const attn_runtime *runtime, attn_arena *arena, attn_result *result, attn_error *err)
{
    const attn_mechanism *mechanism = &request->options.mechanism;
    const size_t kv_heads = job->batch * job->kv_heads;
    struct run run = {.plan = plan,
                      .mechanism = mechanism,
                      .job = job,
                      .runtime = runtime,
                      .m = attn_mechanism_features(mechanism, job->d_k),
                      .width = job->d_v + 1,
                      .key_blocks = block_count(job->kv_len),
                      .is_running = is_running_mask(job->mask),
                      .scratch_bytes = attn_linear_scratch_bytes(plan, request)};
    attn_status status = take_memory(&run, runtime, arena) ? prepare_projection(&run, arena) : ATTN_ERR_NO_MEMORY;
    if (status == ATTN_ERR_NO_MEMORY)
        return attn_fail(err, status, NULL, "not enough memory for the features of the keys");
    if (status == ATTN_ERR_CANCELLED)
        return fail_cancelled(err);
    spread(&run, kv_heads, seen_task);
    spread(&run, kv_heads * run.key_blocks, features_task);
    if (mechanism->type == ATTN_PERFORMER)
        spread(&run, kv_heads, max_task);
    if (run.is_running || mechanism->type == ATTN_PERFORMER)
        spread(&run, kv_heads * run.key_blocks, sums_task);
    if (run.is_running)
        spread(&run, kv_heads, pile_task);
    spread(&run, job->batch * job->heads * row_blocks(job->q_len), query_task);
    if (is_cancelled(&run))
        return fail_cancelled(err);
    status = attn_heads_list_empty(job, arena, result);
    return status == ATTN_OK ? ATTN_OK : attn_fail(err, status, NULL, "not enough memory for the diagnostics");
}

/* ---- weight ---- */

size_t attn_linear_scratch_bytes(const attn_plan *plan, const attn_request *request)
{
    const size_t m = attn_mechanism_features(&request->options.mechanism, plan->dims.d_k), width = plan->dims.d_v + 1;
    const size_t bytes = (m + width + m * width) * sizeof(double);
    return (bytes + ATTN_ALIGNMENT - 1) / ATTN_ALIGNMENT * ATTN_ALIGNMENT;
}

size_t attn_linear_shared_bytes(const attn_plan *plan, const attn_request *request)
{
    const attn_dims *d = &plan->dims;
    const size_t m = attn_mechanism_features(&request->options.mechanism, d->d_k), kv_heads = d->batch * d->kv_heads;
    const size_t rows = d->batch * d->heads * d->q_len;
    const size_t sums = kv_heads * (block_count(d->kv_len) + 1) * m * (d->d_v + 1);
    const size_t listed = rows < ATTN_EMPTY_ROWS_LISTED ? rows : ATTN_EMPTY_ROWS_LISTED;
    return (kv_heads * d->kv_len * m + kv_heads + sums + (2 * m + 1) * d->d_k) * sizeof(double) + kv_heads * d->kv_len +
           rows + listed * sizeof(attn_row) + (size_t)TAKES_MAX * ATTN_ALIGNMENT;
}

double attn_linear_flops(const attn_plan *plan, const attn_request *request)
{
    const attn_dims *d = &plan->dims;
    const attn_mechanism *mechanism = &request->options.mechanism;
    const double m = (double)attn_mechanism_features(mechanism, d->d_k), width = (double)(d->d_v + 1);
    const double heads = (double)d->batch * (double)d->heads, kv_heads = (double)d->batch * (double)d->kv_heads;
    const double q_len = (double)d->q_len, kv_len = (double)d->kv_len;
    const double map = mechanism->type == ATTN_PERFORMER ? 2 * m * (double)d->d_k + 20 * m : 20 * m;
    /* Keys are summed for their head, and within a block once more for each task of queries. */
    double flops = heads * q_len * (map + 4 * m * width) + kv_heads * kv_len * (map + 2 * m * width) +
                   heads * (double)row_blocks(d->q_len) * LINEAR_KEYS * 2 * m * width;
    if (mechanism->type == ATTN_PERFORMER && mechanism->projection == NULL)
        flops += attn_performer_flops((size_t)m, d->d_k);
    const uint32_t maps = UINT32_C(1) << ATTN_STEP_ATTENTION | UINT32_C(1) << ATTN_STEP_ATTENTION_MEAN;
    const double pairs = heads * q_len * kv_len;
    if ((plan->want & maps) != 0)
        flops += 2 * pairs * m;
    if (!is_running_mask(&plan->mask))
        flops += 2 * pairs * (m + width + 50);
    return flops;
}
