/* authority.c: reads the "name:port" of Host and Origin and compares it. */
#include "http/wire/authority.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

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

bool authority_is_ours(const char *host, const char *names)
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

bool authority_is_of_origin(const char *host, const char *origin)
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
