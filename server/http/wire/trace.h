/*
 * trace.h: the place of a request in a distributed trace (W3C Trace Context, header field traceparent).
 *
 *     00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
 *     version, trace id, id of the caller's span, flags
 *
 * A request with a valid traceparent gets a span of its own, a child of the caller's span, in the log and in the
 * answer. A request without a valid one is not traced, as the standard allows for servers that do not sample.
 */
#ifndef HTTP_WIRE_TRACE_H
#define HTTP_WIRE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"

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
