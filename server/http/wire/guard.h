/*
 * guard.h: refuses requests that a strict HTTP/1.1 server refuses (RFC 9112), as far as the HTTP library shows them.
 *
 * The library of Debian 12 accepts much of what request smuggling needs: two lengths, a length beside chunks, a space
 * before the colon. A proxy in front may read such a request in another way than we do. So the request is refused and
 * its connection is closed. framing.h checks the lines themselves. The library does not show mistakes in the framing of
 * chunks, so the connection is closed after every chunked body.
 */
#ifndef HTTP_WIRE_GUARD_H
#define HTTP_WIRE_GUARD_H

#include <microhttpd.h>
#include <stdint.h>

#include "http/wire/negotiate.h"

/*
 * The fields of one request that decide its framing and its answer. The library owns the values until the connection
 * ends.
 */
struct guard_fields {
    const char *refusal; /* a sentence about the first invalid field; NULL: all are valid */
    char repeated[80];   /* the sentence in refusal about a field that was sent twice */
    unsigned hosts, content_lengths, transfer_encodings;
    const char *transfer_encoding, *expect, *content_type, *content_encoding, *accept_encoding, *origin, *request_id,
        *asked_method, *json_bytes, *if_match, *if_none_match, *authorization, *api_key, *traceparent, *priority,
        *request_timeout, *host, *fetch_site;
    uint64_t content_length;
    size_t header_bytes; /* from the first line to the empty line */
    struct negotiation accept;
};

void guard_read_fields(struct MHD_Connection *connection, struct guard_fields *fields);
/* Returns NULL, or a sentence that says why the request is refused. */
const char *guard_refuses(const struct guard_fields *fields, const char *method, const char *version);
bool guard_is_chunked(const struct guard_fields *fields);
bool guard_has_body(const struct guard_fields *fields);

#endif
