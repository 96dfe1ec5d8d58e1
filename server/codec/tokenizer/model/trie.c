/* trie.c: a trie whose edges are in one hash table, so a node with one child costs as little as one with a thousand. */
#include "codec/tokenizer/model/trie.h"

#include <stdlib.h>
#include <string.h>

#include "codec/tokenizer/model/slots.h"

static int compare_texts(const void *left, const void *right)
{
    const struct text_span *a = left, *b = right;
    const int order = memcmp(a->at, b->at, a->length < b->length ? a->length : b->length);
    return order != 0 ? order : (a->length > b->length) - (a->length < b->length);
}

/* The edges of the trie: of each text in order, the bytes behind the beginning that it has in common with the last. */
static size_t count_edges(struct text_span *sorted, size_t count)
{
    struct text_span last = {"", 0};
    size_t edges = 0;
    if (count > 0)
        qsort(sorted, count, sizeof *sorted, compare_texts);
    for (size_t i = 0; i < count; i++) {
        size_t common = 0;
        while (common < last.length && common < sorted[i].length && last.at[common] == sorted[i].at[common])
            common++;
        edges += sorted[i].length - common;
        last = sorted[i];
    }
    return edges;
}

attn_status trie_create(struct trie *trie, const struct text_span *texts, size_t count, attn_arena *arena,
                        attn_arena *scratch, attn_error *err)
{
    const attn_arena_mark mark = attn_arena_mark_here(scratch);
    size_t bytes = 0, used = 0;
    for (size_t i = 0; i < count; i++) {
        bytes += texts[i].length;
        used += texts[i].length > 0;
    }
    if (bytes >= TRIE_NODES_MAX)
        return attn_fail(err, ATTN_ERR_TOO_LARGE, "/model/vocab",
                         "the tokens have %zu bytes together; at most %d are allowed", bytes, TRIE_NODES_MAX - 1);
    struct text_span *sorted = attn_arena_take(scratch, used, sizeof *sorted);
    if (sorted == NULL)
        return attn_fail_no_memory(err);
    for (size_t i = 0, to = 0; i < count; i++)
        if (texts[i].length > 0)
            sorted[to++] = texts[i];
    const size_t edges = count_edges(sorted, used);
    attn_arena_release(scratch, mark);
    *trie = (struct trie){.slots = (uint32_t)slots_for(edges), .nodes = 1};
    trie->edges = attn_arena_take(arena, trie->slots, sizeof *trie->edges);
    trie->values = attn_arena_take(arena, edges + 1, sizeof *trie->values);
    if (trie->edges == NULL || trie->values == NULL)
        return attn_fail_no_memory(err);
    memset(trie->edges, 0xFF, trie->slots * sizeof *trie->edges);
    trie->values[TRIE_ROOT] = TRIE_NONE;
    return ATTN_OK;
}

/* The slot of that edge, or the empty one where it belongs. */
static struct trie_edge *find(const struct trie *trie, uint32_t from)
{
    uint32_t slot = slots_first(slots_hash(from), trie->slots);
    while (trie->edges[slot].from != from && trie->edges[slot].from != TRIE_NONE)
        slot = slots_next(slot, trie->slots);
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
