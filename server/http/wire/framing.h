/*
 * framing.h: how the header of a request lay on the wire, for versions of the library that read it too kindly.
 */
#ifndef HTTP_WIRE_FRAMING_H
#define HTTP_WIRE_FRAMING_H

#include <microhttpd.h>
#include <stdint.h>

#include "base/text.h"

/* The version of the library, as MHD_VERSION has it, from which on it looks after the lines of a header itself. */
enum { FRAMING_IS_THE_LIBRARYS = 0x01000000 };

/*
 * NULL, or the sentence that says what is wrong with the lines of the header: an end of line without a carriage return,
 * a NUL, a line without a name, a folded line, two spaces in the first line. library is MHD_VERSION; from
 * FRAMING_IS_THE_LIBRARYS on this is always NULL. method and version are those the handler was called with, target is
 * what the library showed before it took it apart.
 */
const char *framing_refuses(uint32_t library, struct MHD_Connection *connection, const char *method, const char *target,
                            const char *version);

/*
 * The same in steps, over a header that was taken apart in place and begins at method: begin, step over each field in
 * the order of the lines, end, which gives the first thing that is wrong. A struct framing is plain data.
 */
struct framing {
    const char *at, *end; /* how far it has been looked at; behind its last byte */
    const char *refusal;
};

void framing_begin(struct framing *framing, size_t header_bytes, const char *method, const char *target,
                   const char *version);
void framing_step_over(struct framing *framing, struct text_span name, struct text_span value);
const char *framing_end(const struct framing *framing);

#endif
