/*
 * docs.c: GET /docs. DOCS_FOLDER comes from the Makefile: where scripts/bundle_page.sh has put its files.
 */
#include "http/docs.h"

#include "http/embedded.h"

EMBEDDED_FILE(docs_plain, DOCS_FOLDER "/page.html");
EMBEDDED_FILE(docs_gzip, DOCS_FOLDER "/page.html.gz");
EMBEDDED_FILE(docs_policy, DOCS_FOLDER "/page.policy");
EMBEDDED_FILE(docs_plain_tag, DOCS_FOLDER "/page.tag");
EMBEDDED_FILE(docs_gzip_tag, DOCS_FOLDER "/page.html.gz.tag");

#define GUARDED                                                                                                        \
    {"Cache-Control", "no-cache"}, {"Content-Security-Policy", docs_policy_begin},                                     \
        {"X-Content-Type-Options", "nosniff"}, {"X-Frame-Options", "DENY"}, {"Referrer-Policy", "no-referrer"},        \
    {                                                                                                                  \
        "Cross-Origin-Opener-Policy", "same-origin"                                                                    \
    }

static const struct reply_field plain_fields[] = {GUARDED, {"ETag", docs_plain_tag_begin}, {NULL, NULL}};
static const struct reply_field gzip_fields[] = {GUARDED, {"ETag", docs_gzip_tag_begin}, {NULL, NULL}};

void docs_answer(struct request *request)
{
    const struct embedded plain = {EMBEDDED_TEXT(docs_plain), plain_fields, docs_plain_tag_begin};
    const struct embedded gzip = {EMBEDDED_TEXT(docs_gzip), gzip_fields, docs_gzip_tag_begin};
    embedded_answer(request, MEDIA_HTML, &plain, &gzip);
}
