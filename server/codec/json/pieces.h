/*
 * pieces.h: reads a long list or object of JSON in pieces, so that its whole tree is never in memory.
 *
 * The tree of a piece is small. jansson reads every piece, so the text is checked as strictly as in one piece, but for
 * names that an object has twice in different pieces.
 */
#ifndef CODEC_JSON_PIECES_H
#define CODEC_JSON_PIECES_H

#include "base/text.h"
#include "codec/json/tree.h"

/*
 * The text of the list or object that an object has under a name, found by quotes and brackets alone. at NULL: the value
 * is another one, or there is none, or an escape is in its name, or the text is not JSON.
 */
struct text_span json_text_find(struct text_span object, const char *name);
/* How many items a list or an object has, by its commas. */
size_t json_text_items(struct text_span collection);

/*
 * The text with each number that Python writes and jansson does not read as a string: NaN, Infinity, -Infinity, and
 * integers of 19 digits or more. *quoted is the text itself when it has none, else a copy in arena. False: there is no
 * memory.
 */
bool json_text_quote_numbers(struct text_span text, attn_arena *arena, struct text_span *quoted);

/* Called for each piece: a list or an object of some items, of which the first has the index. */
typedef attn_status json_piece_function(void *context, const json_t *piece, size_t index);

/*
 * Calls each for all pieces of the text of a list or an object, until a call fails. scratch lends memory. items is what
 * json_text_items counted: if another program writes to the text and there are more now, they are refused. Returns what
 * the failed call returned, or ATTN_ERR_NO_MEMORY, or ATTN_ERR_SYNTAX with the error of json_tree_load, whose position is
 * that in the text. Without such an error, error->line is 0.
 */
ATTN_MUST_CHECK attn_status json_pieces_each(struct text_span collection, size_t items, attn_arena *scratch,
                                             json_piece_function *each, void *context, json_error_t *error,
                                             attn_error *err);

#endif
