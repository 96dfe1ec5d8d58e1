/* cors.c: decides what pages of other origins may ask, and which answers they may read. */
#include "http/wire/cors.h"

#include <string.h>

#include "http/wire/authority.h"

/* Browsers send "null" for many unrelated pages, so no list can name it. */
static bool is_named(const char *setting, const char *origin)
{
    struct text_span rest = text_span_of(setting), named;
    if (origin == NULL || strcmp(origin, "null") == 0)
        return false;
    while (text_next(&rest, ',', &named))
        if (text_equal_fold(named, origin) && strstr(origin, "://") != NULL)
            return true;
    return false;
}

static bool has_star(const char *setting)
{
    struct text_span rest = text_span_of(setting), named;
    while (text_next(&rest, ',', &named))
        if (text_equal(named, "*"))
            return true;
    return false;
}

bool cors_is_foreign(const char *setting, const struct cors_page *page)
{
    if (is_named(setting, page->origin))
        return false;
    if (page->fetch_site != NULL)
        return strcmp(page->fetch_site, "same-origin") != 0 && strcmp(page->fetch_site, "none") != 0;
    if (page->origin == NULL)
        return false;
    return page->host == NULL || !authority_is_of_origin(page->host, page->origin);
}

const char *cors_allowed_origin(const char *setting, const char *origin, bool is_open)
{
    if (is_open && has_star(setting))
        return "*";
    return is_named(setting, origin) ? origin : NULL;
}

bool cors_varies(const char *setting)
{
    return strcmp(setting, "*") != 0 && *setting != '\0';
}

static bool add(struct MHD_Response *response, const char *name, const char *value)
{
    return MHD_add_response_header(response, name, value) == MHD_YES;
}

static bool add_preflight_fields(struct MHD_Response *response, const char *methods)
{
    static const char asked[] =
        "Accept, Authorization, baggage, Content-Encoding, Content-Type, If-Match, If-None-Match, "
        "Inference-Header-Content-Length, Request-Timeout, traceparent, tracestate, X-API-Key, X-Priority, "
        "X-Request-Id";
    return add(response, "Access-Control-Allow-Methods", methods) &&
           add(response, "Access-Control-Allow-Headers", asked) && add(response, "Access-Control-Max-Age", "86400");
}

bool cors_add_fields(struct MHD_Response *response, const struct cors_answer *answer)
{
    static const char shown[] =
        "ETag, Inference-Header-Content-Length, Retry-After, Server-Timing, traceparent, X-Request-Id";
    const char *allowed = cors_allowed_origin(answer->setting, answer->origin, answer->is_open);
    /* Without this field, a page could load an answer that it may not read as an image or a script. */
    if (!answer->is_open && !add(response, "Cross-Origin-Resource-Policy", "same-origin"))
        return false;
    if (allowed == NULL)
        return true;
    if (!add(response, "Access-Control-Allow-Origin", allowed) || !add(response, "Timing-Allow-Origin", allowed))
        return false;
    return answer->methods != NULL ? add_preflight_fields(response, answer->methods)
                                   : add(response, "Access-Control-Expose-Headers", shown);
}
