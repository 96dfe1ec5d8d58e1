/* target.h: splits the request target into path and query, as the client wrote it, without decoding. */
#ifndef HTTP_WIRE_TARGET_H
#define HTTP_WIRE_TARGET_H

#include "base/text.h"

struct target {
    struct text_span path;  /* "/v1/attention"; "*" for OPTIONS of the whole server */
    struct text_span query; /* the text after the question mark; at is NULL without a question mark */
};

/*
 * Parses origin form ("/path?query"), absolute form ("http://host/path?query"; the host is ignored) and "*". The result
 * points into raw. Returns NULL, or a sentence that says why the target is refused: it has another form or a fragment,
 * or it holds a control, a space or a byte beyond ASCII.
 */
const char *target_read(const char *raw, struct target *target);
/*
 * Removes the next "name=value" from the front of *query, which begins as target.query. Name and value stay
 * percent-encoded. Empty parameters are skipped. False when nothing is left.
 */
bool target_next_parameter(struct text_span *query, struct text_span *name, struct text_span *value);
/*
 * Decodes %XX and + into to, which has room for encoded.length + 1 bytes. False when encoded is not valid or holds a
 * control, NUL included.
 */
bool target_decode(struct text_span encoded, char *to);

#endif
