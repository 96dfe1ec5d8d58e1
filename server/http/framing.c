/*
 * framing.c: how the header of a request lay on the wire.
 *
 * libmicrohttpd 0.9.75 ends a line at a bare line feed, cuts a value at a NUL, and takes a line without a name for the
 * end of the header, so that what follows is read as another request. None of it can be seen in the fields. But the
 * library takes a header apart in place: from method on, REQUEST_HEADER_SIZE bytes hold the whole header, with NUL
 * where its separators were. So what lies between two fields can be looked at, and must be one end of line and nothing
 * else. A line of ":" or NUL alone cannot be told from the right end of a header, whose four bytes are NUL then too,
 * where it makes four bytes with the ends of lines around it: CR LF ":" LF, LF ":" CR LF. Version 1.0 refuses them.
 */
#include "http/framing.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#if MHD_VERSION >= 0x01000000

const char *framing_refuses(struct MHD_Connection *connection, const char *method, const char *target,
                            const char *version)
{
    (void)connection;
    (void)method;
    (void)target;
    (void)version;
    return NULL;
}

#else

static const char not_crlf[] = "a line of the header does not end in CR LF, or holds a NUL or no name";

/* The header, and how far it has been looked at. */
struct header_walk {
    const char *at, *end;
    const char *refusal;
};

/* Bytes that stood for the end of a line: NUL now, or what was there. Blanks before it belong to the value. */
static bool is_line_end(const char *from, const char *to, size_t line_ends)
{
    const size_t bytes = 2 * line_ends;
    assert(to >= from);
    if ((size_t)(to - from) < bytes)
        return false;
    for (const char *c = from; c < to; c++) {
        const bool is_blank = *c == ' ' || *c == '\t';
        const bool is_end = *c == '\0' || *c == '\r' || *c == '\n';
        if (to - c > (ptrdiff_t)bytes ? !is_blank : !is_end)
            return false;
    }
    return true;
}

static bool is_within(const struct header_walk *walk, const char *text, size_t length)
{
    return text >= walk->at && text < walk->end && length <= (size_t)(walk->end - text);
}

static enum MHD_Result step_over(void *cls, enum MHD_ValueKind kind, const char *name, size_t name_length,
                                 const char *value, size_t value_length)
{
    struct header_walk *walk = cls;
    (void)kind;
    assert(value != NULL);
    if (!is_within(walk, name, name_length) || !is_within(walk, value, value_length))
        walk->refusal = "a line of the header is folded"; /* unfolded elsewhere */
    else if (!is_line_end(walk->at, name, 1))
        walk->refusal = not_crlf;
    if (walk->refusal != NULL)
        return MHD_NO;
    walk->at = value + value_length;
    return MHD_YES;
}

const char *framing_refuses(struct MHD_Connection *connection, const char *method, const char *target,
                            const char *version)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    assert(info != NULL); /* the header has been read */
    struct header_walk walk = {.at = method, .end = method + info->header_size};
    if (!is_within(&walk, version, strlen(version)))
        return "the first line must hold method, target and version";
    if (method[strlen(method) + 1] == ' ')
        return "the first line holds more than one space between two words";
    if (strlen(target) != (size_t)(version - method) - strlen(method) - 2)
        return "the first line holds a NUL, or more than one space between two words";
    walk.at = version + strlen(version);
    MHD_get_connection_values_n(connection, MHD_HEADER_KIND, step_over, &walk);
    if (walk.refusal == NULL && !is_line_end(walk.at, walk.end, 2))
        walk.refusal = not_crlf;
    return walk.refusal;
}

#endif
