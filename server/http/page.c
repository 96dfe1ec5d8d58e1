/*
 * page.c: GET /: the visualizer for browsers, an index in JSON for programs.
 *
 * Embedded from a C file rather than from one in assembly: the compiler then says for itself that the stack is not
 * executable. PAGE_FOLDER comes from the Makefile: where scripts/bundle_page.sh has put its files.
 */
#include "http/page.h"

#include <string.h>

#include "http/reply.h"
#include "http/request.h"

__asm__(".pushsection .rodata\n"
        "page_plain_begin:\n"
        ".incbin \"" PAGE_FOLDER "/page.html\"\n"
        "page_plain_end:\n"
        "page_gzip_begin:\n"
        ".incbin \"" PAGE_FOLDER "/page.html.gz\"\n"
        "page_gzip_end:\n"
        "page_policy:\n"
        ".incbin \"" PAGE_FOLDER "/page.policy\"\n"
        ".byte 0\n"
        "page_plain_tag:\n"
        ".incbin \"" PAGE_FOLDER "/page.tag\"\n"
        ".byte 0\n"
        "page_gzip_tag:\n"
        ".incbin \"" PAGE_FOLDER "/page.html.gz.tag\"\n"
        ".byte 0\n"
        ".popsection\n");

#define EMBEDDED extern const char __attribute__((visibility("hidden")))
EMBEDDED page_plain_begin[];
EMBEDDED page_plain_end[];
EMBEDDED page_gzip_begin[];
EMBEDDED page_gzip_end[];
EMBEDDED page_policy[];
EMBEDDED page_plain_tag[];
EMBEDDED page_gzip_tag[];

#define GUARDED                                                                                                        \
    {"Cache-Control", "no-cache"}, {"Content-Security-Policy", page_policy}, {"X-Content-Type-Options", "nosniff"},    \
        {"X-Frame-Options", "DENY"}, {"Referrer-Policy", "no-referrer"},                                               \
    {                                                                                                                  \
        "Cross-Origin-Opener-Policy", "same-origin"                                                                    \
    }

static const struct reply_field plain_fields[] = {GUARDED, {"ETag", page_plain_tag}, {NULL, NULL}};
static const struct reply_field gzip_fields[] = {GUARDED, {"ETag", page_gzip_tag}, {NULL, NULL}};

struct known_page {
    const char *tag; /* of what we would send */
    bool is_known;   /* If-None-Match names it */
};

/* Weak comparison (RFC 9110, section 13.1.2). */
static void read_tags(struct known_page *known, const char *value)
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
    if (value != NULL && text_equal_fold(text_span_of(name), "If-None-Match"))
        read_tags(cls, value);
    return MHD_YES;
}

static void answer_html(struct request *request)
{
    const struct text_span plain = {page_plain_begin, (size_t)(page_plain_end - page_plain_begin)};
    const struct text_span gzip = {page_gzip_begin, (size_t)(page_gzip_end - page_gzip_begin)};
    const enum coding coding = negotiate_coding(request->fields.accept_encoding, CODING_BIT(CODING_GZIP));
    const bool is_gzip = coding == CODING_GZIP;
    struct known_page known = {is_gzip ? page_gzip_tag : page_plain_tag, false};
    MHD_get_connection_values(request->connection, MHD_HEADER_KIND, read_tag_field, &known);

    reply_constant(request, MEDIA_HTML, is_gzip ? gzip : plain);
    request->reply.coding = coding;
    request->reply.fields = is_gzip ? gzip_fields : plain_fields;
    if (known.is_known) {
        request->reply.status = MHD_HTTP_NOT_MODIFIED;
        request->reply.content_type = NULL;
    }
}

void page_answer(struct request *request)
{
    if (request->answer_media == MEDIA_HTML)
        answer_html(request);
    else
        health_write_index(reply_begin(request, MHD_HTTP_OK, MEDIA_JSON));
    request->reply.is_negotiated = true;
}
