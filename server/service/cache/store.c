/*
 * store.c: keeps keys and values by name, between requests.
 *
 * A hash table finds an entry by its name. Three kinds of lists hold the entries: all caches in the order of their last
 * use, which eviction reads from the front; the caches of one API key, for listing; and the names of evicted caches, by
 * age.
 */
#include "service/cache/cache.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum { LENGTH_AXIS = 2, BUCKETS = 1 << 14 };

/* An entry is in one list of each kind. While it is lent, it is in no list by age. */
enum list_kind { BY_AGE, OF_OWNER, LIST_KINDS };

struct list {
    struct cache_entry *first, *last;
    size_t count;
};

/* An API key that has caches, or names of evicted caches. */
struct cache_owner {
    char key[CACHE_KEY_MAX + 1];
    struct list held, gone; /* by OF_OWNER: the key's caches, and the names of its evicted caches */
    size_t charged;
    struct cache_owner *next;
};

struct cache_entry {
    char name[CACHE_NAME_MAX + 1];
    struct cache_owner *owner;
    struct cache_entry *next; /* the next entry of the same bucket */
    struct {
        struct cache_entry *before, *behind;
    } in[LIST_KINDS];
    uint64_t layer;
    bool is_lent, is_removed; /* is_removed: a request removed it while it was lent */
    bool is_gone;             /* it was evicted: only the name is left */
    struct cache_block block; /* without memory: a new cache */
    size_t charged; /* bytes that count against the limits: those of the room, or while lent the reserved ones */
    double used_ms;
};

struct cache_store {
    size_t max_bytes, max_count;
    double idle_ms;
    pthread_mutex_t lock; /* guards what follows */
    struct cache_entry *buckets[BUCKETS];
    struct cache_owner *owners;
    struct list idle, gone; /* by BY_AGE, oldest first: caches that are not lent; names of evicted caches */
    size_t count, charged;  /* of all caches, lent ones included; evicted ones do not count */
};

struct cache_store *cache_store_create(size_t max_bytes, size_t max_count, uint64_t idle_s)
{
    struct cache_store *store = calloc(1, sizeof *store);
    if (store == NULL)
        return NULL;
    store->max_bytes = max_bytes;
    store->max_count = max_count;
    store->idle_ms = 1e3 * (double)idle_s;
    pthread_mutex_init(&store->lock, NULL);
    return store;
}

struct cache_share cache_store_share(const struct cache_store *store, const char *key)
{
    if (key[0] == '\0')
        return (struct cache_share){store->max_bytes, store->max_count};
    return (struct cache_share){store->max_bytes / 2, store->max_count > 1 ? store->max_count / 2 : store->max_count};
}

/* ---- lists ---- */

static void append(struct list *list, enum list_kind kind, struct cache_entry *entry)
{
    entry->in[kind].before = list->last;
    entry->in[kind].behind = NULL;
    *(list->last != NULL ? &list->last->in[kind].behind : &list->first) = entry;
    list->last = entry;
    list->count++;
}

static void take_out(struct list *list, enum list_kind kind, struct cache_entry *entry)
{
    struct cache_entry *before = entry->in[kind].before, *behind = entry->in[kind].behind;
    *(before != NULL ? &before->in[kind].behind : &list->first) = behind;
    *(behind != NULL ? &behind->in[kind].before : &list->last) = before;
    list->count--;
}

/* ---- owners; the lock is held ---- */

static struct cache_owner *owner_of(const struct cache_store *store, const char *key)
{
    struct cache_owner *owner = store->owners;
    while (owner != NULL && strcmp(owner->key, key) != 0)
        owner = owner->next;
    return owner;
}

/* Returns NULL without memory. */
static struct cache_owner *owner_of_new(struct cache_store *store, const char *key)
{
    struct cache_owner *owner = owner_of(store, key);
    if (owner != NULL)
        return owner;
    owner = calloc(1, sizeof *owner);
    if (owner == NULL)
        return NULL;
    snprintf(owner->key, sizeof owner->key, "%s", key);
    owner->next = store->owners;
    store->owners = owner;
    return owner;
}

static void end_if_unused(struct cache_store *store, struct cache_owner *owner)
{
    if (owner->held.count > 0 || owner->gone.count > 0)
        return;
    struct cache_owner **at = &store->owners;
    while (*at != owner)
        at = &(*at)->next;
    *at = owner->next;
    free(owner);
}

static void charge(struct cache_store *store, struct cache_entry *entry, size_t bytes)
{
    store->charged += bytes - entry->charged;
    entry->owner->charged += bytes - entry->charged;
    entry->charged = bytes;
}

/* ---- entries; the lock is held ---- */

/* FNV-1a (Fowler, Noll and Vo): a client that finds names that collide slows down the searches in one bucket. */
static size_t mix(size_t hash, const char *at, size_t length)
{
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)at[i]) * (size_t)UINT64_C(0x100000001b3);
    return hash;
}

static struct cache_entry **bucket_of(struct cache_store *store, const struct cache_name *name)
{
    const size_t key = mix((size_t)UINT64_C(0xcbf29ce484222325), name->key, strlen(name->key) + 1);
    const size_t hash = mix(key, name->name.at, name->name.length);
    return &store->buckets[(hash ^ hash >> 20) % BUCKETS];
}

static struct cache_name name_of(const struct cache_entry *entry)
{
    return (struct cache_name){entry->owner->key, text_span_of(entry->name)};
}

static struct cache_entry *find(struct cache_store *store, const struct cache_name *name)
{
    struct cache_entry *entry = *bucket_of(store, name);
    while (entry != NULL && !(text_equal(name->name, entry->name) && strcmp(name->key, entry->owner->key) == 0))
        entry = entry->next;
    return entry;
}

/* Returns NULL without memory. */
static struct cache_entry *add(struct cache_store *store, const struct cache_name *name, uint64_t layer)
{
    struct cache_entry *entry = calloc(1, sizeof *entry);
    struct cache_owner *owner = entry != NULL ? owner_of_new(store, name->key) : NULL;
    if (owner == NULL) {
        free(entry);
        return NULL;
    }
    snprintf(entry->name, sizeof entry->name, "%.*s", (int)name->name.length, name->name.at);
    entry->owner = owner;
    entry->layer = layer;
    entry->used_ms = clock_now_ms();
    struct cache_entry **bucket = bucket_of(store, name);
    entry->next = *bucket;
    *bucket = entry;
    append(&owner->held, OF_OWNER, entry);
    append(&store->idle, BY_AGE, entry);
    store->count++;
    return entry;
}

/* Removes the entry from the table and from every list, and frees it. The entry must not be lent. */
static void forget(struct cache_store *store, struct cache_entry *entry)
{
    assert(entry != NULL && !entry->is_lent);
    struct cache_owner *owner = entry->owner;
    const struct cache_name name = name_of(entry);
    struct cache_entry **at = bucket_of(store, &name);
    while (*at != entry)
        at = &(*at)->next;
    *at = entry->next;
    take_out(entry->is_gone ? &store->gone : &store->idle, BY_AGE, entry);
    take_out(entry->is_gone ? &owner->gone : &owner->held, OF_OWNER, entry);
    charge(store, entry, 0);
    store->count -= !entry->is_gone;
    end_if_unused(store, owner);
    cache_block_free(&entry->block);
    free(entry);
}

/* Evicts the cache: frees the data and keeps the name. */
static void evict(struct cache_store *store, struct cache_entry *entry)
{
    struct cache_owner *owner = entry->owner;
    take_out(&store->idle, BY_AGE, entry);
    take_out(&owner->held, OF_OWNER, entry);
    charge(store, entry, 0);
    store->count--;
    cache_block_free(&entry->block);
    entry->is_gone = true;
    append(&store->gone, BY_AGE, entry);
    append(&owner->gone, OF_OWNER, entry);
    if (owner->key[0] != '\0' && owner->gone.count > CACHE_GONE_OF_KEY)
        forget(store, owner->gone.first);
    if (store->gone.count > CACHE_GONE_MAX)
        forget(store, store->gone.first);
}

static void evict_idle(struct cache_store *store)
{
    const double now_ms = clock_now_ms();
    while (store->idle.first != NULL && now_ms - store->idle.first->used_ms > store->idle_ms)
        evict(store, store->idle.first);
}

static void lend(struct cache_store *store, struct cache_entry *entry, struct cache_loan *loan)
{
    const struct cache_block *block = &entry->block;
    take_out(&store->idle, BY_AGE, entry);
    entry->is_lent = true;
    *loan = (struct cache_loan){
        .entry = entry, .layer = entry->layer, .length = block->key.shape[LENGTH_AXIS], .block = *block};
}

/* Counts the room that the cache has. */
static void charge_room(struct cache_store *store, struct cache_entry *entry)
{
    const struct cache_block *block = &entry->block;
    charge(store, entry, cache_block_bytes(&block->key, &block->value, block->room));
}

/* Ends a loan. An entry without memory is forgotten, and so is one that was removed while it was lent. */
static void take_back(struct cache_store *store, struct cache_loan *loan)
{
    struct cache_entry *entry = loan->entry;
    pthread_mutex_lock(&store->lock);
    entry->block = loan->block;
    charge_room(store, entry);
    entry->is_lent = false;
    entry->used_ms = clock_now_ms();
    append(&store->idle, BY_AGE, entry);
    if (entry->block.key.data == NULL || entry->is_removed)
        forget(store, entry);
    pthread_mutex_unlock(&store->lock);
    loan->entry = NULL;
}

void cache_store_destroy(struct cache_store *store)
{
    if (store == NULL)
        return;
    while (store->idle.first != NULL)
        forget(store, store->idle.first);
    while (store->gone.first != NULL)
        forget(store, store->gone.first);
    pthread_mutex_destroy(&store->lock);
    free(store);
}

/* ---- steps ---- */

static enum cache_outcome check_count(const struct cache_store *store, const char *key)
{
    const struct cache_owner *owner = owner_of(store, key);
    if (owner != NULL && key[0] != '\0' && owner->held.count >= cache_store_share(store, key).count)
        return CACHE_TOO_MANY_OWN;
    return store->count < store->max_count ? CACHE_OK : CACHE_TOO_MANY;
}

enum cache_outcome cache_store_begin(struct cache_store *store, const struct cache_name *name, uint64_t layer,
                                     struct cache_loan *loan)
{
    enum cache_outcome outcome = CACHE_OK;
    pthread_mutex_lock(&store->lock);
    evict_idle(store);
    struct cache_entry *entry = find(store, name);
    if (entry != NULL)
        outcome = entry->is_gone ? CACHE_GONE : entry->is_lent ? CACHE_BUSY : CACHE_OK;
    else if ((outcome = check_count(store, name->key)) == CACHE_OK && (entry = add(store, name, layer)) == NULL)
        outcome = CACHE_NO_MEMORY;
    if (outcome == CACHE_OK)
        lend(store, entry, loan);
    pthread_mutex_unlock(&store->lock);
    return outcome;
}

/* Whether held + more <= allowed, without overflow. */
static bool fits(size_t held, size_t more, size_t allowed)
{
    return held <= allowed && more <= allowed - held;
}

/* Reserves that many bytes instead of those that the cache has. */
static enum cache_outcome reserve(struct cache_store *store, struct cache_entry *entry, size_t bytes)
{
    const struct cache_owner *owner = entry->owner;
    const size_t share = cache_store_share(store, owner->key).bytes;
    if (owner->key[0] != '\0' && !fits(owner->charged - entry->charged, bytes, share))
        return CACHE_TOO_LARGE_OWN;
    if (!fits(store->charged - entry->charged, bytes, store->max_bytes))
        return CACHE_TOO_LARGE;
    charge(store, entry, bytes);
    return CACHE_OK;
}

/* Takes unused room from the idle caches of a list, one by one, as long as the bytes are refused for that reason. */
static enum cache_outcome reserve_from(struct cache_store *store, struct cache_entry *entry, size_t bytes,
                                       enum cache_outcome reason, const struct list *list, enum list_kind kind)
{
    enum cache_outcome outcome = reason;
    for (struct cache_entry *other = list->first; other != NULL && outcome == reason; other = other->in[kind].behind) {
        const size_t length = other->block.key.shape[LENGTH_AXIS];
        if (other->is_lent || other->block.room == length)
            continue;
        (void)cache_block_resize(&other->block, length);
        charge_room(store, other);
        outcome = reserve(store, entry, bytes);
    }
    return outcome;
}

static enum cache_outcome reserve_anyhow(struct cache_store *store, struct cache_entry *entry, size_t bytes)
{
    enum cache_outcome outcome = reserve(store, entry, bytes);
    if (outcome == CACHE_TOO_LARGE_OWN)
        outcome = reserve_from(store, entry, bytes, outcome, &entry->owner->held, OF_OWNER);
    if (outcome == CACHE_TOO_LARGE)
        outcome = reserve_from(store, entry, bytes, outcome, &store->idle, BY_AGE);
    return outcome;
}

enum cache_outcome cache_store_reserve(struct cache_store *store, struct cache_loan *loan, const attn_tensor *key,
                                       const attn_tensor *value)
{
    const size_t length = key->shape[LENGTH_AXIS];
    enum cache_outcome outcome = CACHE_TOO_LARGE;
    loan->key = *key;
    loan->value = *value;
    loan->room = loan->block.room;
    if (loan->length > 0 && length <= loan->room)
        return CACHE_OK;
    pthread_mutex_lock(&store->lock);
    if (loan->length > 0 && length <= SIZE_MAX / 2) {
        loan->room = 2 * length;
        outcome = reserve(store, loan->entry, cache_block_bytes(key, value, loan->room));
    }
    if (outcome != CACHE_OK) {
        loan->room = length;
        outcome = reserve_anyhow(store, loan->entry, cache_block_bytes(key, value, loan->room));
    }
    pthread_mutex_unlock(&store->lock);
    return outcome;
}

/* Changes the block of the loan alone, because another request may look at the entry. */
enum cache_outcome cache_store_grow(struct cache_loan *loan)
{
    struct cache_block *block = &loan->block;
    bool is_made = true;
    if (loan->length == 0)
        is_made = cache_block_begin(block, &loan->key, &loan->value, loan->room);
    else if (loan->room > block->room)
        is_made = cache_block_resize(block, loan->room);
    if (!is_made)
        return CACHE_NO_MEMORY;
    cache_block_view(block, loan->key.shape[LENGTH_AXIS], &loan->key, &loan->value);
    return CACHE_OK;
}

void cache_store_keep(struct cache_store *store, struct cache_loan *loan)
{
    loan->block.key = loan->key;
    loan->block.value = loan->value;
    take_back(store, loan);
}

void cache_store_give_back(struct cache_store *store, struct cache_loan *loan)
{
    if (loan->length == 0)
        cache_block_free(&loan->block);
    else if (loan->block.room > loan->entry->block.room) /* the entry has that of before */
        (void)cache_block_resize(&loan->block, loan->entry->block.room);
    take_back(store, loan);
}

/* ---- requests that look and remove ---- */

static void tell(const struct cache_entry *entry, struct cache_facts *facts)
{
    const attn_tensor *key = &entry->block.key, *value = &entry->block.value;
    *facts = (struct cache_facts){.batch = key->shape[0],
                                  .kv_heads = key->shape[1],
                                  .length = key->shape[LENGTH_AXIS],
                                  .bytes = cache_block_bytes(key, value, key->shape[LENGTH_AXIS]),
                                  .dtype = key->dtype,
                                  .idle_s = 1e-3 * (clock_now_ms() - entry->used_ms)};
    memcpy(facts->name, entry->name, sizeof facts->name);
}

enum cache_outcome cache_store_look(struct cache_store *store, const struct cache_name *name, struct cache_facts *facts)
{
    pthread_mutex_lock(&store->lock);
    evict_idle(store);
    const struct cache_entry *entry = find(store, name);
    const enum cache_outcome outcome = entry == NULL ? CACHE_ABSENT : entry->is_gone ? CACHE_GONE : CACHE_OK;
    if (outcome == CACHE_OK)
        tell(entry, facts);
    pthread_mutex_unlock(&store->lock);
    return outcome;
}

enum cache_outcome cache_store_remove(struct cache_store *store, const struct cache_name *name)
{
    pthread_mutex_lock(&store->lock);
    evict_idle(store);
    struct cache_entry *entry = find(store, name);
    const enum cache_outcome outcome = entry != NULL ? CACHE_OK : CACHE_ABSENT;
    if (entry != NULL && entry->is_lent)
        entry->is_removed = true;
    else if (entry != NULL)
        forget(store, entry);
    pthread_mutex_unlock(&store->lock);
    return outcome;
}

size_t cache_store_list(struct cache_store *store, const char *key, size_t limit, struct cache_facts *facts)
{
    size_t count = 0;
    pthread_mutex_lock(&store->lock);
    evict_idle(store);
    const struct cache_owner *owner = owner_of(store, key);
    const struct cache_entry *entry = owner != NULL ? owner->held.first : NULL;
    for (; entry != NULL && count < limit; entry = entry->in[OF_OWNER].behind)
        tell(entry, &facts[count++]);
    pthread_mutex_unlock(&store->lock);
    return count;
}

struct cache_share cache_store_held(struct cache_store *store)
{
    pthread_mutex_lock(&store->lock);
    const struct cache_share held = {store->charged, store->count};
    pthread_mutex_unlock(&store->lock);
    return held;
}
