/*
 * framing.h: checks how the lines of a header were framed on the wire, for versions of the library that accept too
 * much.
 *
 * Debian 12 has such a version (0.9.75). Remove this file when no supported system has a version below 1.0 any more.
 */
#ifndef HTTP_WIRE_FRAMING_H
#define HTTP_WIRE_FRAMING_H

#include <microhttpd.h>
#include <stdint.h>

#include "base/text.h"

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
