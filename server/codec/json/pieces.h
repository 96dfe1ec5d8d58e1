/*
 * pieces.h: reads a long list or object of JSON in pieces, so that its whole tree is never in memory.
 *
 * Nearly all items of a vocabulary are plain, and are read without a tree, in a tenth of jansson's time. jansson reads the
 * rest of a piece from the first item on that is not plain or not taken: it knows the whole of JSON, and words the errors.
 * So the text is checked as strictly as in one piece, but for names that an object has twice.
 */
#ifndef CODEC_JSON_PIECES_H
#define CODEC_JSON_PIECES_H

#include "base/text.h"
#include "codec/json/tree.h"

/* The text of a list or object, found by quotes and brackets alone, and how many items it has by its commas. */
struct json_collection {
    struct text_span text; /* at NULL: it is none */
    size_t items;
};

struct json_collection json_collection_of(struct text_span text);
/*
 * Finds the lists and objects that an object has under the names. text.at NULL: the value is another one, or there is none,
 * or an escape is in its name, or the text is not JSON.
 */
void json_text_find(struct text_span object, const char *const *names, size_t count, struct json_collection *found);

/*
 * The text with each number that Python writes and jansson does not read as a string: NaN, Infinity, -Infinity, and
 * integers of 19 digits or more. *quoted is the text itself when it has none, else a copy in arena. False: there is no
 * memory.
 */
bool json_text_quote_numbers(struct text_span text, attn_arena *arena, struct text_span *quoted);

/*
 * An item of one of these forms: "a": 3 of an object; "a", ["a", "b"] or ["a", -3.5] of a list. Strings have no U+0000 and
 * no surrogates, and a NUL stands behind them. They end with the call.
 */
struct json_item {
    struct text_span text;   /* the name of a member, the string, or the first string */
    struct text_span second; /* at NULL: there is none */
    bool has_number;         /* number is finite */
    double number;
};

/* How items are taken, in their order. */
struct json_taker {
    /* False: this item needs jansson, or is wrong. It is taken again, with the rest of its piece, by piece. */
    bool (*item)(void *context, const struct json_item *item, size_t index);
    /* A list or an object of some items, of which the first has the index. */
    attn_status (*piece)(void *context, const json_t *piece, size_t index);
};

/*
 * Has all items of a list or an object taken, until a call fails. scratch lends memory. If another program writes to the
 * text and there are more items now, they are refused. Returns what the failed call returned, or ATTN_ERR_NO_MEMORY,
 * ATTN_ERR_CANCELLED, or ATTN_ERR_SYNTAX with the error of json_tree_load, whose position is that in the text. Without such
 * an error, error->line is 0.
 */
ATTN_MUST_CHECK attn_status json_pieces_each(const struct json_collection *collection, attn_arena *scratch,
                                             const struct json_taker *taker, void *context, json_error_t *error,
                                             attn_error *err);

#endif
