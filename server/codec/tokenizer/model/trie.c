/*
 * trie.c: a trie whose edges are in one hash table, so a node with one child costs as little as one with a thousand.
 */
#include "codec/tokenizer/model/trie.h"

#include <string.h>

static uint32_t hash(uint32_t key)
{
    const uint64_t product = key * UINT64_C(0x9E3779B97F4A7C15);
    return (uint32_t)(product >> 32);
}

attn_status trie_create(struct trie *trie, size_t bytes, attn_arena *arena, attn_error *err)
{
    if (bytes >= TRIE_NODES_MAX)
        return attn_fail(err, ATTN_ERR_TOO_LARGE, "/model/vocab",
                         "the tokens have %zu bytes together; at most %d are allowed", bytes, TRIE_NODES_MAX - 1);
    size_t slots = 64;
    while (slots < 2 * bytes)
        slots *= 2;
    *trie = (struct trie){.mask = (uint32_t)(slots - 1), .nodes = 1};
    trie->edges = attn_arena_take(arena, slots, sizeof *trie->edges);
    trie->values = attn_arena_take(arena, bytes + 1, sizeof *trie->values);
    if (trie->edges == NULL || trie->values == NULL)
        return attn_fail(err, ATTN_ERR_NO_MEMORY, NULL, "no memory left to load the tokenizer");
    memset(trie->edges, 0xFF, slots * sizeof *trie->edges);
    trie->values[TRIE_ROOT] = TRIE_NONE;
    return ATTN_OK;
}

/* The slot of that edge, or the empty one where it belongs. */
static struct trie_edge *find(const struct trie *trie, uint32_t from)
{
    uint32_t slot = hash(from) & trie->mask;
    while (trie->edges[slot].from != from && trie->edges[slot].from != TRIE_NONE)
        slot = (slot + 1) & trie->mask;
    return &trie->edges[slot];
}

void trie_add(struct trie *trie, const char *text, size_t length, uint32_t value)
{
    uint32_t node = TRIE_ROOT;
    for (size_t i = 0; i < length; i++) {
        const uint32_t from = node << 8 | (unsigned char)text[i];
        struct trie_edge *edge = find(trie, from);
        if (edge->from == TRIE_NONE) {
            *edge = (struct trie_edge){from, trie->nodes};
            trie->values[trie->nodes++] = TRIE_NONE;
        }
        node = edge->to;
    }
    trie->values[node] = value;
}

uint32_t trie_next(const struct trie *trie, uint32_t node, unsigned char byte)
{
    return find(trie, node << 8 | byte)->to; /* an empty slot leads to TRIE_NONE */
}

uint32_t trie_walk(const struct trie *trie, uint32_t node, const char *text, size_t length)
{
    for (size_t i = 0; i < length && node != TRIE_NONE; i++)
        node = trie_next(trie, node, (unsigned char)text[i]);
    return node;
}
