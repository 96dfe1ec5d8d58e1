/* trie.c: a trie whose edges are in one hash table, so a node with one child costs as little as one with a thousand. */
#include "codec/tokenizer/model/trie.h"

#include <stdlib.h>
#include <string.h>

#include "codec/tokenizer/model/slots.h"

struct entry {
    struct text_span text;
    uint32_t value;
};

static int compare_entries(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    const size_t common = a->text.length < b->text.length ? a->text.length : b->text.length;
    const int order = memcmp(a->text.at, b->text.at, common);
    if (order != 0 || a->text.length != b->text.length)
        return order != 0 ? order : a->text.length < b->text.length ? -1 : 1;
    return (a->value > b->value) - (a->value < b->value);
}

static size_t count_common(struct text_span a, struct text_span b)
{
    size_t common = 0;
    while (common < a.length && common < b.length && a.at[common] == b.at[common])
        common++;
    return common;
}

/* The texts in order. */
struct entries {
    struct entry *items;
    size_t count;
    size_t bytes, longest; /* of all texts, of one */
    size_t edges;          /* of each text, the bytes behind the beginning that it has in common with the last */
};

static attn_status sort(struct entries *entries, const struct text_span *texts, size_t count, attn_arena *scratch,
                        attn_error *err)
{
    *entries = (struct entries){.items = attn_arena_take(scratch, count, sizeof *entries->items)};
    if (entries->items == NULL)
        return attn_fail_no_memory(err);
    for (size_t i = 0; i < count; i++)
        if (texts[i].length > 0) {
            entries->items[entries->count++] = (struct entry){texts[i], (uint32_t)i};
            entries->bytes += texts[i].length;
            entries->longest = texts[i].length > entries->longest ? texts[i].length : entries->longest;
        }
    if (entries->bytes >= TRIE_NODES_MAX)
        return attn_fail(err, ATTN_ERR_TOO_LARGE, "/model/vocab",
                         "the tokens have %zu bytes together; at most %d are allowed", entries->bytes,
                         TRIE_NODES_MAX - 1);
    if (entries->count > 0)
        qsort(entries->items, entries->count, sizeof *entries->items, compare_entries);
    struct text_span last = {"", 0};
    for (size_t i = 0; i < entries->count; i++) {
        entries->edges += entries->items[i].text.length - count_common(last, entries->items[i].text);
        last = entries->items[i].text;
    }
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

/* Adds the texts. path has the nodes of the last one, because the next one goes a part of the same way. */
static void add_all(struct trie *trie, const struct entries *entries, uint32_t *path)
{
    struct text_span last = {"", 0};
    path[0] = TRIE_ROOT;
    for (size_t i = 0; i < entries->count; i++) {
        const struct text_span text = entries->items[i].text;
        for (size_t depth = count_common(last, text); depth < text.length; depth++) {
            const uint32_t from = path[depth] << 8 | (unsigned char)text.at[depth];
            *find(trie, from) = (struct trie_edge){from, trie->nodes};
            trie->values[trie->nodes] = TRIE_NONE;
            path[depth + 1] = trie->nodes++;
        }
        trie->values[path[text.length]] = entries->items[i].value;
        last = text;
    }
}

attn_status trie_create(struct trie *trie, const struct text_span *texts, size_t count, attn_arena *arena,
                        attn_arena *scratch, attn_error *err)
{
    const attn_arena_mark mark = attn_arena_mark_here(scratch);
    struct entries entries;
    if (sort(&entries, texts, count, scratch, err) != ATTN_OK)
        return err->status;
    *trie = (struct trie){.slots = (uint32_t)slots_for(entries.edges), .nodes = 1};
    trie->edges = attn_arena_take(arena, trie->slots, sizeof *trie->edges);
    trie->values = attn_arena_take(arena, entries.edges + 1, sizeof *trie->values);
    uint32_t *path = attn_arena_take(scratch, entries.longest + 1, sizeof *path);
    if (trie->edges == NULL || trie->values == NULL || path == NULL)
        return attn_fail_no_memory(err);
    memset(trie->edges, 0xFF, trie->slots * sizeof *trie->edges);
    trie->values[TRIE_ROOT] = TRIE_NONE;
    add_all(trie, &entries, path);
    attn_arena_release(scratch, mark);
    return ATTN_OK;
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
