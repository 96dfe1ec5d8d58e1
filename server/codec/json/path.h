/* path.h: finds the JSON pointer of a place in JSON text, for errors that a parser reports only by offset. */
#ifndef CODEC_JSON_PATH_H
#define CODEC_JSON_PATH_H

#include <stddef.h>

/*
 * Writes the pointer of the value at text[offset] to to: "/a/0/b". The result is always terminated, and is cut when it
 * does not fit. text[0 .. offset) must be the beginning of valid JSON. Escapes in names stay unchanged. The pointer is
 * empty when the value is the root or lies too deep.
 */
void json_path_at(const char *text, size_t offset, char *to, size_t size);

#endif
