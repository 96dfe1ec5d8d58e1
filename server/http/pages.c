/*
 * pages.c: answers with files that are embedded in the program: the visualizer, the page of the documentation, and
 * openapi.json. mk/bundle_page.sh makes one HTML file of server/web/, and one of server/docs/. Each file is embedded
 * twice: plain and gzipped.
 *
 * PAGE_FOLDER, DOCS_FOLDER and OPENAPI come from the Makefile: the folders that mk/bundle_page.sh has filled, and the
 * OpenAPI document, beside which it stands gzipped. files.inc is the list that mk/pack_files.sh has written.
 */
#include <string.h>

#include "base/array.h"
#include "base/embedded_file.h"
#include "http/steps.h"

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
#define LASTING_FORM(name)  ((struct embedded){EMBEDDED_TEXT(name), name##_lasting, name##_tag_begin})

EMBEDDED_PAGE(page, PAGE_FOLDER);
EMBEDDED_PAGE(docs, DOCS_FOLDER);
/* The files that pages fetch: of each, both forms, their tags and their header fields. */
#define X(name, folder, file, media)                                                                                   \
    EMBEDDED_FILE(name##_plain, PAGE_FOLDER "/files/" folder "/" file);                                                \
    EMBEDDED_FILE(name##_gzip, PAGE_FOLDER "/files/" folder "/" file ".gz");                                           \
    EMBEDDED_FILE(name##_plain_tag, PAGE_FOLDER "/files/" folder "/" file ".tag");                                     \
    EMBEDDED_FILE(name##_gzip_tag, PAGE_FOLDER "/files/" folder "/" file ".gz.tag");                                   \
    static const struct reply_field name##_plain_fields[] = FILE_FIELDS("no-cache", name##_plain_tag);                 \
    static const struct reply_field name##_gzip_fields[] = FILE_FIELDS("no-cache", name##_gzip_tag);                   \
    static const struct reply_field name##_plain_lasting[] = FILE_FIELDS(LASTING, name##_plain_tag);                   \
    static const struct reply_field name##_gzip_lasting[] = FILE_FIELDS(LASTING, name##_gzip_tag);
#define FILE_FIELDS(caching, tag)                                                                                      \
    {                                                                                                                  \
        {"Cache-Control", caching}, {"ETag", tag##_begin}, {NULL, NULL},                                               \
    }
#define LASTING "public, max-age=31536000, immutable"

EMBEDDED_FILE(openapi_plain, OPENAPI);
EMBEDDED_FILE(openapi_gzip, OPENAPI ".gz");
EMBEDDED_FILE(openapi_plain_tag, OPENAPI ".tag");
EMBEDDED_FILE(openapi_gzip_tag, OPENAPI ".gz.tag");
static const struct reply_field openapi_plain_fields[] = FILE_FIELDS("no-cache", openapi_plain_tag);
static const struct reply_field openapi_gzip_fields[] = FILE_FIELDS("no-cache", openapi_gzip_tag);

#include "files.inc"
#undef X

/* The folder of the modules for pages of others, whose address has the version in its place. */
static const char modules_folder[] = "modules";

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
    const struct embedded plain = EMBEDDED_FORM(openapi_plain), gzip = EMBEDDED_FORM(openapi_gzip);
    answer_file(request, MEDIA_JSON, &plain, &gzip);
}

/* Whether the folder is the version without its last number, such as "0.2" of 0.2.0. */
static bool is_series(struct text_span folder)
{
    const char *end = strrchr(ATTN_VERSION, '.');
    return folder.length == (size_t)(end - ATTN_VERSION) && memcmp(folder.at, ATTN_VERSION, folder.length) == 0;
}

/* The module of another version may have the name of one of this version, whose address the answer says. */
static void refuse_file(struct request *request, struct text_span folder, struct text_span name, bool is_name_of_module)
{
    const struct text_span wanted = {folder.at, (size_t)(name.at + name.length - folder.at)};
    if (is_name_of_module)
        refuse(request, PROBLEM_NOT_FOUND, "the module of this server is /web/" ATTN_VERSION "/%.*s", (int)name.length,
               name.at);
    else
        refuse(request, PROBLEM_NOT_FOUND, "the page has no file %.*s", wanted.length < 128 ? (int)wanted.length : 128,
               wanted.at);
}

void pages_answer_file(struct request *request)
{
#define X(name, folder, file, media)                                                                                   \
    {folder,                                                                                                           \
     file,                                                                                                             \
     media,                                                                                                            \
     {{EMBEDDED_FORM(name##_plain), EMBEDDED_FORM(name##_gzip)},                                                       \
      {LASTING_FORM(name##_plain), LASTING_FORM(name##_gzip)}}},
    const struct {
        const char *folder, *name;
        enum media media;
        struct embedded forms[2][2]; /* asked for anew, or lasting, because the address has the whole version */
    } files[] = {
#include "files.inc"
    };
#undef X
    const struct text_span folder = request->names[0], name = request->names[1];
    const bool is_release = text_equal(folder, ATTN_VERSION), is_module = is_release || is_series(folder);
    bool is_name_of_module = false;
    for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
        const bool is_of_modules = strcmp(files[i].folder, modules_folder) == 0;
        is_name_of_module |= is_of_modules && text_equal(name, files[i].name);
        if (is_of_modules != is_module || !text_equal(name, files[i].name) ||
            (!is_module && !text_equal(folder, files[i].folder)))
            continue;
        answer_file(request, files[i].media, &files[i].forms[is_release][0], &files[i].forms[is_release][1]);
        return;
    }
    refuse_file(request, folder, name, is_name_of_module);
}
