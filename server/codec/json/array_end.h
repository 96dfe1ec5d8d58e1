/*
 * array_end.h: the end of a JSON array, found at several gigabytes a second.
 */
#ifndef CODEC_JSON_ARRAY_END_H
#define CODEC_JSON_ARRAY_END_H

#include <stddef.h>

#include "codec/bytes/pace.h"

/*
 * text[0] is '['. Returns the byte after the ']' that closes it and counts the commas between, strings skipped. NULL
 * when the text ends before, or pace stops. Only brackets are matched; whether the array is JSON, its reader checks.
 */
const char *array_end_find(const char *text, const char *end, struct pace *pace, size_t *commas);

#endif
