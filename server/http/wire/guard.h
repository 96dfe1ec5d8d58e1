/*
 * guard.h: what a strict HTTP/1.1 server refuses (RFC 9112), as far as it can be seen from behind the HTTP library.
 *
 * The library of Debian 12 accepts much of what request smuggling is made of: two lengths, a length beside chunks, a
 * space before the colon. A proxy in front may read such a request in another way than we do, so it is refused and the
 * connection closed. framing.h adds what is wrong with the lines themselves. Mistakes within the framing of chunks
 * cannot be seen from here, and therefore a connection is closed after every chunked body.
 */
#ifndef HTTP_WIRE_GUARD_H
#define HTTP_WIRE_GUARD_H

#include <microhttpd.h>
#include <stdint.h>

#include "http/wire/negotiate.h"

/* What the fields of one request say about its framing and its wishes; values belong to the connection. */
struct guard_fields {
    const char *refusal; /* the first field that is wrong in itself, as a sentence; else NULL */
    char repeated[80];   /* the sentence about a field that was sent twice */
    unsigned hosts, content_lengths, transfer_encodings;
    const char *transfer_encoding, *expect, *content_type, *content_encoding, *accept_encoding, *origin, *request_id,
        *asked_method, *json_bytes, *if_match, *if_none_match, *authorization, *api_key, *traceparent, *priority,
        *request_timeout, *host, *fetch_site;
    uint64_t content_length;
    size_t header_bytes; /* from the first line to the empty one */
    struct negotiation accept;
};

void guard_read_fields(struct MHD_Connection *connection, struct guard_fields *fields);
/* NULL, or the sentence that says why the request is refused. */
const char *guard_refuses(const struct guard_fields *fields, const char *method, const char *version);
bool guard_is_chunked(const struct guard_fields *fields);
bool guard_has_body(const struct guard_fields *fields);

#endif
