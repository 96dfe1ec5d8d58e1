/* plain.c: parses plain JSON into a jansson tree, by recursive descent. */
#include "codec/json/plain.h"

#include <stdbool.h>
#include <string.h>

enum { DEPTH_MAX = 16, DIGITS_MAX = 15 };

struct reader {
    const char *at, *end;
    int depth;
};

static void skip_space(struct reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\r' || *r->at == '\t'))
        r->at++;
}

/* Whether the next character is c; if so, moves past it. */
static bool take(struct reader *r, char c)
{
    const bool is_here = r->at < r->end && *r->at == c;
    r->at += is_here;
    return is_here;
}

static bool take_between(struct reader *r, char c)
{
    skip_space(r);
    return take(r, c);
}

/* Reads the next string, without its quotes. False when it is not plain. */
static bool take_string(struct reader *r, const char **text, size_t *length)
{
    if (!take(r, '"'))
        return false;
    *text = r->at;
    while (r->at < r->end && *r->at >= ' ' && *r->at <= '~' && *r->at != '"' && *r->at != '\\')
        r->at++;
    *length = (size_t)(r->at - *text);
    return take(r, '"');
}

static json_t *read_value(struct reader *r);

static bool read_member(struct reader *r, json_t *object)
{
    const char *name;
    size_t length;
    skip_space(r);
    if (!take_string(r, &name, &length) || !take_between(r, ':') || json_object_getn(object, name, length))
        return false;
    return json_object_setn_new_nocheck(object, name, length, read_value(r)) == 0;
}

static bool read_element(struct reader *r, json_t *array)
{
    return json_array_append_new(array, read_value(r)) == 0;
}

/* Reads the items of collection up to close. NULL, with collection released, when one of them is not plain. */
static json_t *read_items(struct reader *r, json_t *collection, bool (*read_item)(struct reader *r, json_t *to),
                          char close)
{
    bool is_plain = ++r->depth <= DEPTH_MAX && collection != NULL;
    if (is_plain && !take_between(r, close)) {
        do
            is_plain = read_item(r, collection);
        while (is_plain && take_between(r, ','));
        is_plain = is_plain && take(r, close);
    }
    r->depth--;
    if (is_plain)
        return collection;
    json_decref(collection);
    return NULL;
}

static json_t *read_string(struct reader *r)
{
    const char *text;
    size_t length;
    return take_string(r, &text, &length) ? json_stringn_nocheck(text, length) : NULL;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Stops at a point or an exponent. The caller then finds neither a comma nor a bracket, so the text is not plain. */
static json_t *read_integer(struct reader *r)
{
    const char *first = r->at;
    json_int_t value = 0;
    for (; r->at < r->end && is_digit(*r->at) && r->at - first < DIGITS_MAX; r->at++)
        value = value * 10 + (*r->at - '0');
    return *first == '0' && r->at - first > 1 ? NULL : json_integer(value);
}

static bool take_word(struct reader *r, const char *word)
{
    const size_t length = strlen(word);
    const bool is_here = (size_t)(r->end - r->at) >= length && memcmp(r->at, word, length) == 0;
    r->at += is_here ? length : 0;
    return is_here;
}

static json_t *read_value(struct reader *r)
{
    skip_space(r);
    if (r->at == r->end)
        return NULL;
    if (*r->at == '"')
        return read_string(r);
    if (take(r, '{'))
        return read_items(r, json_object(), read_member, '}');
    if (take(r, '['))
        return read_items(r, json_array(), read_element, ']');
    if (is_digit(*r->at))
        return read_integer(r);
    return take_word(r, "true")    ? json_true()
           : take_word(r, "false") ? json_false()
           : take_word(r, "null")  ? json_null()
                                   : NULL;
}

json_t *json_plain_load(const char *text, size_t length)
{
    struct reader r = {.at = text, .end = text + length};
    json_t *tree = read_value(&r);
    skip_space(&r);
    if (r.at == r.end)
        return tree;
    json_decref(tree);
    return NULL;
}
