/*
 * plain.h: a fast parser of plain JSON. Nearly all envelopes are plain. The parser takes a third of jansson's
 * time.
 *
 * Plain JSON has objects, arrays, strings of printable ASCII without escapes, integers of few digits without a sign,
 * true, false and null. jansson parses all other text and all invalid text, because it knows the whole of JSON and
 * words the errors. For plain text both parsers give the same tree.
 */
#ifndef CODEC_JSON_PLAIN_H
#define CODEC_JSON_PLAIN_H

#include <jansson.h>
#include <stddef.h>

/*
 * Returns the tree of text[0 .. length). NULL when the text is not plain, when an object has a name twice, or when
 * memory is short.
 */
json_t *json_plain_load(const char *text, size_t length);

#endif
