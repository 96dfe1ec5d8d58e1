/*
 * embedded.h: files that are part of the program, plain and gzipped, as answers.
 */
#ifndef HTTP_EMBEDDED_H
#define HTTP_EMBEDDED_H

#include "base/embedded_file.h"
#include "codec/bytes/media.h"
#include "http/reply.h"

#define EMBEDDED_TEXT(name) ((struct text_span){name##_begin, (size_t)(name##_end - name##_begin)})

/*
 * What scripts/bundle_page.sh has put into a folder: name_plain, name_gzip, and the fields of both, name_plain_fields
 * and name_gzip_fields. No other host, no frame, no script but the page's own.
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

#define EMBEDDED_PAGE_FORM(name) ((struct embedded){EMBEDDED_TEXT(name), name##_fields, name##_tag_begin})

/* One coding of a file. */
struct embedded {
    struct text_span text;
    const struct reply_field *fields; /* as of a reply; NULL: none */
    const char *tag;                  /* the entity tag among them; NULL: none */
};

/* The form that Accept-Encoding likes better, or 304 when If-None-Match names it. */
void embedded_answer(struct request *request, enum media media, const struct embedded *plain,
                     const struct embedded *gzip);

#endif
