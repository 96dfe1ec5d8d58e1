/*
 * framing.c: checks how the header of a request was framed on the wire.
 *
 * libmicrohttpd 0.9.75 ends a line at a bare line feed, and cuts a value at a NUL. It takes a line without a name for
 * the end of the header, and reads the lines after it as another request. The fields show none of this. But the library
 * parses a header in place: from method on, REQUEST_HEADER_SIZE bytes hold the whole header, with NUL in place of its
 * separators. So this file checks the bytes between two fields. They must be exactly one end of line.
 *
 * Some forms cannot be told apart. They have the same length, and either hold NUL already, or the library overwrites
 * them with NUL before any field is visible (get_next_header_line over CR LF and over LF, process_header_line over the
 * colon):
 *
 *     NUL LF                          becomes NUL NUL, like CR LF
 *     CR LF or NUL LF, and then       becomes four NULs, like CR LF CR LF: a line without a name ends the header, and
 *       NUL LF or ":" LF              names are strings, which end at a NUL
 *     LF, and then                    the same
 *       ":" or NUL, CR or NUL, LF
 *     NUL, CR or NUL, LF, and LF      the same
 *     NUL … LF before a request       stands before method and is skipped like an empty line
 *
 * All of these hold a NUL, or a line of ":" alone beside a bare LF. A proxy in front normally reads them as we do. The
 * exception is a proxy that accepts an LF in a value, or a line without a name as a field, and passes it on unchanged.
 * RFC 9110, section 5.5, and RFC 9112, section 2.2, require a proxy to refuse or rewrite such a request. Version 1.0 of
 * the library refuses all of them. tests/fuzz/fuzz_guard.c has the same list, and compares every other accepted request
 * with a strict reader.
 */
#include "http/wire/guard.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static const char not_crlf[] = "a line of the header does not end in CR LF, or holds a NUL or no name";

/*
 * Whether these bytes ended a line on the wire. The library has overwritten some of them with NUL. Blanks before them
 * belong to the value.
 */
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

static bool is_within(const struct framing *framing, const char *text, size_t length)
{
    return text >= framing->at && text < framing->end && length <= (size_t)(framing->end - text);
}

static const char *first_line_refuses(const char *method, const char *target, const char *version)
{
    if (method[strlen(method) + 1] == ' ')
        return "the first line holds more than one space between two words";
    if (strlen(target) != (size_t)(version - method) - strlen(method) - 2)
        return "the first line holds a NUL, or more than one space between two words";
    return NULL;
}

void framing_begin(struct framing *framing, size_t header_bytes, const char *method, const char *target,
                   const char *version)
{
    *framing = (struct framing){.at = method, .end = method + header_bytes};
    if (!is_within(framing, version, strlen(version))) {
        framing->refusal = "the first line must hold method, target and version";
        return;
    }
    framing->refusal = first_line_refuses(method, target, version);
    framing->at = version + strlen(version);
}

void framing_step_over(struct framing *framing, struct text_span name, struct text_span value)
{
    if (framing->refusal != NULL)
        return;
    if (!is_within(framing, name.at, name.length) || !is_within(framing, value.at, value.length))
        framing->refusal = "a line of the header is folded"; /* the library unfolds such lines only in places */
    else if (!is_line_end(framing->at, name.at, 1))
        framing->refusal = not_crlf;
    framing->at = value.at + value.length;
}

const char *framing_end(const struct framing *framing)
{
    if (framing->refusal == NULL && !is_line_end(framing->at, framing->end, 2))
        return not_crlf;
    return framing->refusal;
}

static enum MHD_Result step_over(void *cls, enum MHD_ValueKind kind, const char *name, size_t name_length,
                                 const char *value, size_t value_length)
{
    (void)kind;
    assert(value != NULL); /* every field of a header has a value, which may be empty */
    framing_step_over(cls, (struct text_span){name, name_length}, (struct text_span){value, value_length});
    return MHD_YES;
}

const char *framing_refuses(uint32_t library, struct MHD_Connection *connection, const char *method, const char *target,
                            const char *version)
{
    struct framing framing;
    if (library >= FRAMING_IS_THE_LIBRARYS)
        return NULL;
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    assert(info != NULL); /* the header has been read */
    framing_begin(&framing, info->header_size, method, target, version);
    MHD_get_connection_values_n(connection, MHD_HEADER_KIND, step_over, &framing);
    return framing_end(&framing);
}
