/* vocabulary.c: the hash table of a vocabulary, and the trie, whose edges are in one hash table, too. */
#include "codec/tokenizer/model/vocabulary.h"

#include <stdlib.h>
#include <string.h>

static uint32_t hash(const char *text, size_t length)
{
    uint64_t sum = UINT64_C(0xCBF29CE484222325);
    for (size_t i = 0; i < length; i++)
        sum = (sum ^ (unsigned char)text[i]) * UINT64_C(0x100000001B3);
    return slots_hash(sum); /* the last bytes of a text reach few of the high bits of sum */
}

size_t vocabulary_bytes(size_t count, size_t size)
{
    return size * sizeof(struct text_span) + slots_for(count) * sizeof(struct vocabulary_slot);
}

attn_status vocabulary_create(struct vocabulary *vocabulary, size_t count, size_t size, attn_arena *arena,
                              attn_error *err)
{
    const size_t slots = slots_for(count);
    *vocabulary = (struct vocabulary){.size = (uint32_t)size, .slot_count = (uint32_t)slots};
    vocabulary->texts = attn_arena_take_zeroed(arena, size, sizeof *vocabulary->texts);
    vocabulary->slots = attn_arena_take(arena, slots, sizeof *vocabulary->slots);
    if (vocabulary->texts == NULL || vocabulary->slots == NULL)
        return attn_fail_no_memory(err);
    memset(vocabulary->slots, 0xFF, slots * sizeof *vocabulary->slots);
    return ATTN_OK;
}

/* The slot of that text, or the empty one where it belongs. */
static struct vocabulary_slot *find(const struct vocabulary *vocabulary, uint32_t sum, const char *text, size_t length)
{
    for (uint32_t i = slots_first(sum, vocabulary->slot_count);; i = slots_next(i, vocabulary->slot_count)) {
        struct vocabulary_slot *slot = &vocabulary->slots[i];
        if (slot->id == VOCABULARY_NONE)
            return slot;
        if (slot->hash != sum) /* the text of another token is far away in memory */
            continue;
        const struct text_span known = vocabulary->texts[slot->id];
        if (known.length == length && memcmp(known.at, text, length) == 0)
            return slot;
    }
}

attn_status vocabulary_add(struct vocabulary *vocabulary, struct text_span text, uint32_t id, attn_error *err)
{
    if (vocabulary->texts[id].at != NULL)
        return attn_fail(err, ATTN_ERR_VALUE, "/model/vocab", "the tokens \"%.80s\" and \"%.80s\" have the same id %u",
                         vocabulary->texts[id].at, text.at, (unsigned)id);
    const uint32_t sum = hash(text.at, text.length);
    struct vocabulary_slot *slot = find(vocabulary, sum, text.at, text.length);
    vocabulary->model_tokens += slot->id == VOCABULARY_NONE;
    *slot = (struct vocabulary_slot){sum, id};
    vocabulary->texts[id] = text;
    vocabulary->longest = text.length > vocabulary->longest ? text.length : vocabulary->longest;
    return ATTN_OK;
}

uint32_t vocabulary_find(const struct vocabulary *vocabulary, const char *text, size_t length)
{
    if (length > vocabulary->longest) /* a long text is not read for nothing */
        return VOCABULARY_NONE;
    return find(vocabulary, hash(text, length), text, length)->id;
}

struct text_span vocabulary_text(const struct vocabulary *vocabulary, uint32_t id)
{
    return id < vocabulary->size ? vocabulary->texts[id] : (struct text_span){NULL, 0};
}

/* ---- the trie: a node with one child costs as little as one with a thousand ---- */

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
    qsort(entries->items, entries->count, sizeof *entries->items, compare_entries);
    struct text_span last = {"", 0};
    for (size_t i = 0; i < entries->count; i++) {
        entries->edges += entries->items[i].text.length - count_common(last, entries->items[i].text);
        last = entries->items[i].text;
    }
    return ATTN_OK;
}

/* The slot of that edge, or the empty one where it belongs. */
static struct trie_edge *find_edge(const struct trie *trie, uint32_t from)
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
            *find_edge(trie, from) = (struct trie_edge){from, trie->nodes};
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
    return find_edge(trie, node << 8 | byte)->to; /* an empty slot leads to TRIE_NONE */
}

uint32_t trie_walk(const struct trie *trie, uint32_t node, const char *text, size_t length)
{
    for (size_t i = 0; i < length && node != TRIE_NONE; i++)
        node = trie_next(trie, node, (unsigned char)text[i]);
    return node;
}
