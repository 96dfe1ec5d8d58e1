/*
 * target.c: splits the request target as the client wrote it, without decoding.
 *
 * Routes are compared with the raw bytes: "/%6civez" is not a route. Otherwise a proxy in front could apply a rule to
 * one spelling of a path, and we would serve another spelling.
 */
#include "http/wire/wire.h"

#include <string.h>

static bool has_forbidden_byte(const char *raw)
{
    for (const char *c = raw; *c != '\0'; c++)
        if (*c <= ' ' || *c >= 0x7f || *c == '#')
            return true;
    return false;
}

/* The part of raw after "http://" and the authority. NULL when raw is not in absolute form. */
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

bool target_next_parameter(struct text_span *query, struct text_span *name, struct text_span *value)
{
    struct text_span piece;
    do {
        if (!text_next(query, '&', &piece))
            return false;
    } while (piece.length == 0);
    const char *sign = memchr(piece.at, '=', piece.length);
    const size_t length = sign != NULL ? (size_t)(sign - piece.at) : piece.length;
    *name = (struct text_span){piece.at, length};
    *value = sign != NULL ? (struct text_span){sign + 1, piece.length - length - 1} : (struct text_span){"", 0};
    return true;
}

bool target_decode(struct text_span encoded, char *to)
{
    for (size_t i = 0; i < encoded.length; i++) {
        int byte = encoded.at[i] == '+' ? ' ' : (unsigned char)encoded.at[i];
        if (byte == '%') {
            if (i + 2 >= encoded.length)
                return false;
            const int high = text_hex_value(encoded.at[i + 1]), low = text_hex_value(encoded.at[i + 2]);
            byte = high < 0 || low < 0 ? 0 : high * 16 + low;
            i += 2;
        }
        if (byte < ' ' || byte == 0x7f)
            return false;
        *to++ = (char)byte;
    }
    *to = '\0';
    return true;
}
