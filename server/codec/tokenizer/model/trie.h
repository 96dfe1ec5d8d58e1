/* trie.h: finds the texts of a set that begin at a place, byte by byte. */
#ifndef CODEC_TOKENIZER_MODEL_TRIE_H
#define CODEC_TOKENIZER_MODEL_TRIE_H

#include <stdint.h>

#include "attn/arena.h"
#include "base/text.h"

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
