/* wire.h: what a request says about who sent it and what for: address, connection, target, trace. */
#ifndef HTTP_WIRE_WIRE_H
#define HTTP_WIRE_WIRE_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "base/network.h"
#include "base/text.h"

/* ---- peer.c: the address that a request comes from, as the log has it ---- */

enum { CLIENT_TEXT = INET6_ADDRSTRLEN };

/*
 * Writes the address of the peer, or, behind proxies of the list trusted, the last hop of X-Forwarded-For that is none of
 * them. False: the library does not know it.
 */
bool client_address(struct MHD_Connection *mhd, const char *trusted, char text[CLIENT_TEXT]);

/* What the system says about the other end of a TCP connection. */
enum peer_presence { PEER_PRESENT, PEER_HALF_CLOSED, PEER_GONE };

struct peer {
    enum peer_presence presence;
    uint64_t taken_bytes; /* the bytes that the peer has acknowledged on this connection */
    bool has_all;         /* the peer has acknowledged all sent bytes */
    bool has_no_room;     /* the peer's window is full, and more bytes wait */
};

/* A client that closed its socket looks like a client that only ended its sending, until it resets the connection. */
struct peer peer_of(int fd);
/*
 * The bytes that the socket took so far, including headers and the overhead of TLS. 0 when the system cannot tell. The
 * library says whether an answer was sent whole, but not how much of a broken answer was sent.
 */
uint64_t peer_written_bytes(int fd);

/* ---- target.c: splits the request target into path and query, as the client wrote it, without decoding ---- */

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

/*
 * ---- trace.c ----
 *
 * The place of a request in a distributed trace (W3C Trace Context, header field traceparent).
 *
 *     00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
 *     version, trace id, id of the caller's span, flags
 *
 * A request with a valid traceparent gets a span of its own, a child of the caller's span, in the log and in the
 * answer. A request without a valid one is not traced, as the standard allows for servers that do not sample.
 */

enum { TRACE_ID_DIGITS = 32, TRACE_SPAN_DIGITS = 16, TRACE_PARENT_TEXT = 56 };

struct trace {
    char id[TRACE_ID_DIGITS + 1]; /* "": not traced */
    char parent[TRACE_SPAN_DIGITS + 1], span[TRACE_SPAN_DIGITS + 1], flags[3];
};

/* field is NULL when the request has no traceparent. random becomes the id of our span. False: not traced. */
bool trace_begin(struct trace *trace, const char *field, uint64_t random);
/* Writes the traceparent of the answer: the trace with our span. Returns text. */
const char *trace_write(const struct trace *trace, char text[TRACE_PARENT_TEXT]);

/* Adds the fields of the trace to a line of the log, if there is a trace. */
void trace_log(const struct trace *trace, struct log_line *line);

#endif
