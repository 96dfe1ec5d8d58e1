/*
 * embedded.c: files that are part of the program, plain and gzipped, as answers.
 */
#include "http/embedded.h"

#include <string.h>

#include "http/request.h"

struct known_tag {
    const char *tag; /* of what we would send */
    bool is_known;   /* If-None-Match names it */
};

/* Weak comparison (RFC 9110, section 13.1.2). */
static void read_tags(struct known_tag *known, const char *value)
{
    struct text_span rest = text_span_of(value), tag;
    while (text_next(&rest, ',', &tag)) {
        if (tag.length > 2 && strncmp(tag.at, "W/", 2) == 0)
            tag = (struct text_span){tag.at + 2, tag.length - 2};
        known->is_known |= text_equal(tag, "*") || text_equal(tag, known->tag);
    }
}

/* The field may stand there several times. */
static enum MHD_Result read_tag_field(void *cls, enum MHD_ValueKind kind, const char *name, const char *value)
{
    (void)kind;
    if (value != NULL && text_equal_fold(text_span_of(name), MHD_HTTP_HEADER_IF_NONE_MATCH))
        read_tags(cls, value);
    return MHD_YES;
}

void embedded_answer(struct request *request, enum media media, const struct embedded *plain,
                     const struct embedded *gzip)
{
    const enum coding coding = negotiate_coding(request->fields.accept_encoding, CODING_BIT(CODING_GZIP));
    const struct embedded *chosen = coding == CODING_GZIP ? gzip : plain;
    struct known_tag known = {chosen->tag, false};
    if (chosen->tag != NULL)
        MHD_get_connection_values(request->connection, MHD_HEADER_KIND, read_tag_field, &known);

    reply_constant(request, media, chosen->text);
    request->reply.coding = coding;
    request->reply.fields = chosen->fields;
    request->reply.is_negotiated = true;
    if (known.is_known) {
        request->reply.status = MHD_HTTP_NOT_MODIFIED;
        request->reply.content_type = NULL;
    }
}
