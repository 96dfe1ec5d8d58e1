/* feature_keys.c: features of keys and queries, and running sums of keys. */
#include "attention/feature_keys.h"

#include <math.h>
#include <string.h>

#include "base/number.h"
#include "base/pace.h"
#include "base/size.h"
#include "formulas/features.h"

enum { TAKES_MAX = 8 };

static size_t block_count(size_t kv_len)
{
    return attn_ceil_div(kv_len, FEATURE_KEYS);
}

/* ---- the mask ---- */

void attn_find_running_sums(const attn_mask *mask, const attn_runtime *watch, bool *is_running, bool *is_prefix)
{
    struct attn_pace pace = attn_pace_begin(watch);
    attn_mask without = *mask;
    without.padding = NULL;
    *is_running = *is_prefix = false;
    if (attn_mask_has_lookup(&without))
        return;
    bool differs = false;
    for (size_t b = 0; b < mask->batch; b++) {
        size_t end = 0;
        for (size_t i = 0; i < mask->q_len; i++) {
            const attn_span span = attn_mask_span(mask, b, i);
            if (attn_pace_stops(&pace, ATTN_PACE_ROW) || (span.from != 0 && span.from < span.to))
                return;
            differs |= end != 0 && span.from < span.to && span.to != end;
            end = span.from < span.to ? span.to : end;
        }
    }
    *is_running = true;
    *is_prefix = differs;
}

bool attn_feature_is_real(const attn_mask *mask, size_t b, size_t j)
{
    return mask->padding == NULL ||
           mask->padding[(ptrdiff_t)b * mask->padding_stride[0] + (ptrdiff_t)j * mask->padding_stride[1]] != 0;
}

static void look_up(const struct attn_feature_keys *keys, struct attn_feature_look *look, size_t b, size_t h, size_t i,
                    size_t from)
{
    const attn_mask *mask = keys->job->mask;
    const size_t to = mask->kv_len - from < FEATURE_KEYS ? mask->kv_len : from + FEATURE_KEYS;
    *look = (struct attn_feature_look){.b = b, .h = h, .i = i, .from = from, .to = to};
    attn_mask_row(mask, keys->job->compute, b, h, i, attn_mask_span(mask, b, i), from, to, look->allow);
}

bool attn_feature_allows(const struct attn_feature_keys *keys, struct attn_feature_look *look, size_t b, size_t h,
                         size_t i, size_t j)
{
    if (keys->is_running)
        return attn_feature_is_real(keys->job->mask, b, j);
    if (j < look->from || j >= look->to || i != look->i || h != look->h || b != look->b)
        look_up(keys, look, b, h, i, j);
    return look->allow[j - look->from] != 0;
}

bool attn_feature_sees(const struct attn_feature_keys *keys, struct attn_feature_look *look, size_t b, size_t h,
                       size_t i, attn_span span)
{
    for (size_t j = span.from; j < span.to; j++)
        if (attn_feature_allows(keys, look, b, h, i, j))
            return true;
    return false;
}

/* ---- features ---- */

double attn_feature_key_factor(const struct attn_feature_keys *keys)
{
    return sqrt(fabs(keys->plan->scale));
}

double attn_feature_query_factor(const struct attn_feature_keys *keys)
{
    return keys->plan->scale < 0 ? -attn_feature_key_factor(keys) : attn_feature_key_factor(keys);
}

/* Writes P s into phi, and |s|^2 / 2 into *half_square; s = sqrt(scale) x. */
static void project(const struct attn_feature_keys *keys, struct attn_vector x, double factor, double *half_square,
                    double *phi)
{
    double square = 0;
    memset(phi, 0, keys->m * sizeof *phi);
    for (size_t f = 0; f < keys->job->d_k; f++) {
        const double s = factor * attn_number_get(x.data, x.dtype, f);
        square += s * s;
        for (size_t r = 0; r < keys->m; r++)
            phi[r] += keys->projection[f * keys->m + r] * s;
    }
    *half_square = square / 2;
}

/* If x exceeds *largest: sets *largest to the maximum of x and returns its index. Otherwise returns before. */
static size_t find_largest(const double *x, size_t first, size_t count, size_t before, double *largest)
{
    for (size_t n = 0; n < count; n++)
        if (x[n] > *largest) {
            *largest = x[n];
            before = first + n;
        }
    return before;
}

static void to_features(const struct attn_feature_keys *keys, double half_square, double max, double *phi)
{
    const double ratio = 1 / sqrt((double)keys->m), shift = half_square + (max > -HUGE_VAL ? max : 0);
    for (size_t r = 0; r < keys->m; r++)
        phi[r] = ratio * (exp(phi[r] - shift) + keys->mechanism->eps);
}

static void map_linear(const struct attn_feature_keys *keys, struct attn_vector vector, double *phi)
{
    for (size_t f = 0; f < keys->m; f++) {
        const double x = attn_number_get(vector.data, vector.dtype, f);
        phi[f] = keys->mechanism->is_identity ? x : x > 0 ? x + 1 : exp(x);
    }
}

void attn_feature_map_query(const struct attn_feature_keys *keys, size_t b, size_t h, size_t i, double *phi)
{
    const struct attn_vector q = attn_operand_row(&keys->job->q, b, h, i);
    double half_square, max = -HUGE_VAL;
    if (keys->mechanism->type == ATTN_LINEAR) {
        map_linear(keys, q, phi);
        for (size_t f = 0; f < keys->m && keys->mechanism->is_unnormalised; f++)
            phi[f] *= keys->plan->scale;
        return;
    }
    project(keys, q, attn_feature_query_factor(keys), &half_square, phi);
    find_largest(phi, 0, keys->m, 0, &max);
    to_features(keys, half_square, max, phi);
}

/* ---- keys ---- */

/* Marks the keys that any query of the group may attend to. No other key is read. */
static void find_seen(const struct attn_feature_keys *keys, size_t b, size_t kv_head, uint8_t *seen)
{
    const struct attn_heads_job *job = keys->job;
    const size_t group = job->heads / job->kv_heads;
    struct attn_feature_look look = {0};
    size_t end = 0;
    memset(seen, 0, job->kv_len);
    for (size_t i = 0; i < job->q_len && !attn_is_cancelled(keys->runtime); i++) {
        const attn_span span = attn_mask_span(job->mask, b, i);
        end = keys->is_running && span.to > end ? span.to : end;
        for (size_t h = kv_head * group; h < (kv_head + 1) * group && !keys->is_running; h++)
            for (size_t j = span.from; j < span.to; j++)
                seen[j] |= attn_feature_allows(keys, &look, b, h, i, j);
    }
    for (size_t j = 0; j < end; j++)
        seen[j] = attn_feature_is_real(job->mask, b, j);
}

static void seen_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct attn_feature_keys *keys = argument;
    const struct attn_heads_job *job = keys->job;
    find_seen(keys, index / job->kv_heads, index % job->kv_heads, keys->is_seen + index * job->kv_len);
}

/* Task: the features of the keys of a block. For performer they are P s, until the largest P s of the head is known. */
static void features_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct attn_feature_keys *keys = argument;
    const struct attn_heads_job *job = keys->job;
    const size_t head = index / keys->key_blocks, first = index % keys->key_blocks * FEATURE_KEYS;
    const size_t b = head / job->kv_heads, h = head % job->kv_heads;
    const uint8_t *seen = keys->is_seen + head * job->kv_len;
    for (size_t j = first; j < job->kv_len && j < first + FEATURE_KEYS && !attn_is_cancelled(keys->runtime); j++) {
        double half_square, *phi = keys->phi + (head * job->kv_len + j) * keys->m;
        const struct attn_vector k = attn_keys_row(&job->k, b, h, j);
        if (!seen[j])
            continue;
        if (keys->mechanism->type == ATTN_LINEAR)
            map_linear(keys, k, phi);
        else
            project(keys, k, attn_feature_key_factor(keys), &half_square, phi);
    }
}

static void largest_task(void *argument, size_t head, size_t worker)
{
    (void)worker;
    const struct attn_feature_keys *keys = argument;
    const size_t kv_len = keys->job->kv_len;
    double max = -HUGE_VAL;
    size_t at = 0;
    for (size_t j = 0; j < kv_len; j++)
        if (keys->is_seen[head * kv_len + j])
            at = find_largest(keys->phi + (head * kv_len + j) * keys->m, j * keys->m, keys->m, at, &max);
    keys->largest[head] = max;
    keys->largest_at[head] = at;
}

static void finish_features(const struct attn_feature_keys *keys, size_t head, size_t j, double *phi)
{
    const struct attn_heads_job *job = keys->job;
    const struct attn_vector k = attn_keys_row(&job->k, head / job->kv_heads, head % job->kv_heads, j);
    double square = 0;
    for (size_t f = 0; f < job->d_k; f++) {
        const double s = attn_feature_key_factor(keys) * attn_number_get(k.data, k.dtype, f);
        square += s * s;
    }
    to_features(keys, square / 2, keys->largest[head], phi);
}

/* ---- sums ---- */

/* sums += phi(k_j) (v_j, 1) */
static void add_key(const struct attn_feature_keys *keys, size_t head, size_t j, double *sums)
{
    const struct attn_heads_job *job = keys->job;
    const double *phi = keys->phi + (head * job->kv_len + j) * keys->m;
    const struct attn_vector v = attn_keys_row(&job->v, head / job->kv_heads, head % job->kv_heads, j);
    for (size_t r = 0; r < keys->m; r++) {
        double *row = sums + r * keys->width;
        for (size_t c = 0; c < job->d_v; c++)
            row[c] += phi[r] * attn_number_get(v.data, v.dtype, c);
        row[job->d_v] += phi[r];
    }
}

/* Task: the sums of one block of keys of one head. */
static void sums_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct attn_feature_keys *keys = argument;
    const size_t kv_len = keys->job->kv_len;
    const size_t head = index / keys->key_blocks, block = index % keys->key_blocks, first = block * FEATURE_KEYS;
    double *sums = keys->sums + (head * (keys->key_blocks + 1) + block + 1) * keys->m * keys->width;
    if (keys->is_running)
        memset(sums, 0, keys->m * keys->width * sizeof *sums);
    for (size_t j = first; j < kv_len && j < first + FEATURE_KEYS && !attn_is_cancelled(keys->runtime); j++) {
        if (!keys->is_seen[head * kv_len + j])
            continue;
        if (keys->mechanism->type == ATTN_PERFORMER)
            finish_features(keys, head, j, keys->phi + (head * kv_len + j) * keys->m);
        if (keys->is_running)
            add_key(keys, head, j, sums);
    }
}

/* Task: prefix sums over the blocks of one head. */
static void prefix_sums_task(void *argument, size_t head, size_t worker)
{
    (void)worker;
    const struct attn_feature_keys *keys = argument;
    const size_t count = keys->m * keys->width;
    double *sums = keys->sums + head * (keys->key_blocks + 1) * count;
    memset(sums, 0, count * sizeof *sums);
    for (size_t block = 1; block <= keys->key_blocks; block++)
        for (size_t n = 0; n < count; n++)
            sums[block * count + n] += sums[(block - 1) * count + n];
}

void attn_feature_advance(const struct attn_feature_keys *keys, struct attn_feature_sums *to, size_t end)
{
    const size_t count = keys->m * keys->width, block = end / FEATURE_KEYS;
    if (end < to->at || to->at < block * FEATURE_KEYS || to->at == SIZE_MAX) {
        memcpy(to->sums, keys->sums + (to->head * (keys->key_blocks + 1) + block) * count, count * sizeof *to->sums);
        to->at = block * FEATURE_KEYS;
    }
    for (; to->at < end; to->at++)
        if (keys->is_seen[to->head * keys->job->kv_len + to->at])
            add_key(keys, to->head, to->at, to->sums);
}

/* ---- the run ---- */

struct attn_feature_keys attn_feature_keys_describe(const attn_plan *plan, const attn_request *request,
                                                    const struct attn_heads_job *job, const attn_runtime *runtime)
{
    return (struct attn_feature_keys){.plan = plan,
                                      .mechanism = &request->options.mechanism,
                                      .job = job,
                                      .runtime = runtime,
                                      .m = attn_mechanism_features(&request->options.mechanism, plan->dims.d_k),
                                      .width = plan->dims.d_v + 1,
                                      .key_blocks = block_count(plan->dims.kv_len),
                                      .is_running = plan->has_running_sums};
}

size_t attn_feature_keys_bytes(const attn_plan *plan, const attn_request *request)
{
    const attn_dims *d = &plan->dims;
    const size_t m = attn_mechanism_features(&request->options.mechanism, d->d_k), kv_heads = d->batch * d->kv_heads;
    const size_t sums = kv_heads * (block_count(d->kv_len) + 1) * m * (d->d_v + 1);
    return (kv_heads * d->kv_len * m + 2 * kv_heads + sums + (2 * m + 1) * d->d_k) * sizeof(double) +
           kv_heads * d->kv_len + (size_t)TAKES_MAX * ATTN_ALIGNMENT;
}

bool attn_feature_projection(const attn_mechanism *mechanism, attn_dtype compute, size_t d_k,
                             const attn_runtime *runtime, double *projection)
{
    const size_t m = attn_mechanism_features(mechanism, d_k);
    if (mechanism->projection != NULL) {
        for (size_t n = 0; n < m * d_k; n++)
            projection[n] = attn_number_get(mechanism->projection->data, compute, n);
        return true;
    }
    for (size_t r = 0; r < m; r++) {
        if (attn_is_cancelled(runtime))
            return false;
        attn_performer_direction(mechanism->seed, r, d_k, projection);
    }
    attn_performer_lengths(mechanism->seed, m, d_k, projection + m * d_k, projection);
    return true;
}

/* Transposed to (d_k, m), so that the loop over m reads contiguous numbers. */
static attn_status prepare_projection(struct attn_feature_keys *keys, attn_arena *arena)
{
    const attn_mechanism *mechanism = keys->mechanism;
    const size_t d_k = keys->job->d_k, m = keys->m;
    if (mechanism->type != ATTN_PERFORMER)
        return ATTN_OK;
    keys->projection = attn_arena_take(arena, m * d_k, sizeof *keys->projection);
    double *drawn = attn_arena_take(arena, (m + 1) * d_k, sizeof *drawn);
    if (keys->projection == NULL || drawn == NULL)
        return ATTN_ERR_NO_MEMORY;
    if (!attn_feature_projection(mechanism, keys->job->compute, d_k, keys->runtime, drawn))
        return ATTN_ERR_CANCELLED;
    for (size_t r = 0; r < m; r++)
        for (size_t f = 0; f < d_k; f++)
            keys->projection[f * m + r] = drawn[r * d_k + f];
    return ATTN_OK;
}

static bool take_memory(struct attn_feature_keys *keys, attn_arena *arena)
{
    const struct attn_heads_job *job = keys->job;
    const size_t kv_heads = job->batch * job->kv_heads, sums = kv_heads * (keys->key_blocks + 1);
    keys->phi = attn_arena_take(arena, kv_heads * job->kv_len * keys->m, sizeof *keys->phi);
    keys->is_seen = attn_arena_take(arena, kv_heads, job->kv_len);
    keys->largest = attn_arena_take(arena, kv_heads, sizeof *keys->largest);
    keys->largest_at = attn_arena_take(arena, kv_heads, sizeof *keys->largest_at);
    keys->sums = attn_arena_take(arena, sums * keys->m * keys->width, sizeof *keys->sums);
    return keys->phi != NULL && keys->is_seen != NULL && keys->largest != NULL && keys->largest_at != NULL &&
           keys->sums != NULL;
}

attn_status attn_feature_keys_prepare(struct attn_feature_keys *keys, attn_arena *arena)
{
    const size_t kv_heads = keys->job->batch * keys->job->kv_heads;
    const bool is_performer = keys->mechanism->type == ATTN_PERFORMER;
    attn_status status = take_memory(keys, arena) ? prepare_projection(keys, arena) : ATTN_ERR_NO_MEMORY;
    if (status != ATTN_OK)
        return status;
    attn_spread(keys->runtime, kv_heads, seen_task, keys);
    attn_spread(keys->runtime, kv_heads * keys->key_blocks, features_task, keys);
    if (is_performer)
        attn_spread(keys->runtime, kv_heads, largest_task, keys);
    if (keys->is_running || is_performer)
        attn_spread(keys->runtime, kv_heads * keys->key_blocks, sums_task, keys);
    if (keys->is_running)
        attn_spread(keys->runtime, kv_heads, prefix_sums_task, keys);
    return attn_is_cancelled(keys->runtime) ? ATTN_ERR_CANCELLED : ATTN_OK;
}
