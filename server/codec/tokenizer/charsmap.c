/*
 * charsmap.c: the table of sentencepiece's normalization rules.
 *
 *     uint32 bytes of the trie | the trie, a double array of darts-clone (uint32 units) | texts, each ended by a NUL
 *
 * The value of a key is the offset of its text. Hugging Face's reader applies, to a grapheme of less than six bytes, the
 * rule of the shortest key that the grapheme begins with; so do we. With "longest", the longest key counts, as in
 * sentencepiece.
 */
#include "codec/tokenizer/parts.h"

#include <string.h>

#include "codec/bytes/base64.h"
#include "codec/bytes/utf8.h"
#include "codec/tokenizer/text/unicode.h"

enum { GRAPHEME_BYTES = 6 /* longer ones are replaced character by character */ };

struct charsmap {
    const unsigned char *units; /* little endian, unaligned */
    size_t unit_count;
    const char *texts; /* ends in a NUL */
    size_t texts_bytes;
};

static uint32_t read_unit(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* ---- darts-clone ---- */

/* A unit beyond the array is one that has no label and no leaf. */
static uint32_t unit_at(const struct charsmap *map, size_t place)
{
    return place < map->unit_count ? read_unit(map->units + 4 * place) : UINT32_C(1) << 31;
}

static size_t offset_of(uint32_t unit)
{
    return (size_t)(unit >> 10) << ((unit & (UINT32_C(1) << 9)) >> 6);
}

/*
 * The text for the shortest key that text[0 .. length) begins with, or the longest, and how many bytes the key has; at is
 * NULL when there is none.
 */
static struct text_span find(const struct charsmap *map, const char *text, size_t length, bool longest, size_t *taken)
{
    struct text_span found = {NULL, 0};
    size_t place = offset_of(unit_at(map, 0));
    for (size_t i = 0; i < length; i++) {
        const unsigned char c = (unsigned char)text[i];
        place ^= c;
        const uint32_t unit = unit_at(map, place);
        if ((unit & (UINT32_C(1) << 31 | 0xFF)) != c)
            break;
        place ^= offset_of(unit);
        if ((unit >> 8 & 1) == 0)
            continue;
        const size_t at = unit_at(map, place) & 0x7FFFFFFF;
        if (at >= map->texts_bytes)
            break;
        found = (struct text_span){map->texts + at, strlen(map->texts + at)};
        *taken = i + 1;
        if (!longest)
            break;
    }
    return found;
}

/* ---- loading ---- */

/* Each offset is the start of a character or text. */
static bool are_offsets_valid(const struct charsmap *map)
{
    for (size_t i = 0; i < map->unit_count; i++) {
        const uint32_t unit = unit_at(map, i);
        if ((unit >> 31) == 0)
            continue;
        const size_t at = unit & 0x7FFFFFFF;
        if (at < map->texts_bytes && !utf8_begins(map->texts[at]))
            return false;
    }
    return true;
}

attn_status charsmap_decode(struct reading *reading, const struct node *node, void *to)
{
    struct text_span text;
    size_t length = 0, bad = 0;
    struct pace pace = pace_begin(NULL);
    if (!node_string(reading, node, &text.at, &text.length))
        return node_fail_type(reading, node, "a string in base64");
    if (text.length == 0)
        return ATTN_OK;
    struct charsmap *map = attn_arena_take(reading->arena, 1, sizeof *map);
    const bool is_possible = base64_decoded_length(text.at, text.length, &length) && length >= 8;
    char *bytes = is_possible ? attn_arena_take(reading->arena, length + 1, 1) : NULL;
    if (map == NULL || (is_possible && bytes == NULL))
        return node_fail_memory(reading, node);
    if (!is_possible || !base64_decode(bytes, text.at, text.length, &pace, &bad))
        return node_fail(reading, node, ATTN_ERR_SYNTAX, "is not base64 of a table");
    bytes[length] = '\0';
    const size_t trie_bytes = read_unit((const unsigned char *)bytes) / 4 * (size_t)4;
    if (trie_bytes == 0 || trie_bytes > length - 4)
        return node_fail(reading, node, ATTN_ERR_VALUE, "is a table whose trie has %zu bytes of %zu", trie_bytes,
                         length);
    *map = (struct charsmap){.units = (const unsigned char *)bytes + 4,
                             .unit_count = trie_bytes / 4,
                             .texts = bytes + 4 + trie_bytes,
                             .texts_bytes = length - 4 - trie_bytes};
    if (!utf8_is_valid(map->texts, map->texts_bytes) || !are_offsets_valid(map))
        return node_fail(reading, node, ATTN_ERR_VALUE, "is a table with texts that are not UTF-8");
    *(const struct charsmap **)to = map;
    return ATTN_OK;
}

/* ---- replacing ---- */

/* The last character is held back, because the next one may change how many characters it stands for. */
struct replacing {
    const struct charsmap *map;
    struct draft_transform transform;
    uint32_t last;
    int64_t last_change;
    bool has_last;
};

static void put(struct replacing *replacing, uint32_t c, int64_t change)
{
    if (replacing->has_last)
        draft_transform_put(&replacing->transform, replacing->last, replacing->last_change);
    replacing->last = c;
    replacing->last_change = change;
    replacing->has_last = true;
}

/* Characters beyond those replaced are new. When there are fewer, the last one stands for the rest. */
static void put_text(struct replacing *replacing, struct text_span text, size_t replaced)
{
    const size_t count = utf8_count(text.at, text.length);
    const char *at = text.at;
    for (size_t i = 0; i < count; i++)
        put(replacing, utf8_next(&at), i >= replaced);
    if (count < replaced && replacing->has_last)
        replacing->last_change -= (int64_t)(replaced - count);
}

static void replace_grapheme(struct replacing *replacing, size_t begin, size_t end)
{
    struct draft *draft = replacing->transform.draft;
    const char *bytes = draft->text.bytes;
    size_t taken;
    const struct text_span whole = end - begin < GRAPHEME_BYTES
                                       ? find(replacing->map, bytes + begin, end - begin, false, &taken)
                                       : (struct text_span){NULL, 0};
    if (whole.at != NULL) {
        put_text(replacing, whole, utf8_count(bytes + begin, end - begin));
        return;
    }
    for (size_t at = begin; at < end && !draft_has_failed(draft);) {
        const size_t from = at;
        const uint32_t c = draft_next(draft, &at);
        const struct text_span text = find(replacing->map, bytes + from, at - from, false, &taken);
        if (text.at != NULL)
            put_text(replacing, text, 1);
        else
            put(replacing, c, 0);
    }
}

static void replace_piece(struct draft *draft, const struct piece *piece, const void *options)
{
    struct replacing replacing = {.map = options, .transform = draft_transform_begin(draft, piece)};
    size_t begin = piece->begin, at = begin;
    uint32_t last = draft_next(draft, &at);
    int32_t state = 0;
    while (at < piece->end && !draft_stops(draft, 1)) {
        const size_t here = at;
        const uint32_t c = draft_next(draft, &at);
        if (unicode_breaks(last, c, &state)) {
            replace_grapheme(&replacing, begin, here);
            begin = here;
        }
        last = c;
    }
    replace_grapheme(&replacing, begin, piece->end);
    if (replacing.has_last)
        draft_transform_put(&replacing.transform, replacing.last, replacing.last_change);
}

static void replace_longest(struct draft *draft, const struct piece *piece, const void *options)
{
    struct replacing replacing = {.map = options, .transform = draft_transform_begin(draft, piece)};
    for (size_t at = piece->begin; at < piece->end && !draft_stops(draft, 1);) {
        const char *from = draft->text.bytes + at;
        size_t taken = 0;
        const struct text_span text = find(replacing.map, from, piece->end - at, true, &taken);
        if (text.at == NULL) {
            put(&replacing, draft_next(draft, &at), 0);
            continue;
        }
        put_text(&replacing, text, utf8_count(from, taken));
        at += taken;
    }
    if (replacing.has_last)
        draft_transform_put(&replacing.transform, replacing.last, replacing.last_change);
}

void charsmap_edit(struct draft *draft, const void *options)
{
    const struct charsmap_option *option = options;
    if (option->map != NULL)
        draft_rewrite(draft, option->longest ? replace_longest : replace_piece, option->map);
}
