/*
 * budget.c: a limit in bytes that several arenas share, and a cache of blocks that finished arenas leave to new ones.
 *
 * A new block of some hundred kilobytes often costs more than the work done in it, because the system clears it page by
 * page. In the heaps of the C library, such blocks cause fragmentation of several times the memory in use. So the
 * budget caches a few of them, and blocks of huge pages: clearing the pages for all maps of a model with 512 tokens took
 * a tenth of the time of the request. Cached blocks count against the limit, and are freed when their bytes are needed.
 */
#include "base/budget.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { SPARES_MAX = 64, SPARE_SHARE = 4, SMALL_SHARE = 8 };

struct spare {
    void *block;
    size_t bytes;
};

struct attn_budget {
    atomic_size_t bytes; /* taken, and of spare blocks */
    atomic_size_t refused_bytes;
    size_t limit_bytes;
    pthread_mutex_t lock; /* guards what follows */
    size_t spares, spare_bytes;
    struct spare spare[SPARES_MAX];
};

attn_budget *attn_budget_create(size_t limit_bytes)
{
    attn_budget *budget = calloc(1, sizeof *budget);
    if (budget == NULL)
        return NULL;
    budget->limit_bytes = limit_bytes;
    pthread_mutex_init(&budget->lock, NULL);
    return budget;
}

void attn_budget_destroy(attn_budget *budget)
{
    if (budget == NULL)
        return;
    attn_budget_trim(budget);
    pthread_mutex_destroy(&budget->lock);
    free(budget);
}

/* The bytes of a spare block are in both counts as long as the lock is held, so the difference is not below 0. */
size_t attn_budget_bytes(attn_budget *budget)
{
    pthread_mutex_lock(&budget->lock);
    const size_t bytes = atomic_load_explicit(&budget->bytes, memory_order_relaxed) - budget->spare_bytes;
    pthread_mutex_unlock(&budget->lock);
    return bytes;
}

size_t attn_budget_spare_bytes(attn_budget *budget)
{
    pthread_mutex_lock(&budget->lock);
    const size_t bytes = budget->spare_bytes;
    pthread_mutex_unlock(&budget->lock);
    return bytes;
}

size_t attn_budget_limit_bytes(const attn_budget *budget)
{
    return budget->limit_bytes;
}

static size_t limit_of_large(const attn_budget *budget)
{
    return budget->limit_bytes - budget->limit_bytes / SMALL_SHARE;
}

size_t attn_budget_room_bytes(attn_budget *budget)
{
    const size_t bytes = attn_budget_bytes(budget), limit = limit_of_large(budget);
    return bytes < limit ? limit - bytes : 0;
}

size_t attn_budget_refused_bytes(attn_budget *budget)
{
    return atomic_exchange_explicit(&budget->refused_bytes, 0, memory_order_relaxed);
}

size_t attn_budget_spare_limit_bytes(size_t limit_bytes)
{
    return limit_bytes / SPARE_SHARE;
}

static bool take_of_limit(attn_budget *budget, size_t bytes, size_t limit)
{
    size_t before = atomic_load_explicit(&budget->bytes, memory_order_relaxed);
    do {
        if (before > limit || bytes > limit - before)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&budget->bytes, &before, before + bytes, memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

bool attn_budget_take(attn_budget *budget, size_t bytes, bool is_small)
{
    if (budget == NULL)
        return true;
    const size_t limit = is_small ? budget->limit_bytes : limit_of_large(budget);
    if (take_of_limit(budget, bytes, limit))
        return true;
    attn_budget_trim(budget);
    if (take_of_limit(budget, bytes, limit))
        return true;
    atomic_store_explicit(&budget->refused_bytes, attn_budget_bytes(budget) + bytes, memory_order_relaxed);
    return false;
}

void attn_budget_give(attn_budget *budget, size_t bytes)
{
    if (budget != NULL)
        atomic_fetch_sub_explicit(&budget->bytes, bytes, memory_order_relaxed);
}

/* Best fit: the index of the smallest spare that fits; spares when there is none. The lock is held. */
static size_t best_spare(const attn_budget *budget, size_t bytes)
{
    size_t best = budget->spares;
    for (size_t i = 0; i < budget->spares; i++) {
        const size_t size = budget->spare[i].bytes;
        if (size >= bytes && size - bytes <= bytes / 4 && (best == budget->spares || size < budget->spare[best].bytes))
            best = i;
    }
    return best;
}

void *attn_budget_take_spare(attn_budget *budget, size_t *bytes)
{
    void *block = NULL;
    if (budget == NULL)
        return NULL;
    pthread_mutex_lock(&budget->lock);
    const size_t best = best_spare(budget, *bytes);
    if (best < budget->spares) {
        block = budget->spare[best].block;
        *bytes = budget->spare[best].bytes;
        budget->spare_bytes -= *bytes;
        budget->spare[best] = budget->spare[--budget->spares];
    }
    pthread_mutex_unlock(&budget->lock);
    return block;
}

bool attn_budget_keep_spare(attn_budget *budget, void *block, size_t bytes)
{
    if (budget == NULL)
        return false;
    pthread_mutex_lock(&budget->lock);
    const size_t limit = attn_budget_spare_limit_bytes(budget->limit_bytes);
    const bool is_kept = budget->spares < SPARES_MAX && bytes <= limit - budget->spare_bytes;
    if (is_kept) {
        budget->spare[budget->spares++] = (struct spare){block, bytes};
        budget->spare_bytes += bytes;
    }
    pthread_mutex_unlock(&budget->lock);
    return is_kept;
}

void attn_budget_trim(attn_budget *budget)
{
    pthread_mutex_lock(&budget->lock);
    while (budget->spares > 0)
        free(budget->spare[--budget->spares].block);
    attn_budget_give(budget, budget->spare_bytes);
    budget->spare_bytes = 0;
    pthread_mutex_unlock(&budget->lock);
}
