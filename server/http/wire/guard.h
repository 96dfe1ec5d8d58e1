/*
 * guard.h: refuses requests that a strict HTTP/1.1 server refuses (RFC 9112), as far as the HTTP library shows them.
 *
 * The library of Debian 12 accepts much of what request smuggling needs: two lengths, a length beside chunks, a space
 * before the colon. A proxy in front may read such a request in another way than we do. So the request is refused and
 * its connection is closed. framing.c checks the lines themselves. The library does not show mistakes in the framing of
 * chunks, so the connection is closed after every chunked body.
 */
#ifndef HTTP_WIRE_GUARD_H
#define HTTP_WIRE_GUARD_H

#include <microhttpd.h>
#include <stdint.h>

#include "base/text.h"
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

/*
 * ---- framing.c ----
 *
 * Checks how the lines of a header were framed on the wire, for versions of the library that accept too
 * much.
 *
 * Debian 12 has such a version (0.9.75). Remove framing.c when no supported system has a version below 1.0 any more.
 */

/* The first version of the library, in the form of MHD_VERSION, that checks the lines of a header itself. */
enum { FRAMING_IS_THE_LIBRARYS = 0x01000000 };

/*
 * Returns NULL, or a sentence that says what is wrong with the lines of the header: an end of line without a carriage
 * return, a NUL, a line without a name, a folded line, or two spaces in the first line. library is MHD_VERSION; from
 * FRAMING_IS_THE_LIBRARYS on, the result is always NULL. method and version are the arguments of the handler. target is
 * the one that the library showed before it parsed the target.
 */
const char *framing_refuses(uint32_t library, struct MHD_Connection *connection, const char *method, const char *target,
                            const char *version);

/*
 * The same in steps, over a header that was parsed in place and begins at method: begin, then step over each field in
 * the order of the lines, then end. framing_end returns the first mistake. A struct framing is plain data.
 */
struct framing {
    const char *at, *end; /* the first byte that was not checked yet; the end of the header */
    const char *refusal;
};

void framing_begin(struct framing *framing, size_t header_bytes, const char *method, const char *target,
                   const char *version);
void framing_step_over(struct framing *framing, struct text_span name, struct text_span value);
const char *framing_end(const struct framing *framing);

#endif
