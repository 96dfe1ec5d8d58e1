/*
 * target.h: the request target as the client wrote it, nothing decoded: path and query.
 */
#ifndef HTTP_TARGET_H
#define HTTP_TARGET_H

#include "text.h"

struct target {
    struct text_span path;  /* "/v1/attention"; "*" for OPTIONS of the whole server */
    struct text_span query; /* behind the question mark; at is NULL when there is none */
};

/*
 * Takes origin form ("/path?query"), absolute form ("http://host/path?query", whose host is not looked at) and "*"
 * apart. The result points into raw. NULL, or why it is refused: another form, a fragment, or a byte that no target
 * may hold (controls, spaces, anything beyond ASCII).
 */
const char *target_read(const char *raw, struct target *target);
/* The name of the first parameter of the query, cut to what fits; an empty text when there is none. */
void target_parameter(const struct target *target, char *name, size_t size);

#endif
