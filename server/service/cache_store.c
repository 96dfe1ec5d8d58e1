/*
 * cache_store.c: keys and values by name, between requests.
 */
#include "service/cache_store.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "codec/tensor_gather.h"

enum { RANK = 4, GONE_MAX = 1024 };

struct cache_entry {
    char name[CACHE_NAME_MAX + 1];
    uint64_t owner;
    bool is_lent, is_removed; /* removed: when it is given back */
    char *data;               /* keys, then values; NULL: new */
    size_t key_bytes, bytes;
    size_t shape[RANK], value_width; /* of the keys; of a value row */
    attn_dtype dtype;
    int64_t used_ms;
};

struct cache_store {
    size_t max_bytes, max_count;
    int64_t idle_ms;
    pthread_mutex_t lock; /* guards what follows */
    struct cache_entry **entries;
    size_t count, bytes;
    char gone[GONE_MAX][CACHE_NAME_MAX + 1]; /* a ring: the oldest is forgotten first */
    size_t next_gone;
};

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

struct cache_store *cache_store_create(size_t max_bytes, size_t max_count, uint64_t idle_s)
{
    struct cache_store *store = calloc(1, sizeof *store);
    if (store == NULL)
        return NULL;
    store->max_bytes = max_bytes;
    store->max_count = max_count;
    store->idle_ms = (int64_t)idle_s * 1000;
    pthread_mutex_init(&store->lock, NULL);
    return store;
}

static void free_entry(struct cache_entry *entry)
{
    free(entry->data);
    free(entry);
}

void cache_store_destroy(struct cache_store *store)
{
    if (store == NULL)
        return;
    for (size_t i = 0; i < store->count; i++)
        free_entry(store->entries[i]);
    free(store->entries);
    pthread_mutex_destroy(&store->lock);
    free(store);
}

/* ---- with the lock held ---- */

static void drop(struct cache_store *store, size_t place)
{
    struct cache_entry *entry = store->entries[place];
    store->bytes -= entry->bytes;
    store->entries[place] = store->entries[--store->count];
    free_entry(entry);
}

static size_t place_of(const struct cache_store *store, struct text_span name)
{
    size_t place = 0;
    while (place < store->count && !text_equal(name, store->entries[place]->name))
        place++;
    return place;
}

static size_t place_of_gone(const struct cache_store *store, struct text_span name)
{
    size_t place = 0;
    while (place < GONE_MAX && (store->gone[place][0] == '\0' || !text_equal(name, store->gone[place])))
        place++;
    return place;
}

static void give_up_idle(struct cache_store *store)
{
    const int64_t now = now_ms();
    for (size_t i = 0; i < store->count;) {
        const struct cache_entry *entry = store->entries[i];
        if (entry->is_lent || now - entry->used_ms <= store->idle_ms) {
            i++;
            continue;
        }
        memcpy(store->gone[store->next_gone], entry->name, sizeof entry->name);
        store->next_gone = (store->next_gone + 1) % GONE_MAX;
        drop(store, i);
    }
}

static struct cache_entry *add(struct cache_store *store, const char *name, uint64_t owner)
{
    struct cache_entry **entries = realloc(store->entries, (store->count + 1) * sizeof *entries);
    struct cache_entry *entry = entries != NULL ? calloc(1, sizeof *entry) : NULL;
    store->entries = entries != NULL ? entries : store->entries;
    if (entry == NULL)
        return NULL;
    snprintf(entry->name, sizeof entry->name, "%s", name);
    entry->owner = owner;
    entry->used_ms = now_ms();
    store->entries[store->count++] = entry;
    return entry;
}

static void lend(struct cache_entry *entry, struct cache_loan *loan)
{
    entry->is_lent = true;
    *loan = (struct cache_loan){.entry = entry, .owner = entry->owner, .length = entry->shape[2]};
    if (entry->data == NULL)
        return;
    const size_t *shape = entry->shape, values[RANK] = {shape[0], shape[1], shape[2], entry->value_width};
    loan->key = attn_tensor_view(entry->data, entry->dtype, RANK, shape);
    loan->value = attn_tensor_view(entry->data + entry->key_bytes, entry->dtype, RANK, values);
}

/* A cache that never held anything goes again, and so does one that was removed meanwhile. */
static void take_back(struct cache_store *store, struct cache_loan *loan)
{
    struct cache_entry *entry = loan->entry;
    entry->is_lent = false;
    entry->used_ms = now_ms();
    if (entry->data == NULL || entry->is_removed)
        drop(store, place_of(store, text_span_of(entry->name)));
    loan->entry = NULL;
}

/* ---- steps ---- */

enum cache_outcome cache_store_begin(struct cache_store *store, const char *name, uint64_t owner,
                                     struct cache_loan *loan)
{
    enum cache_outcome outcome = CACHE_OK;
    struct cache_entry *entry = NULL;
    pthread_mutex_lock(&store->lock);
    give_up_idle(store);
    const size_t place = place_of(store, text_span_of(name));
    if (place < store->count)
        entry = store->entries[place];
    else if (place_of_gone(store, text_span_of(name)) < GONE_MAX)
        outcome = CACHE_GONE;
    else if (store->count >= store->max_count)
        outcome = CACHE_FULL;
    else if ((entry = add(store, name, owner)) == NULL)
        outcome = CACHE_NO_MEMORY;
    if (entry != NULL && entry->is_lent)
        outcome = CACHE_BUSY;
    else if (entry != NULL)
        lend(entry, loan);
    pthread_mutex_unlock(&store->lock);
    return outcome;
}

bool cache_store_has_room(struct cache_store *store, const struct cache_loan *loan, size_t bytes)
{
    pthread_mutex_lock(&store->lock);
    const size_t others = store->bytes - loan->entry->bytes;
    const bool has_room = others <= store->max_bytes && bytes <= store->max_bytes - others;
    pthread_mutex_unlock(&store->lock);
    return has_room;
}

static size_t bytes_of(const attn_tensor *tensor)
{
    return attn_tensor_count(tensor) * attn_dtype_bytes(tensor->dtype);
}

enum cache_outcome cache_store_keep(struct cache_store *store, struct cache_loan *loan, const attn_tensor *key,
                                    const attn_tensor *value)
{
    struct cache_entry *entry = loan->entry;
    const size_t key_bytes = bytes_of(key), bytes = key_bytes + bytes_of(value);
    enum cache_outcome outcome = cache_store_has_room(store, loan, bytes) ? CACHE_OK : CACHE_FULL;
    char *data = outcome == CACHE_OK ? malloc(bytes > 0 ? bytes : 1) : NULL, *before = NULL;
    if (outcome == CACHE_OK && data == NULL)
        outcome = CACHE_NO_MEMORY;
    if (outcome == CACHE_OK && bytes > 0) {
        tensor_gather(data, key, 0, attn_tensor_count(key));
        tensor_gather(data + key_bytes, value, 0, attn_tensor_count(value));
    }
    pthread_mutex_lock(&store->lock);
    if (outcome == CACHE_OK) {
        before = entry->data;
        store->bytes += bytes - entry->bytes;
        entry->data = data;
        entry->bytes = bytes;
        entry->key_bytes = key_bytes;
        entry->dtype = key->dtype;
        entry->value_width = value->shape[RANK - 1];
        memcpy(entry->shape, key->shape, sizeof entry->shape);
    }
    take_back(store, loan);
    pthread_mutex_unlock(&store->lock);
    free(before);
    return outcome;
}

void cache_store_give_back(struct cache_store *store, struct cache_loan *loan)
{
    pthread_mutex_lock(&store->lock);
    take_back(store, loan);
    pthread_mutex_unlock(&store->lock);
}

/* ---- looking and removing ---- */

static void tell(const struct cache_entry *entry, struct cache_facts *facts)
{
    *facts = (struct cache_facts){.batch = entry->shape[0],
                                  .kv_heads = entry->shape[1],
                                  .length = entry->shape[2],
                                  .bytes = entry->bytes,
                                  .dtype = entry->dtype,
                                  .idle_s = (double)(now_ms() - entry->used_ms) * 1e-3};
    memcpy(facts->name, entry->name, sizeof facts->name);
}

enum cache_outcome cache_store_look(struct cache_store *store, struct text_span name, struct cache_facts *facts)
{
    enum cache_outcome outcome = CACHE_OK;
    pthread_mutex_lock(&store->lock);
    give_up_idle(store);
    const size_t place = place_of(store, name);
    if (place < store->count)
        tell(store->entries[place], facts);
    else
        outcome = place_of_gone(store, name) < GONE_MAX ? CACHE_GONE : CACHE_ABSENT;
    pthread_mutex_unlock(&store->lock);
    return outcome;
}

enum cache_outcome cache_store_remove(struct cache_store *store, struct text_span name)
{
    enum cache_outcome outcome = CACHE_OK;
    pthread_mutex_lock(&store->lock);
    give_up_idle(store);
    const size_t place = place_of(store, name), gone = place_of_gone(store, name);
    if (gone < GONE_MAX)
        store->gone[gone][0] = '\0';
    else if (place == store->count)
        outcome = CACHE_ABSENT;
    else if (store->entries[place]->is_lent)
        store->entries[place]->is_removed = true;
    else
        drop(store, place);
    pthread_mutex_unlock(&store->lock);
    return outcome;
}

size_t cache_store_list(struct cache_store *store, size_t limit, struct cache_facts *facts)
{
    pthread_mutex_lock(&store->lock);
    give_up_idle(store);
    const size_t count = store->count < limit ? store->count : limit;
    for (size_t i = 0; i < count; i++)
        tell(store->entries[i], &facts[i]);
    pthread_mutex_unlock(&store->lock);
    return count;
}
