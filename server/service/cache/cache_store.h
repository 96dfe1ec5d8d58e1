/*
 * cache_store.h: keys and values that stay on the server between the steps of a sequence, by name (options.cache).
 *
 * A cache belongs to the API key that began it: its name is the pair of both, so that two keys never see each other's
 * caches. Without API keys the key is "", and all caches belong to it.
 *
 * A step begins by borrowing the cache, which no other request can then use. It reserves the room that the cache will
 * take, and ends by keeping it with the new keys and values appended, or by giving it back as it was. A cache that is
 * idle for too long is evicted. Its name is remembered for a while, so that a client that goes on with it gets an error
 * rather than an empty cache.
 */
#ifndef SERVICE_CACHE_CACHE_STORE_H
#define SERVICE_CACHE_CACHE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attn/tensor.h"
#include "base/text.h"

enum { CACHE_NAME_MAX = 128, CACHE_KEY_MAX = 64 };

/* Names of evicted caches that are remembered: of all API keys, and of one when there are several. */
enum { CACHE_GONE_MAX = 1024, CACHE_GONE_OF_KEY = CACHE_GONE_MAX / 2 };

struct cache_store;
struct cache_entry;

/* The full name of a cache. key: the name of an API key of at most CACHE_KEY_MAX bytes; "" when there are no keys. */
struct cache_name {
    const char *key;
    struct text_span name;
};

/*
 * Every call takes one lock. The time under it does not grow with the number of caches, except for caches that the call
 * evicts. An API key holds at most half of both limits, and at least one cache; the key "" holds all. idle_s: seconds.
 * NULL without memory.
 */
struct cache_store *cache_store_create(size_t max_bytes, size_t max_count, uint64_t idle_s);
void cache_store_destroy(struct cache_store *store); /* NULL is fine */

enum cache_outcome {
    CACHE_OK,
    CACHE_ABSENT,
    CACHE_GONE,
    CACHE_BUSY,
    CACHE_TOO_MANY,      /* all keys together hold max_count; so does the key "", which has no share */
    CACHE_TOO_MANY_OWN,  /* this key holds its share of max_count */
    CACHE_TOO_LARGE,     /* all keys together would hold more than max_bytes */
    CACHE_TOO_LARGE_OWN, /* this key would hold more than its share of max_bytes */
    CACHE_NO_MEMORY
};

/* How much the key may hold. */
struct cache_share {
    size_t bytes, count;
};
struct cache_share cache_store_share(const struct cache_store *store, const char *key);

/* What a step continues. */
struct cache_loan {
    struct cache_entry *entry;
    uint64_t layer;         /* the layer that the cache was begun with */
    attn_tensor key, value; /* (batch, kv_heads, length, d); length 0: the cache is new */
    size_t length;
};

/* The cache of that name, begun when there is none. After CACHE_OK, keep or give back must follow. */
enum cache_outcome cache_store_begin(struct cache_store *store, const struct cache_name *name, uint64_t layer,
                                     struct cache_loan *loan);
/*
 * Takes room for that many bytes, in place of the bytes of the loan, before they are computed. Room that the cache does
 * not need in the end is free again. On a failure no room is taken, and the loan continues.
 */
enum cache_outcome cache_store_reserve(struct cache_store *store, const struct cache_loan *loan, size_t bytes);
/*
 * Copies both, (batch, kv_heads, length, d), over the data of the loan, to which they must not point. They take at most
 * the reserved bytes. CACHE_OK; or CACHE_NO_MEMORY, and the cache is given back as it was.
 */
enum cache_outcome cache_store_keep(struct cache_store *store, struct cache_loan *loan, const attn_tensor *key,
                                    const attn_tensor *value);
void cache_store_give_back(struct cache_store *store, struct cache_loan *loan);

/* The facts that a client gets about a cache. */
struct cache_facts {
    char name[CACHE_NAME_MAX + 1];
    size_t batch, kv_heads, length, bytes;
    attn_dtype dtype;
    double idle_s;
};

/* CACHE_OK, CACHE_ABSENT or CACHE_GONE. *facts may be out of date at once. */
enum cache_outcome cache_store_look(struct cache_store *store, const struct cache_name *name,
                                    struct cache_facts *facts);
/* Removes the cache, or the name of an evicted one: CACHE_OK or CACHE_ABSENT. A lent cache goes at its step's end. */
enum cache_outcome cache_store_remove(struct cache_store *store, const struct cache_name *name);
/* Fills in up to limit caches of the key, in the order in which they were begun; returns how many. */
size_t cache_store_list(struct cache_store *store, const char *key, size_t limit, struct cache_facts *facts);
/* Bytes that all caches hold or have reserved. */
size_t cache_store_bytes(struct cache_store *store);

#endif
