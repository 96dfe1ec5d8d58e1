/*
 * json_path.h: the JSON pointer of a place in JSON text, for errors that a parser reports by offset alone.
 */
#ifndef CODEC_JSON_JSON_PATH_H
#define CODEC_JSON_JSON_PATH_H

#include <stddef.h>

/*
 * Writes the pointer of the value at text[offset] into to (always terminated, cut off when it does not fit): "/a/0/b".
 * text[0 .. offset) must be the beginning of valid JSON. Escapes in names stay as they are written. Empty when the
 * value is the root or lies too deep.
 */
void json_path_at(const char *text, size_t offset, char *to, size_t size);

#endif
