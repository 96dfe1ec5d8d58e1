/*
 * cache_store.h: keys and values that stay on the server between the steps of a sequence, by name (options.cache).
 *
 * A step begins by borrowing what is there, which nobody else can then use, and ends by keeping it with the new keys
 * and values appended, or by giving it back as it was. What lies idle for too long is given up; its name is remembered
 * for a while, so that whoever goes on with it is told rather than served from an empty cache.
 */
#ifndef SERVICE_CACHE_STORE_H
#define SERVICE_CACHE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attn/tensor.h"
#include "text.h"

enum { CACHE_NAME_MAX = 128 };

struct cache_store;
struct cache_entry;

/* All under one lock, held for no longer than a search. idle_s: seconds. NULL without memory. */
struct cache_store *cache_store_create(size_t max_bytes, size_t max_count, uint64_t idle_s);
void cache_store_destroy(struct cache_store *store); /* NULL is fine */

enum cache_outcome { CACHE_OK, CACHE_ABSENT, CACHE_GONE, CACHE_BUSY, CACHE_FULL, CACHE_NO_MEMORY };

/* What a step goes on from. */
struct cache_loan {
    struct cache_entry *entry;
    uint64_t owner;         /* what the cache was begun with; that of begin when it is new */
    attn_tensor key, value; /* (batch, kv_heads, length, d); length 0: the cache is new */
    size_t length;
};

/* The cache of that name, begun when there is none. After CACHE_OK, keep or give back must follow. */
enum cache_outcome cache_store_begin(struct cache_store *store, const char *name, uint64_t owner,
                                     struct cache_loan *loan);
/* Whether so many bytes have room in the place of what was borrowed. */
bool cache_store_has_room(struct cache_store *store, const struct cache_loan *loan, size_t bytes);
/* Copies of both, (batch, kv_heads, length, d), in the place of what was borrowed; else it is given back. */
enum cache_outcome cache_store_keep(struct cache_store *store, struct cache_loan *loan, const attn_tensor *key,
                                    const attn_tensor *value);
void cache_store_give_back(struct cache_store *store, struct cache_loan *loan);

/* What is told about a cache. */
struct cache_facts {
    char name[CACHE_NAME_MAX + 1];
    size_t batch, kv_heads, length, bytes;
    attn_dtype dtype;
    double idle_s;
};

/* CACHE_OK, CACHE_ABSENT or CACHE_GONE; *facts are those of a moment. */
enum cache_outcome cache_store_look(struct cache_store *store, struct text_span name, struct cache_facts *facts);
/* Removes it, or forgets that one of that name is gone: CACHE_OK or CACHE_ABSENT. A step that uses it ends with it. */
enum cache_outcome cache_store_remove(struct cache_store *store, struct text_span name);
/* Up to limit caches in no particular order; how many. */
size_t cache_store_list(struct cache_store *store, size_t limit, struct cache_facts *facts);

#endif
