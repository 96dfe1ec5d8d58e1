/* cors.c: whether Host names this server, what pages of other origins may ask, and which answers they may read. */
#include "http/wire/cors.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

/* ---- the "name:port" of Host and Origin ---- */

/* A name in the DNS has at most 253 characters, an address fewer. */
enum { NAME_MAX_BYTES = 256 };

struct authority {
    struct text_span name; /* an IPv6 address has no brackets here */
    struct text_span port; /* "": no port */
    bool is_bracketed;
};

static bool is_port(struct text_span text)
{
    for (size_t i = 0; i < text.length; i++)
        if (text.at[i] < '0' || text.at[i] > '9')
            return false;
    return text.length <= 5;
}

/* False when text is not a name or an address with an optional port. */
static bool authority_read(struct text_span text, struct authority *authority)
{
    const char *end = text.at + text.length;
    authority->is_bracketed = text.length > 0 && text.at[0] == '[';
    const char *name = text.at + authority->is_bracketed;
    const char *name_end = memchr(name, authority->is_bracketed ? ']' : ':', (size_t)(end - name));
    if (name_end == NULL && authority->is_bracketed)
        return false;
    if (name_end == NULL)
        name_end = end;
    authority->name = (struct text_span){name, (size_t)(name_end - name)};
    const char *colon = name_end + authority->is_bracketed;
    if (colon < end && *colon != ':')
        return false;
    authority->port =
        colon < end ? (struct text_span){colon + 1, (size_t)(end - colon - 1)} : (struct text_span){end, 0};
    return authority->name.length > 0 && is_port(authority->port);
}

/* ---- names of this server ---- */

static bool is_below_localhost(const char *name)
{
    static const char suffix[] = "localhost";
    const size_t length = strlen(name), tail = sizeof suffix - 1;
    if (length < tail || strcasecmp(name + length - tail, suffix) != 0)
        return false;
    return length == tail || (length > tail + 1 && name[length - tail - 1] == '.');
}

/* inet_aton also reads short forms ("127.1"). Programs send them as their users typed them. */
static bool is_address(const struct authority *authority, const char *name)
{
    struct in6_addr ipv6;
    struct in_addr ipv4;
    return authority->is_bracketed ? inet_pton(AF_INET6, name, &ipv6) == 1 : inet_aton(name, &ipv4) != 0;
}

static bool is_listed(const char *name, const char *names)
{
    struct text_span rest = text_span_of(names), listed;
    while (text_next(&rest, ',', &listed))
        if (text_equal_fold(listed, name))
            return true;
    return false;
}

bool cors_host_is_ours(const char *host, const char *names)
{
    struct authority authority;
    char name[NAME_MAX_BYTES];
    if (!authority_read(text_span_of(host), &authority) || authority.name.length >= sizeof name)
        return false;
    size_t length = authority.name.length;
    memcpy(name, authority.name.at, length);
    if (!authority.is_bracketed && length > 1 && name[length - 1] == '.')
        length--;
    name[length] = '\0';
    return is_address(&authority, name) ||
           (!authority.is_bracketed && (is_below_localhost(name) || is_listed(name, names)));
}

/* ---- names of the page's own server ---- */

static bool is_same_name(struct text_span a, struct text_span b)
{
    return a.length == b.length && strncasecmp(a.at, b.at, a.length) == 0;
}

static struct text_span port_or(struct text_span port, struct text_span scheme)
{
    if (port.length > 0)
        return port;
    return text_span_of(text_equal_fold(scheme, "https") ? "443" : text_equal_fold(scheme, "http") ? "80" : "");
}

bool cors_host_is_of_origin(const char *host, const char *origin)
{
    static const char mark[] = "://";
    struct authority ours, theirs;
    const char *at = strstr(origin, mark);
    if (at == NULL || !authority_read(text_span_of(at + sizeof mark - 1), &theirs) ||
        !authority_read(text_span_of(host), &ours))
        return false;
    const struct text_span scheme = {origin, (size_t)(at - origin)};
    return ours.is_bracketed == theirs.is_bracketed && is_same_name(ours.name, theirs.name) &&
           is_same_name(port_or(ours.port, scheme), port_or(theirs.port, scheme));
}

/* ---- pages of other origins ---- */

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
    return page->host == NULL || !cors_host_is_of_origin(page->host, page->origin);
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
        "ETag, Inference-Header-Content-Length, RateLimit, RateLimit-Policy, Retry-After, Server-Timing, traceparent, "
        "X-Request-Id";
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
