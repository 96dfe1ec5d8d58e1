/*
 * bpe.c: byte pair encoding: characters, merged pair by pair, the merge of the lowest rank first and the leftmost of
 * these. A heap has the merges that are possible, so a word of n characters takes n log n steps.
 *
 * Sennrich et al., "Neural Machine Translation of Rare Words with Subword Units" (2016), section 3.2.
 */
#include <string.h>

#include "base/array.h"
#include "codec/tokenizer/model/kinds.h"

#define NOWHERE UINT32_MAX

enum {
    AFFIX_BYTES_MAX = 32,
    MERGE_BYTES_MAX = 4096, /* of a token that a merge makes */
    SHOWN_BYTES = 60        /* in messages */
};

/* ---- merges: which pair of tokens becomes which, and how early ---- */

struct merge {
    uint64_t pair; /* left << 32 | right */
    uint32_t rank; /* the place in the list */
    uint32_t id;   /* VOCABULARY_NONE: an empty slot */
};

struct merges {
    struct merge *slots; /* a hash table with open addressing */
    uint32_t count;      /* of slots */
};

struct merges_loader {
    struct loading *loading;
    const struct node *list;
    size_t prefix_bytes;
    struct merges *merges;
    uint32_t last; /* what the last merge makes */
};

/* The slot of that pair, or the empty one where it belongs. */
static struct merge *find_slot(const struct merges *merges, uint64_t pair)
{
    uint32_t slot = slots_first(slots_hash(pair), merges->count);
    while (merges->slots[slot].id != VOCABULARY_NONE && merges->slots[slot].pair != pair)
        slot = slots_next(slot, merges->count);
    return &merges->slots[slot];
}

/* NULL when the pair has no merge. */
static const struct merge *merges_find(const struct merges *merges, uint32_t left, uint32_t right)
{
    const struct merge *merge = find_slot(merges, (uint64_t)left << 32 | right);
    return merge->id != VOCABULARY_NONE ? merge : NULL;
}

/* Cuts "a b" at its only space. */
static bool split_pair(struct text_span text, struct text_span *left, struct text_span *right)
{
    const char *space = memchr(text.at, ' ', text.length);
    if (space == NULL)
        return false;
    *left = (struct text_span){text.at, (size_t)(space - text.at)};
    *right = (struct text_span){space + 1, text.length - left->length - 1};
    return memchr(right->at, ' ', right->length) == NULL;
}

/* Reads one of the list. False when it has neither form. */
static bool read_pair(const json_t *json, struct text_span *left, struct text_span *right)
{
    if (json_is_array(json) && json_array_size(json) == 2) {
        const json_t *first = json_array_get(json, 0), *second = json_array_get(json, 1);
        *left = (struct text_span){json_string_value(first), json_string_length(first)};
        *right = (struct text_span){json_string_value(second), json_string_length(second)};
        return left->at != NULL && right->at != NULL;
    }
    return json_is_string(json) &&
           split_pair((struct text_span){json_string_value(json), json_string_length(json)}, left, right);
}

/* The token that a pair becomes. In most files it is the one behind that of the last merge, which saves a search. */
static uint32_t find_joined(const struct merges_loader *loader, const char *text, size_t length)
{
    const struct vocabulary *vocabulary = loader->loading->vocabulary;
    const struct text_span next = vocabulary_text(vocabulary, loader->last + 1);
    if (next.at != NULL && next.length == length && memcmp(next.at, text, length) == 0)
        return loader->last + 1;
    return vocabulary_find(vocabulary, text, length);
}

/* False: the pair makes a token that is too short or too long, or the vocabulary lacks one of the three. */
static bool add_pair(struct merges_loader *loader, struct text_span left, struct text_span right, size_t rank)
{
    const struct vocabulary *vocabulary = loader->loading->vocabulary;
    const size_t prefix_bytes = loader->prefix_bytes;
    char joined[MERGE_BYTES_MAX];
    if (right.length < prefix_bytes || left.length + right.length - prefix_bytes > sizeof joined)
        return false;
    memcpy(joined, left.at, left.length);
    memcpy(joined + left.length, right.at + prefix_bytes, right.length - prefix_bytes);
    const uint32_t first = vocabulary_find(vocabulary, left.at, left.length);
    const uint32_t second = vocabulary_find(vocabulary, right.at, right.length);
    const uint32_t id = find_joined(loader, joined, left.length + right.length - prefix_bytes);
    if (first == VOCABULARY_NONE || second == VOCABULARY_NONE || id == VOCABULARY_NONE)
        return false;
    const uint64_t pair = (uint64_t)first << 32 | second;
    *find_slot(loader->merges, pair) = (struct merge){pair, (uint32_t)rank, id};
    loader->last = id;
    return true;
}

static bool add_item(void *context, const struct json_item *item, size_t index)
{
    struct text_span left = item->text, right = item->second;
    return !item->has_number && (right.at != NULL || split_pair(item->text, &left, &right)) &&
           add_pair(context, left, right, index);
}

static attn_status add_node(struct merges_loader *loader, const struct node *node)
{
    struct reading *reading = &loader->loading->reading;
    struct text_span left, right;
    if (!read_pair(node->json, &left, &right))
        return node_fail_value(reading, node, "a pair of tokens, as [\"t\", \"h\"] or \"t h\"");
    if (add_pair(loader, left, right, node->index))
        return ATTN_OK;
    if (right.length < loader->prefix_bytes || left.length + right.length - loader->prefix_bytes > MERGE_BYTES_MAX)
        return node_fail(reading, node, ATTN_ERR_VALUE, "makes a token that is too short or too long");
    return node_fail(reading, node, ATTN_ERR_VALUE,
                     "merges \"%.*s\" and \"%.*s\", but the vocabulary lacks one of them or the result",
                     (int)(left.length < SHOWN_BYTES ? left.length : SHOWN_BYTES), left.at,
                     (int)(right.length < SHOWN_BYTES ? right.length : SHOWN_BYTES), right.at);
}

static attn_status add_list(void *context, const json_t *piece, size_t index)
{
    struct merges_loader *loader = context;
    const struct reading *reading = &loader->loading->reading;
    for (size_t i = 0; i < json_array_size(piece) && !node_has_failed(reading); i++) {
        const struct node item = step_item(loader->list, piece, index, i);
        add_node(loader, &item);
    }
    return reading->status;
}

size_t merges_bytes(const struct loading *loading)
{
    return slots_for(loading->merges.items) * sizeof(struct merge);
}

/*
 * Loads the list of a model: ["a", "b"] or "a b" each. The token that a pair becomes is left + right, without the prefix
 * of right. All three must be in the vocabulary.
 */
static attn_status merges_load(struct loading *loading, const struct node *list, size_t prefix_bytes,
                               struct merges *merges)
{
    static const struct json_taker taker = {add_item, add_list};
    struct merges_loader loader = {loading, list, prefix_bytes, merges, 0};
    if (!json_is_array(list->json) || loading->merges.text.at == NULL)
        return node_fail(&loading->reading, list, ATTN_ERR_FIELD, "must be the list of merges");
    const size_t bytes = merges_bytes(loading);
    merges->count = (uint32_t)(bytes / sizeof *merges->slots);
    merges->slots = attn_arena_take(loading->reading.arena, bytes, 1);
    if (merges->slots == NULL)
        return node_fail_memory(&loading->reading, list);
    memset(merges->slots, 0xFF, bytes);
    return loading_each(loading, &loading->merges, &taker, &loader);
}

/* ---- the model ---- */

struct bpe {
    struct text_span unk_token, continuing_subword_prefix, end_of_word_suffix;
    bool fuse_unk, byte_fallback, ignore_merges;
    uint32_t unknown;
    struct model_bytes bytes;
    struct merges merges;
};

/* ---- loading ---- */

static attn_status refuse_dropout(struct reading *reading, const struct node *node, void *to)
{
    (void)to;
    if (json_is_number(node->json) && json_number_value(node->json) == 0)
        return ATTN_OK;
    return node_fail(reading, node, ATTN_ERR_VALUE, "asks for dropout, which is not supported: it makes tokens random");
}

static attn_status decode_affix(struct reading *reading, const struct node *node, void *to)
{
    step_text(reading, node, to);
    if (((struct text_span *)to)->length > AFFIX_BYTES_MAX)
        return node_fail(reading, node, ATTN_ERR_TOO_LARGE, "has more than %d bytes", AFFIX_BYTES_MAX);
    return reading->status;
}

static const struct member members[] = {
    {"dropout", refuse_dropout, 0, MEMBER_ALWAYS},
    {"unk_token", step_text, offsetof(struct bpe, unk_token), MEMBER_ALWAYS},
    {"continuing_subword_prefix", decode_affix, offsetof(struct bpe, continuing_subword_prefix), MEMBER_ALWAYS},
    {"end_of_word_suffix", decode_affix, offsetof(struct bpe, end_of_word_suffix), MEMBER_ALWAYS},
    {"fuse_unk", node_decode_bool, offsetof(struct bpe, fuse_unk), MEMBER_ALWAYS},
    {"byte_fallback", node_decode_bool, offsetof(struct bpe, byte_fallback), MEMBER_ALWAYS},
    {"ignore_merges", node_decode_bool, offsetof(struct bpe, ignore_merges), MEMBER_ALWAYS},
    {"merges", step_ignored, 0, MEMBER_ALWAYS},
};

static attn_status load(struct loading *loading, const struct node *node, const void **model)
{
    struct bpe *bpe = attn_arena_take_zeroed(loading->reading.arena, 1, sizeof *bpe);
    if (bpe == NULL)
        return node_fail_memory(&loading->reading, node);
    bpe->continuing_subword_prefix = bpe->end_of_word_suffix = text_span_of("");
    if (node_decode_members(&loading->reading, node, members, ARRAY_LENGTH(members), bpe) != ATTN_OK)
        return loading->reading.status;
    bpe->unknown = model_find_token(loading, bpe->unk_token);
    model_find_bytes(loading->vocabulary, &bpe->bytes);
    *model = bpe;
    const struct node list = node_member(node, "merges");
    return merges_load(loading, &list, bpe->continuing_subword_prefix.length, &bpe->merges);
}

/* ---- a word ---- */

/* A part of the word. Those that were merged into the one before have length 0. */
struct symbol {
    uint32_t id;
    uint32_t previous, next; /* NOWHERE at the ends */
    uint32_t bytes;
};

/* A merge of the symbol at a place with the next one; rank << 32 | place. */
struct candidate {
    uint64_t order;
    uint32_t id;
};

struct word {
    struct model_run *run;
    const struct bpe *bpe;
    struct symbol *symbols;
    size_t count;
    struct candidate *heap;
    size_t heap_count;
};

static void add_symbol(struct word *word, uint32_t id, size_t bytes)
{
    struct model_run *run = word->run;
    if (!draft_grow(run->draft, &run->buffers[0], &run->buffer_capacities[0], word->count + 1, sizeof *word->symbols))
        return;
    word->symbols = run->buffers[0];
    const uint32_t place = (uint32_t)word->count++;
    word->symbols[place] = (struct symbol){id, place > 0 ? place - 1 : NOWHERE, NOWHERE, (uint32_t)bytes};
    if (place > 0)
        word->symbols[place - 1].next = place;
}

static void add_candidate(struct word *word, uint32_t place)
{
    struct model_run *run = word->run;
    const uint32_t next = word->symbols[place].next;
    const struct merge *merge =
        next != NOWHERE ? merges_find(&word->bpe->merges, word->symbols[place].id, word->symbols[next].id) : NULL;
    if (merge == NULL ||
        !draft_grow(run->draft, &run->buffers[1], &run->buffer_capacities[1], word->heap_count + 1, sizeof *word->heap))
        return;
    word->heap = run->buffers[1];
    const struct candidate candidate = {(uint64_t)merge->rank << 32 | place, merge->id};
    size_t i = word->heap_count++;
    for (; i > 0 && word->heap[(i - 1) / 2].order > candidate.order; i = (i - 1) / 2)
        word->heap[i] = word->heap[(i - 1) / 2];
    word->heap[i] = candidate;
}

static struct candidate take_first(struct word *word)
{
    const struct candidate first = word->heap[0], last = word->heap[--word->heap_count];
    size_t i = 0;
    for (size_t child = 1; child < word->heap_count; child = 2 * i + 1) {
        child += child + 1 < word->heap_count && word->heap[child + 1].order < word->heap[child].order;
        if (word->heap[child].order >= last.order)
            break;
        word->heap[i] = word->heap[child];
        i = child;
    }
    word->heap[i] = last;
    return first;
}

/* A candidate is out of date when its symbols have changed, unless they still merge to the same token. */
static void merge_candidate(struct word *word, struct candidate candidate)
{
    const uint32_t place = (uint32_t)candidate.order;
    struct symbol *left = &word->symbols[place];
    if (left->bytes == 0 || left->next == NOWHERE)
        return;
    struct symbol *right = &word->symbols[left->next];
    const struct merge *merge = merges_find(&word->bpe->merges, left->id, right->id);
    if (merge == NULL || merge->id != candidate.id)
        return;
    left->id = candidate.id;
    left->bytes += right->bytes;
    left->next = right->next;
    right->bytes = 0;
    if (left->next != NOWHERE)
        word->symbols[left->next].previous = place;
    const uint32_t previous = left->previous;
    if (previous != NOWHERE)
        add_candidate(word, previous);
    add_candidate(word, place);
}

static void merge_all(struct word *word)
{
    for (uint32_t place = 0; place < word->count && !draft_stops(word->run->draft, 8); place++)
        add_candidate(word, place);
    while (word->heap_count > 0 && !draft_stops(word->run->draft, 8))
        merge_candidate(word, take_first(word));
}

/* ---- characters ---- */

/* The bytes that no token stands for; with fuse_unk several characters become one unknown token. */
struct unknown {
    size_t bytes; /* 0: none */
};

static void flush(struct word *word, struct unknown *unknown)
{
    if (unknown->bytes > 0)
        add_symbol(word, word->bpe->unknown, unknown->bytes);
    unknown->bytes = 0;
}

/* text[0 .. length) is the character with its prefix and suffix, bytes is the length without them. */
static void add_character(struct word *word, const char *text, size_t length, size_t bytes, struct unknown *unknown)
{
    const struct bpe *bpe = word->bpe;
    const uint32_t id = vocabulary_find(word->run->vocabulary, text, length);
    if (id != VOCABULARY_NONE) {
        flush(word, unknown);
        add_symbol(word, id, bytes);
    } else if (bpe->byte_fallback && model_has_bytes(&bpe->bytes, text, length)) {
        for (size_t i = 0; i < length; i++)
            add_symbol(word, bpe->bytes.ids[(unsigned char)text[i]], 1);
    } else if (bpe->unk_token.at != NULL) {
        if (bpe->unknown == VOCABULARY_NONE)
            model_fail_unknown(word->run);
        if (!bpe->fuse_unk)
            flush(word, unknown);
        unknown->bytes += bytes;
    }
}

static void add_characters(struct word *word, const char *text, size_t begin, size_t end)
{
    const struct text_span prefix = word->bpe->continuing_subword_prefix, suffix = word->bpe->end_of_word_suffix;
    char key[2 * AFFIX_BYTES_MAX + 8];
    struct unknown unknown = {0};
    for (size_t at = begin; at < end && !draft_stops(word->run->draft, 1);) {
        const size_t from = at;
        (void)draft_next(word->run->draft, &at);
        size_t length = 0;
        if (from > begin) {
            memcpy(key, prefix.at, prefix.length);
            length = prefix.length;
        }
        memcpy(key + length, text + from, at - from);
        length += at - from;
        if (at == end) {
            memcpy(key + length, suffix.at, suffix.length);
            length += suffix.length;
        }
        add_character(word, key, length, at - from, &unknown);
    }
    flush(word, &unknown);
}

static void tokenize(const void *model, struct model_run *run, size_t begin, size_t end)
{
    const struct bpe *bpe = model;
    const char *text = run->draft->text.bytes;
    const uint32_t whole =
        bpe->ignore_merges ? vocabulary_find(run->vocabulary, text + begin, end - begin) : VOCABULARY_NONE;
    if (whole != VOCABULARY_NONE) {
        model_add_token(run, (struct model_token){.id = whole, .begin = (uint32_t)begin, .end = (uint32_t)end});
        return;
    }
    struct word word = {.run = run, .bpe = bpe};
    add_characters(&word, text, begin, end);
    merge_all(&word);
    size_t at = begin;
    for (uint32_t i = 0; i < word.count && !draft_stops(run->draft, 1); i++) {
        const struct symbol *symbol = &word.symbols[i];
        const size_t next = at + symbol->bytes < end ? at + symbol->bytes : end;
        if (symbol->bytes > 0)
            model_add_token(run, (struct model_token){.id = symbol->id,
                                                      .begin = (uint32_t)(at < next ? at : next - 1),
                                                      .end = (uint32_t)next,
                                                      .is_unknown = symbol->id == bpe->unknown});
        at = next;
    }
}

static struct text_span suffix_of(const void *model)
{
    return ((const struct bpe *)model)->end_of_word_suffix;
}

const struct model_kind model_bpe = {"BPE", load, tokenize, suffix_of};
