/*
 * target.c: the request target as the client wrote it, nothing decoded.
 *
 * Routes are compared with the raw bytes: "/%6civez" is no route, so that no two spellings of a path can be told apart
 * by a proxy in front and taken for the same by us.
 */
#include "http/target.h"

#include <stdio.h>
#include <string.h>

static bool has_forbidden_byte(const char *raw)
{
    for (const char *c = raw; *c != '\0'; c++)
        if (*c <= ' ' || *c >= 0x7f || *c == '#')
            return true;
    return false;
}

/* Behind "http://" and the authority; NULL when raw is not of absolute form. */
static const char *skip_authority(const char *raw)
{
    const char *authority = NULL;
    if (text_starts_fold(raw, "http://"))
        authority = raw + strlen("http://");
    else if (text_starts_fold(raw, "https://"))
        authority = raw + strlen("https://");
    if (authority == NULL)
        return NULL;
    const size_t length = strcspn(authority, "/?");
    return length > 0 ? authority + length : NULL;
}

const char *target_read(const char *raw, struct target *target)
{
    if (has_forbidden_byte(raw))
        return "the request target holds a byte that must be percent-encoded";
    const char *path = raw[0] == '/' || strcmp(raw, "*") == 0 ? raw : skip_authority(raw);
    if (path == NULL)
        return "the request target must be a path that starts with a slash, or an http:// URL";
    const size_t length = strcspn(path, "?");
    target->path = length > 0 ? (struct text_span){path, length} : text_span_of("/");
    target->query = path[length] == '?' ? text_span_of(path + length + 1) : (struct text_span){NULL, 0};
    return NULL;
}

void target_parameter(const struct target *target, char *name, size_t size)
{
    struct text_span rest = target->query, piece = {"", 0};
    while (piece.length == 0 && text_next(&rest, '&', &piece))
        continue;
    size_t length = 0;
    while (length < piece.length && piece.at[length] != '=')
        length++;
    snprintf(name, size, "%.*s", (int)length, piece.at);
}
