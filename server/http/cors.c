/*
 * cors.c: which pages of other origins may read our answers.
 */
#include "http/cors.h"

#include <string.h>

#include "text.h"

const char *cors_allowed_origin(const char *setting, const char *origin)
{
    if (strcmp(setting, "*") == 0)
        return "*";
    if (origin == NULL)
        return NULL;
    struct text_span rest = text_span_of(setting), allowed;
    while (text_next(&rest, ',', &allowed))
        if (text_equal(allowed, origin))
            return origin;
    return NULL;
}

bool cors_varies(const char *setting)
{
    return strcmp(setting, "*") != 0 && strcmp(setting, "none") != 0;
}

void cors_add_fields(struct MHD_Response *response, const char *setting, const char *origin, const char *methods)
{
    const char *allowed = cors_allowed_origin(setting, origin);
    if (allowed == NULL)
        return;
    MHD_add_response_header(response, "Access-Control-Allow-Origin", allowed);
    if (methods == NULL) {
        MHD_add_response_header(response, "Access-Control-Expose-Headers",
                                "X-Request-Id, Server-Timing, Retry-After, ETag, traceparent");
        return;
    }
    MHD_add_response_header(response, "Access-Control-Allow-Methods", methods);
    MHD_add_response_header(
        response, "Access-Control-Allow-Headers",
        "Accept, Authorization, Content-Encoding, Content-Type, If-Match, If-None-Match, Request-Timeout, "
        "traceparent, X-API-Key, X-Priority, X-Request-Id");
    MHD_add_response_header(response, "Access-Control-Max-Age", "86400");
}
