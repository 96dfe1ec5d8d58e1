/*
 * vocabulary.h: finds tokens by their text: the whole of it by a hash table, and what begins at a place by a trie, byte by
 * byte.
 */
#ifndef CODEC_TOKENIZER_MODEL_VOCABULARY_H
#define CODEC_TOKENIZER_MODEL_VOCABULARY_H

#include <stdint.h>

#include "attn/arena.h"
#include "base/text.h"

/* ---- hash tables with open addressing ---- */

/*
 * Of three slots, one stays empty. Their number is no power of two, because a table must not take twice the memory for one
 * more entry.
 */
static inline size_t slots_for(size_t entries)
{
    enum { LEAST = 64 };
    return entries + entries / 2 + LEAST;
}

static inline uint32_t slots_hash(uint64_t key)
{
    return (uint32_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 32);
}

/* The slot where an entry of that hash is looked for first. */
static inline uint32_t slots_first(uint32_t hash, uint32_t slots)
{
    return (uint32_t)((uint64_t)hash * slots >> 32);
}

static inline uint32_t slots_next(uint32_t slot, uint32_t slots)
{
    return slot + 1 < slots ? slot + 1 : 0;
}

/* ---- the vocabulary: text to id and id to text ---- */

#define VOCABULARY_NONE UINT32_MAX

enum { VOCABULARY_IDS_MAX = 1 << 24 };

struct vocabulary_slot {
    uint32_t hash, id; /* id VOCABULARY_NONE: an empty slot */
};

struct vocabulary {
    struct text_span *texts; /* by id; at NULL: no token has the id. A NUL stands behind each */
    uint32_t size;           /* one more than the highest id */
    struct vocabulary_slot *slots;
    uint32_t slot_count;
    uint32_t model_tokens; /* how many texts the table has; added tokens are not in it */
    size_t longest;        /* bytes of the longest of these */
};

/* The memory of a vocabulary for that many tokens with ids below size, beside their texts. */
size_t vocabulary_bytes(size_t count, size_t size);
/* An empty vocabulary in arena, for that many tokens with ids below size. */
attn_status vocabulary_create(struct vocabulary *vocabulary, size_t count, size_t size, attn_arena *arena,
                              attn_error *err);
/*
 * Adds a token; its text, NUL-terminated, stays where it is. An id that is taken fails. A text that is there already
 * means the new id from now on.
 */
attn_status vocabulary_add(struct vocabulary *vocabulary, struct text_span text, uint32_t id, attn_error *err);
/* VOCABULARY_NONE when no token has that text. */
uint32_t vocabulary_find(const struct vocabulary *vocabulary, const char *text, size_t length);
/* at is NULL when no token has that id. */
struct text_span vocabulary_text(const struct vocabulary *vocabulary, uint32_t id);

/* ---- the trie of a set of texts ---- */

#define TRIE_NONE UINT32_MAX

enum { TRIE_ROOT = 0, TRIE_NODES_MAX = 1 << 24 };

struct trie_edge {
    uint32_t from; /* the node times 256, plus the byte; TRIE_NONE: an empty slot */
    uint32_t to;
};

struct trie {
    struct trie_edge *edges; /* a hash table with open addressing */
    uint32_t slots;
    uint32_t *values; /* by node; TRIE_NONE: no text ends here */
    uint32_t nodes;
};

/*
 * The trie of texts, in arena. The value of a text is its index; of equal texts, the highest one. Texts of length 0 do not
 * count. scratch lends memory. Fails with ATTN_ERR_TOO_LARGE if they have TRIE_NODES_MAX bytes or more together, or
 * ATTN_ERR_NO_MEMORY.
 */
attn_status trie_create(struct trie *trie, const struct text_span *texts, size_t count, attn_arena *arena,
                        attn_arena *scratch, attn_error *err);
/* The node behind that byte, or TRIE_NONE. */
uint32_t trie_next(const struct trie *trie, uint32_t node, unsigned char byte);
/* The node behind the whole text, or TRIE_NONE. */
uint32_t trie_walk(const struct trie *trie, uint32_t node, const char *text, size_t length);

#endif
