/* cache.h: keys and values that stay on the server between the steps of a sequence. */
#ifndef SERVICE_CACHE_CACHE_H
#define SERVICE_CACHE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attn/tensor.h"
#include "base/text.h"

/*
 * ---- block.c ----
 *
 * The memory of one cache: keys and values in one block, each head with room for rows to come.
 *
 * The rows of a head are contiguous, as the kernels read them, and behind them is the room of the head. So a step writes
 * its new rows behind the past ones, and nothing moves until the room is full.
 */

/* Begins as zero: no memory. */
struct cache_block {
    attn_tensor key, value; /* (batch, kv_heads, length, d): the rows, where they lie; data NULL: no memory */
    size_t room;            /* how many rows a head has memory for */
};

/* The bytes of room rows per head in the shapes of key and value. SIZE_MAX when they do not fit a size_t. */
size_t cache_block_bytes(const attn_tensor *key, const attn_tensor *value, size_t room);

/*
 * Changes the room to at least the length, and keeps the rows. The block may move: no pointer into it is valid
 * afterwards. It grows in place rather than into a second block, because two at a time would take bytes that are not
 * reserved. Returns false without memory, and the block is as it was.
 */
bool cache_block_resize(struct cache_block *block, size_t room);

/*
 * Gives an empty block another shape and room: (batch, kv_heads, 0, d) of the type, batch, heads and widths of key and
 * value. Returns false without memory.
 */
bool cache_block_begin(struct cache_block *block, const attn_tensor *key, const attn_tensor *value, size_t room);

/* The first length rows of each head as *key and *value, where they lie. The room has at least as many. */
void cache_block_view(const struct cache_block *block, size_t length, attn_tensor *key, attn_tensor *value);

/* Copies the rows from first on of a tensor that is shaped like part into part, a view of the block. */
void cache_block_write(const attn_tensor *part, const attn_tensor *from, size_t first);

void cache_block_free(struct cache_block *block);

/*
 * ---- store.c ----
 *
 * Keeps keys and values on the server between the steps of a sequence, by name (options.cache).
 *
 * A cache belongs to the API key that began it. Its full name is the pair of API key and name, so one key never sees
 * the caches of another. Without API keys the key is "", and all caches belong to it.
 *
 * A step begins by borrowing the cache; no other request can use a borrowed cache. It reserves room for its rows, grows
 * the cache into that room, and writes them there. It ends in one of two ways: it keeps the new keys and values, or it
 * gives the cache back, with the rows and the room of before. A cache that is idle for too long is evicted. Its name is
 * remembered for a while, so that a client that continues it gets an error and not an empty cache.
 *
 * A cache that grows takes room for twice its rows, as long as the limits allow it, so that most steps move nothing.
 * Unused room counts like rows. When a step does not fit beside it, idle caches lose theirs, and keep their rows.
 */

enum { CACHE_NAME_MAX = 128, CACHE_KEY_MAX = 64 };

/* The number of names of evicted caches that are remembered: in all, and per API key when there are several. */
enum { CACHE_GONE_MAX = 1024, CACHE_GONE_OF_KEY = CACHE_GONE_MAX / 2 };

struct cache_store;
struct cache_entry;

/* The full name of a cache. key is the name of an API key of at most CACHE_KEY_MAX bytes, or "" without API keys. */
struct cache_name {
    const char *key;
    struct text_span name;
};

/*
 * Returns NULL without memory. An API key holds at most half of both limits, and at least one cache; the key "" may
 * hold all. idle_s is in seconds. Every call takes one lock. The time under the lock does not grow with the number of
 * caches, except for caches that the call evicts.
 */
struct cache_store *cache_store_create(size_t max_bytes, size_t max_count, uint64_t idle_s);
void cache_store_destroy(struct cache_store *store); /* store may be NULL. */

enum cache_outcome {
    CACHE_OK,
    CACHE_ABSENT,
    CACHE_GONE,
    CACHE_BUSY,
    CACHE_TOO_MANY,      /* all keys together, or the key "", hold max_count caches */
    CACHE_TOO_MANY_OWN,  /* this key holds its share of max_count */
    CACHE_TOO_LARGE,     /* all keys together would hold more than max_bytes */
    CACHE_TOO_LARGE_OWN, /* this key would hold more than its share of max_bytes */
    CACHE_NO_MEMORY
};

/* How much the key may hold; or how much is held. */
struct cache_share {
    size_t bytes, count;
};
struct cache_share cache_store_share(const struct cache_store *store, const char *key);

/* The cache that a step continues. */
struct cache_loan {
    struct cache_entry *entry;
    uint64_t layer;           /* the version of the layer with which the cache was begun */
    size_t length;            /* of the past; 0: a new cache */
    struct cache_block block; /* the past: block.key and block.value have length rows */
    attn_tensor key, value;   /* after cache_store_grow: the past, and the rows that the step must write behind it */
    size_t room;              /* that is reserved */
};

/* Borrows the cache of that name, or begins a new one. After CACHE_OK, the caller must keep it or give it back. */
enum cache_outcome cache_store_begin(struct cache_store *store, const struct cache_name *name, uint64_t layer,
                                     struct cache_loan *loan);
/*
 * Reserves room for a step after which the cache is shaped like key and value, (batch, kv_heads, length, d). A past has
 * their type, batch, heads and widths. Changes no memory, so a request may still be refused at no cost. On a failure no
 * room is reserved, and the loan continues.
 */
enum cache_outcome cache_store_reserve(struct cache_store *store, struct cache_loan *loan, const attn_tensor *key,
                                       const attn_tensor *value);
/*
 * Makes the reserved room, and sets loan->key and loan->value. The past may move, so loan->block tells where it is now.
 * Returns CACHE_OK; or CACHE_NO_MEMORY, and the loan continues.
 */
enum cache_outcome cache_store_grow(struct cache_loan *loan);
/* Ends the loan. The rows of loan->key and loan->value are the cache now, and all of them must be written. */
void cache_store_keep(struct cache_store *store, struct cache_loan *loan);
/* Ends the loan. The cache is what it was before. */
void cache_store_give_back(struct cache_store *store, struct cache_loan *loan);

/* The facts that a client gets about a cache. */
struct cache_facts {
    char name[CACHE_NAME_MAX + 1];
    size_t batch, kv_heads, length;
    size_t bytes; /* of the rows, without unused room */
    attn_dtype dtype;
    double idle_s;
};

/*
 * Returns CACHE_OK, CACHE_ABSENT or CACHE_GONE. Another request may change the cache at once, so *facts may be out of
 * date.
 */
enum cache_outcome cache_store_look(struct cache_store *store, const struct cache_name *name,
                                    struct cache_facts *facts);
/*
 * Removes the cache, or the name of an evicted cache. Returns CACHE_OK or CACHE_ABSENT. A cache that is lent is removed
 * at the end of its step.
 */
enum cache_outcome cache_store_remove(struct cache_store *store, const struct cache_name *name);
/* Fills in up to limit caches of the key, in the order in which they were begun. Returns how many. */
size_t cache_store_list(struct cache_store *store, const char *key, size_t limit, struct cache_facts *facts);
/* All caches, and the bytes that they hold or have reserved, unused room included. */
struct cache_share cache_store_held(struct cache_store *store);

#endif
