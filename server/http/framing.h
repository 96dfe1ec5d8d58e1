/*
 * framing.h: how the header of a request lay on the wire, for versions of the library that read it too kindly.
 */
#ifndef HTTP_FRAMING_H
#define HTTP_FRAMING_H

#include <microhttpd.h>

/*
 * NULL, or the sentence that says what is wrong with the lines of the header: an end of line without a carriage return,
 * a NUL, a line without a name, a folded line, two spaces in the first line. Library versions from 1.0 on look after
 * that themselves; for them this is always NULL. method and version are those the handler was called with, target is
 * what the library showed before it took it apart.
 */
const char *framing_refuses(struct MHD_Connection *connection, const char *method, const char *target,
                            const char *version);

#endif
