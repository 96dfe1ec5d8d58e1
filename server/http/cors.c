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

bool cors_add_fields(struct MHD_Response *response, const char *setting, const char *origin, const char *methods)
{
    const char *const fields[][2] = {
        {"Access-Control-Allow-Origin", cors_allowed_origin(setting, origin)},
        {"Access-Control-Expose-Headers",
         methods == NULL ? "X-Request-Id, Server-Timing, Retry-After, ETag, traceparent" : NULL},
        {"Access-Control-Allow-Methods", methods},
        {"Access-Control-Allow-Headers",
         methods != NULL ? "Accept, Authorization, Content-Encoding, Content-Type, If-Match, If-None-Match, "
                           "Request-Timeout, traceparent, X-API-Key, X-Priority, X-Request-Id"
                         : NULL},
        {"Access-Control-Max-Age", methods != NULL ? "86400" : NULL},
    };
    bool is_whole = true;
    if (fields[0][1] == NULL)
        return true;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (fields[i][1] != NULL)
            is_whole = MHD_add_response_header(response, fields[i][0], fields[i][1]) == MHD_YES && is_whole;
    return is_whole;
}
