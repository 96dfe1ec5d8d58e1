/* seen.c: looks the mask up once for each head, before the heads run. */
#include "attention/seen.h"

#include <string.h>

#include "base/parallel.h"

struct seen_run {
    const struct attn_heads_job *job;
    const attn_runtime *runtime;
    uint8_t *key_is_seen, *query_sees;
};

static bool needs_seen(const struct attn_heads_job *job)
{
    return job->map[MAP_SCORES].data != NULL || job->map[MAP_SCALED].data != NULL;
}

size_t attn_seen_bytes(const struct attn_heads_job *job)
{
    return needs_seen(job) ? job->batch * job->heads * (job->kv_len + job->q_len) + 2 * ATTN_ALIGNMENT : 0;
}

static void find_seen_by_query(const struct attn_heads_job *job, size_t b, size_t h, size_t i, uint8_t *seen,
                               uint8_t *sees)
{
    attn_span span = attn_mask_span(job->mask, b, i);
    if (!attn_mask_has_lookup(job->mask)) {
        memset(seen + span.from, 1, span.to - span.from);
        *sees = span.from < span.to;
        return;
    }
    uint8_t allow[TILE_KEYS];
    *sees = 0;
    for (size_t from = span.from; from < span.to; from += TILE_KEYS) {
        const size_t to = span.to - from < TILE_KEYS ? span.to : from + TILE_KEYS;
        *sees |= attn_mask_row(job->mask, job->compute, b, h, i, span, from, to, allow);
        for (size_t j = from; j < to; j++)
            seen[j] |= allow[j - from];
    }
}

/* The keys and the queries of one head. */
static void find_seen(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct seen_run *run = argument;
    const struct attn_heads_job *job = run->job;
    uint8_t *seen = run->key_is_seen + index * job->kv_len, *sees = run->query_sees + index * job->q_len;
    memset(seen, 0, job->kv_len);
    for (size_t i = 0; i < job->q_len && !attn_is_cancelled(run->runtime); i++)
        find_seen_by_query(job, index / job->heads, index % job->heads, i, seen, &sees[i]);
}

attn_status attn_seen_find(struct attn_heads_job *job, const attn_runtime *runtime, attn_arena *arena)
{
    const size_t heads = job->batch * job->heads;
    if (!needs_seen(job))
        return ATTN_OK;
    struct seen_run run = {.job = job,
                           .runtime = runtime,
                           .key_is_seen = attn_arena_take(arena, heads, job->kv_len),
                           .query_sees = attn_arena_take(arena, heads, job->q_len)};
    if (run.key_is_seen == NULL || run.query_sees == NULL)
        return ATTN_ERR_NO_MEMORY;
    runtime->run(runtime->context, heads, find_seen, &run);
    job->key_is_seen = run.key_is_seen;
    job->query_sees = run.query_sees;
    return ATTN_OK;
}
