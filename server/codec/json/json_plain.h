/*
 * json_plain.h: a fast reader of plain JSON, which nearly all envelopes are. It takes a third of the time of jansson.
 *
 * Plain JSON has objects, arrays, strings of printable ASCII without escapes, integers of few digits without a sign,
 * true, false and null. jansson reads all other text, and all text that is wrong: it knows the whole of JSON and words
 * the errors. For plain text both readers give the same tree.
 */
#ifndef CODEC_JSON_JSON_PLAIN_H
#define CODEC_JSON_JSON_PLAIN_H

#include <jansson.h>
#include <stddef.h>

/* The tree of text[0 .. length), or NULL when it is not plain, has a name twice in one object, or memory is short. */
json_t *json_plain_load(const char *text, size_t length);

#endif
