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

/* What both share: a cache must not hand HTML to a program, nor gzip to who cannot read it. */
#define VARIES {"Vary", "Accept, Accept-Encoding"}

#define GUARDED                                                                                                        \
    VARIES, {"Cache-Control", "no-cache"}, {"Content-Security-Policy", page_policy},                                   \
        {"X-Content-Type-Options", "nosniff"}, {"X-Frame-Options", "DENY"}, {"Referrer-Policy", "no-referrer"},        \
        {"Cross-Origin-Opener-Policy", "same-origin"}

static const struct reply_field index_fields[] = {VARIES, {NULL, NULL}};
static const struct reply_field plain_fields[] = {GUARDED, {"ETag", page_plain_tag}, {NULL, NULL}};
static const struct reply_field gzip_fields[] = {
    GUARDED, {"ETag", page_gzip_tag}, {"Content-Encoding", "gzip"}, {NULL, NULL}};

struct visit {
    bool takes_gzip, refuses_gzip; /* by name, or by "*;q=0" */
    bool has_page;                 /* If-None-Match names what we would send */
    const char *tag;
};

static bool is_zero_quality(struct text_span parameters)
{
    struct text_span parameter;
    while (text_next(&parameters, ';', &parameter))
        if (parameter.length > 2 && parameter.at[1] == '=' && (parameter.at[0] | 0x20) == 'q')
            return strspn(parameter.at + 2, "0.") >= parameter.length - 2;
    return false;
}

static void read_encodings(struct visit *visit, const char *value)
{
    struct text_span rest = text_span_of(value), element, name;
    while (text_next(&rest, ',', &element)) {
        if (!text_next(&element, ';', &name))
            continue;
        const bool is_gzip = text_equal_fold(name, "gzip") || text_equal_fold(name, "x-gzip");
        if (is_gzip && is_zero_quality(element))
            visit->refuses_gzip = true;
        else if (is_gzip || (text_equal(name, "*") && !is_zero_quality(element)))
            visit->takes_gzip = true;
    }
}

/* Weak comparison (RFC 9110, section 13.1.2). */
static void read_tags(struct visit *visit, const char *value)
{
    struct text_span rest = text_span_of(value), tag;
    while (text_next(&rest, ',', &tag)) {
        if (tag.length > 2 && strncmp(tag.at, "W/", 2) == 0)
            tag = (struct text_span){tag.at + 2, tag.length - 2};
        visit->has_page |= text_equal(tag, "*") || text_equal(tag, visit->tag);
    }
}

static enum MHD_Result read_encoding_field(void *cls, enum MHD_ValueKind kind, const char *name, const char *value)
{
    (void)kind;
    if (value != NULL && text_equal_fold(text_span_of(name), "Accept-Encoding"))
        read_encodings(cls, value);
    return MHD_YES;
}

static enum MHD_Result read_tag_field(void *cls, enum MHD_ValueKind kind, const char *name, const char *value)
{
    (void)kind;
    if (value != NULL && text_equal_fold(text_span_of(name), "If-None-Match"))
        read_tags(cls, value);
    return MHD_YES;
}

static void answer_page(struct request *request)
{
    struct visit visit = {0};
    MHD_get_connection_values(request->connection, MHD_HEADER_KIND, read_encoding_field, &visit);
    const bool is_gzip = visit.takes_gzip && !visit.refuses_gzip;
    visit.tag = is_gzip ? page_gzip_tag : page_plain_tag;
    MHD_get_connection_values(request->connection, MHD_HEADER_KIND, read_tag_field, &visit);

    const struct text_span plain = {page_plain_begin, (size_t)(page_plain_end - page_plain_begin)};
    const struct text_span gzip = {page_gzip_begin, (size_t)(page_gzip_end - page_gzip_begin)};
    reply_constant(request, "text/html; charset=utf-8", is_gzip ? gzip : plain);
    request->reply.fields = is_gzip ? gzip_fields : plain_fields;
    if (visit.has_page) {
        request->reply.status = MHD_HTTP_NOT_MODIFIED;
        request->reply.content_type = NULL;
    }
}

void page_answer(struct request *request)
{
    if (negotiate_prefers_html(&request->fields.accept)) {
        answer_page(request);
        return;
    }
    health_write_index(reply_begin_json(request, MHD_HTTP_OK));
    request->reply.fields = index_fields;
}
