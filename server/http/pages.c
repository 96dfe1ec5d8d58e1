/*
 * pages.c: answers with files that are embedded in the program.
 *
 * PAGE_FOLDER, DOCS_FOLDER and OPENAPI_GZIP come from the Makefile: the folders that mk/bundle_page.sh has filled, and
 * the gzipped file. files.inc is the list that mk/pack_files.sh has written.
 */
#include "http/pages.h"

#include "base/array.h"
#include "base/embedded_file.h"
#include "http/reply.h"

#define EMBEDDED_TEXT(name) ((struct text_span){name##_begin, (size_t)(name##_end - name##_begin)})

/*
 * The files of a bundled page: name_plain, name_gzip, and the header fields of both, name_plain_fields and
 * name_gzip_fields. The policy allows no other host, no frame, and no script but the page's own.
 */
#define EMBEDDED_PAGE(name, folder)                                                                                    \
    EMBEDDED_FILE(name##_plain, folder "/page.html");                                                                  \
    EMBEDDED_FILE(name##_gzip, folder "/page.html.gz");                                                                \
    EMBEDDED_FILE(name##_policy, folder "/page.policy");                                                               \
    EMBEDDED_FILE(name##_plain_tag, folder "/page.tag");                                                               \
    EMBEDDED_FILE(name##_gzip_tag, folder "/page.html.gz.tag");                                                        \
    static const struct reply_field name##_plain_fields[] = EMBEDDED_FIELDS(name##_policy, name##_plain_tag);          \
    static const struct reply_field name##_gzip_fields[] = EMBEDDED_FIELDS(name##_policy, name##_gzip_tag)

#define EMBEDDED_FIELDS(policy, tag)                                                                                   \
    {                                                                                                                  \
        {"Cache-Control", "no-cache"}, {"Content-Security-Policy", policy##_begin}, {"X-Frame-Options", "DENY"},       \
            {"Referrer-Policy", "no-referrer"}, {"Cross-Origin-Opener-Policy", "same-origin"}, {"ETag", tag##_begin},  \
            {NULL, NULL},                                                                                              \
    }

#define EMBEDDED_FORM(name) ((struct embedded){EMBEDDED_TEXT(name), name##_fields, name##_tag_begin})

EMBEDDED_PAGE(page, PAGE_FOLDER);
EMBEDDED_PAGE(docs, DOCS_FOLDER);
EMBEDDED_FILE(openapi_plain, "server/openapi.json");
EMBEDDED_FILE(openapi_gzip, OPENAPI_GZIP);

/* The files that pages fetch: of each, both forms, their tags and their header fields. */
#define X(name, path)                                                                                                  \
    EMBEDDED_FILE(name##_plain, PAGE_FOLDER "/files/" path);                                                           \
    EMBEDDED_FILE(name##_gzip, PAGE_FOLDER "/files/" path ".gz");                                                      \
    EMBEDDED_FILE(name##_plain_tag, PAGE_FOLDER "/files/" path ".tag");                                                \
    EMBEDDED_FILE(name##_gzip_tag, PAGE_FOLDER "/files/" path ".gz.tag");                                              \
    static const struct reply_field name##_plain_fields[] = FILE_FIELDS(name##_plain_tag);                             \
    static const struct reply_field name##_gzip_fields[] = FILE_FIELDS(name##_gzip_tag);
#define FILE_FIELDS(tag)                                                                                               \
    {                                                                                                                  \
        {"Cache-Control", "no-cache"}, {"ETag", tag##_begin}, {NULL, NULL},                                            \
    }
#include "files.inc"
#undef X

/* A file in one coding. */
struct embedded {
    struct text_span text;
    const struct reply_field *fields; /* in the form of struct reply; NULL: none */
    const char *tag;                  /* the entity tag among the fields; NULL: none */
};

/* Answers with the coding that Accept-Encoding prefers, or with 304 when If-None-Match has its tag. */
static void answer_file(struct request *request, enum media media, const struct embedded *plain,
                        const struct embedded *gzip)
{
    const enum coding coding = negotiate_coding(request->fields.accept_encoding, CODING_BIT(CODING_GZIP));
    const struct embedded *chosen = coding == CODING_GZIP ? gzip : plain;
    reply_constant(request, media, chosen->text);
    request->reply.coding = coding;
    request->reply.fields = chosen->fields;
    request->reply.is_negotiated = true;
    if (text_names_tag(request->fields.if_none_match, chosen->tag)) {
        request->reply.status = MHD_HTTP_NOT_MODIFIED;
        request->reply.content_type = NULL;
    }
}

void pages_answer_root(struct request *request)
{
    const struct embedded plain = EMBEDDED_FORM(page_plain), gzip = EMBEDDED_FORM(page_gzip);
    if (request->answer_media == MEDIA_HTML) {
        answer_file(request, MEDIA_HTML, &plain, &gzip);
        return;
    }
    health_write_index(reply_begin(request, MHD_HTTP_OK, MEDIA_JSON));
    request->reply.is_negotiated = true;
}

void pages_answer_docs(struct request *request)
{
    const struct embedded plain = EMBEDDED_FORM(docs_plain), gzip = EMBEDDED_FORM(docs_gzip);
    answer_file(request, MEDIA_HTML, &plain, &gzip);
}

void pages_answer_openapi(struct request *request)
{
    const struct embedded plain = {.text = EMBEDDED_TEXT(openapi_plain)}, gzip = {.text = EMBEDDED_TEXT(openapi_gzip)};
    answer_file(request, MEDIA_JSON, &plain, &gzip);
}

void pages_answer_file(struct request *request)
{
#define X(name, path) {path, EMBEDDED_FORM(name##_plain), EMBEDDED_FORM(name##_gzip)},
    const struct {
        const char *path;
        struct embedded plain, gzip;
    } files[] = {
#include "files.inc"
    };
#undef X
    const struct text_span folder = request->names[0], name = request->names[1];
    const struct text_span wanted = {folder.at, (size_t)(name.at + name.length - folder.at)};
    for (size_t i = 0; i < ARRAY_LENGTH(files); i++)
        if (text_equal(wanted, files[i].path)) {
            answer_file(request, MEDIA_JSON, &files[i].plain, &files[i].gzip);
            return;
        }
    reply_refuse(request, PROBLEM_NOT_FOUND, "the page has no file %.*s",
                 wanted.length < 128 ? (int)wanted.length : 128, wanted.at);
}
