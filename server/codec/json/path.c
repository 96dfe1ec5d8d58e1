/*
 * path.c: finds the JSON pointer of a place in JSON text. It keeps the names and indices of the brackets that are
 * open at that place.
 */
#include "codec/json/path.h"

#include <stdbool.h>
#include <stdio.h>

enum { DEPTH_MAX = 64 };

struct level {
    bool is_array;
    size_t index;     /* index of the current element */
    const char *name; /* name of the current member */
    size_t name_length;
};

struct path {
    struct level levels[DEPTH_MAX];
    size_t depth;
};

static void open_level(struct path *path, bool is_array)
{
    if (path->depth < DEPTH_MAX)
        path->levels[path->depth] = (struct level){.is_array = is_array};
    path->depth++;
}

/*
 * Skips a string and returns the byte after it. In an object, the last string before a value is the name of the member.
 */
static const char *pass_string(struct path *path, const char *at, const char *end)
{
    const char *begin = ++at;
    while (at < end && *at != '"')
        at += *at == '\\' ? 2 : 1;
    if (at >= end)
        return end;
    const char *after = at + 1;
    while (after < end && (*after == ' ' || *after == '\n' || *after == '\r' || *after == '\t'))
        after++;
    if (after < end && *after == ':' && path->depth > 0 && path->depth <= DEPTH_MAX) {
        path->levels[path->depth - 1].name = begin;
        path->levels[path->depth - 1].name_length = (size_t)(at - begin);
    }
    return at + 1;
}

static const char *pass(struct path *path, const char *at, const char *end)
{
    switch (*at) {
    case '"':
        return pass_string(path, at, end);
    case '[':
    case '{':
        open_level(path, *at == '[');
        break;
    case ']':
    case '}':
        path->depth -= path->depth > 0;
        break;
    case ',':
        if (path->depth > 0 && path->depth <= DEPTH_MAX)
            path->levels[path->depth - 1].index++;
        break;
    default:
        break;
    }
    return at + 1;
}

/* Each function returns how many bytes of to are used afterwards. Text that does not fit is dropped. */
static size_t put(char *to, size_t size, size_t used, const char *text, size_t length)
{
    for (size_t i = 0; i < length && used + 1 < size; i++)
        to[used++] = text[i];
    to[used] = '\0';
    return used;
}

static size_t put_level(char *to, size_t size, size_t used, const struct level *level)
{
    char number[24];
    used = put(to, size, used, "/", 1);
    if (level->is_array)
        return put(to, size, used, number, (size_t)snprintf(number, sizeof number, "%zu", level->index));
    for (size_t i = 0; i < level->name_length; i++) {
        const char c = level->name[i];
        used = c == '~'   ? put(to, size, used, "~0", 2)
               : c == '/' ? put(to, size, used, "~1", 2)
                          : put(to, size, used, &c, 1);
    }
    return used;
}

void json_path_at(const char *text, size_t offset, char *to, size_t size)
{
    struct path path = {.depth = 0};
    const char *end = text + offset;
    while (text < end)
        text = pass(&path, text, end);
    to[0] = '\0';
    size_t used = 0;
    for (size_t level = 0; level < path.depth && path.depth <= DEPTH_MAX; level++)
        used = put_level(to, size, used, &path.levels[level]);
}
