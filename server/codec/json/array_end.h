/* array_end.h: finds the end of a JSON array, at several gigabytes per second. */
#ifndef CODEC_JSON_ARRAY_END_H
#define CODEC_JSON_ARRAY_END_H

#include <stddef.h>

#include "codec/bytes/pace.h"

/*
 * text[0] must be '['. Returns the byte after the ']' that closes it, and counts the commas of the array outside of
 * strings. Returns NULL when the text ends before, or when pace stops the search. Only brackets are matched; the reader
 * of the array checks whether it is JSON.
 */
const char *array_end_find(const char *text, const char *end, struct pace *pace, size_t *commas);

#endif
