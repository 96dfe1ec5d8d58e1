/*
 * target.h: the request target as the client wrote it, nothing decoded: path and query.
 */
#ifndef HTTP_WIRE_TARGET_H
#define HTTP_WIRE_TARGET_H

#include "base/text.h"

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
/*
 * Takes the next "name=value" off the front of *query (at first target.query), both still percent-encoded; false when
 * nothing is left. Empty ones are passed over.
 */
bool target_next_parameter(struct text_span *query, struct text_span *name, struct text_span *value);
/* Decodes %XX and + into to, which has room for encoded.length + 1 bytes. False: not valid, or a NUL or control. */
bool target_decode(struct text_span encoded, char *to);

#endif
