/*
 * json_plain.h: the plain JSON that nearly all envelopes are, read a third as expensively as the library reads it.
 *
 * Plain is: objects, arrays, strings of printable ASCII without escapes, integers of few digits without a sign, true,
 * false, null. Whatever is anything else, or wrong, is left to the library, which knows all of JSON and words what is
 * wrong with it. So this only ever answers what the library would.
 */
#ifndef CODEC_JSON_JSON_PLAIN_H
#define CODEC_JSON_JSON_PLAIN_H

#include <jansson.h>
#include <stddef.h>

/* The tree of text[0 .. length), or NULL when it is not plain, has a name twice in one object, or memory is short. */
json_t *json_plain_load(const char *text, size_t length);

#endif
