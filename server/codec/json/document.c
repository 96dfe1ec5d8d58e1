/* document.c: skims and parses the JSON body of a request. */
#include "codec/json/document.h"

#include <stdbool.h>
#include <string.h>

#include "codec/bytes/pace.h"
#include "codec/json/habit.h"
#include "codec/json/tree.h"

/*
 * ---- the pointer of a place ----
 *
 * For errors that jansson reports only by offset: the names and indices of the brackets that are open there.
 */

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

/* Returns how many bytes of to are used afterwards. Text that does not fit is dropped. */
static size_t put(char *to, size_t size, size_t used, const char *text, size_t length)
{
    for (size_t i = 0; i < length && used + 1 < size; i++)
        to[used++] = text[i];
    to[used] = '\0';
    return used;
}

size_t json_pointer_add(char *to, size_t size, size_t used, struct text_span name, size_t index)
{
    char number[TEXT_COUNT_MAX];
    used = put(to, size, used, "/", 1);
    if (name.at == NULL)
        return put(to, size, used, number, (size_t)(text_write_count(number, index) - number));
    for (size_t i = 0; i < name.length; i++) {
        const char c = name.at[i];
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
    for (size_t i = 0; i < path.depth && path.depth <= DEPTH_MAX; i++) {
        const struct level *level = &path.levels[i];
        const struct text_span name = {level->is_array ? NULL : level->name, level->name_length};
        used = json_pointer_add(to, size, used, name, level->index);
    }
}

/* ---- the body ---- */

/* Counts the bytes of white space at the beginning. */
static size_t leading_space(const char *text, size_t length, const attn_arena *arena)
{
    struct pace pace = pace_begin(arena);
    size_t n = 0;
    while (n < length && (text[n] == ' ' || text[n] == '\t' || text[n] == '\n' || text[n] == '\r')) {
        if (++n % PACE_BYTES == 0 && pace_stops(&pace, PACE_BYTES))
            break; /* cancelled: the next reader reports it */
    }
    return n;
}

/* Whether the text begins with a byte order mark of UTF-16, or with two ASCII characters in UTF-16. */
static bool is_utf_16(const unsigned char *text, size_t length)
{
    if (length < 4)
        return false;
    return (text[0] == 0xFF && text[1] == 0xFE) || (text[0] == 0xFE && text[1] == 0xFF) ||
           (text[0] != 0 && text[1] == 0 && text[2] != 0 && text[3] == 0) ||
           (text[0] == 0 && text[1] != 0 && text[2] == 0 && text[3] != 0);
}

static attn_status check_encoding(const struct skim *body, attn_error *err)
{
    static const char mark[] = "\xEF\xBB\xBF";
    const char *what = NULL;
    if (body->body_length >= sizeof mark - 1 && memcmp(body->body, mark, sizeof mark - 1) == 0)
        what = "begins with a byte order mark: send it without";
    else if (is_utf_16((const unsigned char *)body->body, body->body_length))
        what = "looks like UTF-16; JSON is UTF-8";
    if (!what)
        return ATTN_OK;
    return skim_place(body, 0, attn_fail(err, ATTN_ERR_SYNTAX, NULL, "the request %s", what), err);
}

/* The first NUL byte; NULL without one, or when the request is cancelled, which the next reader reports. */
static const char *find_nul(const struct skim *body)
{
    enum { LOOK_BYTES = 4 << 20 }; /* memchr reads some gigabytes in a second */
    const char *nul = NULL;
    for (size_t at = 0, some; at < body->body_length && nul == NULL; at += some) {
        if (at > 0 && attn_arena_is_cancelled(body->arena))
            return NULL;
        some = body->body_length - at < LOOK_BYTES ? body->body_length - at : LOOK_BYTES;
        nul = memchr(body->body + at, '\0', some);
    }
    return nul;
}

static attn_status check_bytes(const struct skim *body, attn_error *err)
{
    attn_status status = check_encoding(body, err);
    if (status != ATTN_OK)
        return status;
    const char *nul = find_nul(body);
    if (leading_space(body->body, body->body_length, body->arena) == body->body_length) {
        status = attn_fail(err, ATTN_ERR_SYNTAX, NULL, "the request has no body; expected a JSON object with inputs");
        return skim_place(body, 0, status, err);
    }
    if (!nul)
        return ATTN_OK;
    status = attn_fail(err, ATTN_ERR_SYNTAX, NULL, "the request is not JSON: it holds a NUL byte");
    return skim_place(body, (size_t)(nul - body->body), status, err);
}

/*
 * The offset of the token at which jansson stopped. jansson's message ends with that token in quotes, if it is short.
 */
static size_t error_offset(const struct skim *skim, const json_error_t *error)
{
    const size_t read = error->position > 0 ? (size_t)error->position : 0;
    const size_t after = read < skim->length ? read : skim->length;
    const char *token = strstr(error->text, " near '");
    if (!token)
        return after > 0 ? after - 1 : 0;
    token += strlen(" near '");
    size_t length = strlen(token);
    length -= length > 0;
    bool is_here = length > 0 && length <= after && memcmp(skim->text + after - length, token, length) == 0;
    return after - (is_here ? length : after > 0);
}

/*
 * Fails for a number that is too large. jansson reports its offset; the pointer of the member is found from the offset.
 */
static attn_status fail_overflow(const struct skim *skim, const json_error_t *error, attn_error *err)
{
    char pointer[JSON_POINTER_MAX];
    const char *bound = json_tree_integer_bound(error);
    json_path_at(skim->text, error_offset(skim, error), pointer, sizeof pointer);
    return attn_fail(err, ATTN_ERR_VALUE, pointer, "%s holds %s", pointer[0] ? pointer : "the request",
                     bound ? bound : "a number beyond what 64 bits can hold");
}

/* The brackets that would close the text. Strings in it are whole, because the skimmer has read them to their ends. */
static const char *find_missing_ends(const struct skim *skim, char ends[JSON_DEPTH_MAX + 1])
{
    char *first = ends + JSON_DEPTH_MAX;
    bool is_in_string = false;
    *first = '\0';
    for (const char *c = skim->text, *end = c + skim->length; c < end; c++) {
        if (is_in_string)
            c += *c == '\\';
        else if ((*c == '{' || *c == '[') && first > ends)
            *--first = *c == '{' ? '}' : ']';
        else if ((*c == '}' || *c == ']') && *first == *c)
            first++;
        is_in_string ^= c < end && *c == '"';
    }
    return first;
}

static attn_status fail_end(const struct skim *skim, attn_error *err)
{
    char ends[JSON_DEPTH_MAX + 1];
    const char *missing = find_missing_ends(skim, ends);
    return attn_fail(err, ATTN_ERR_SYNTAX, NULL, "the request is not JSON: it ends too early, before its last %s",
                     missing);
}

static attn_status fail_syntax(const struct skim *skim, size_t at, const json_error_t *error, attn_error *err)
{
    if (json_error_code(error) == json_error_premature_end_of_input)
        return fail_end(skim, err);
    if (text_begins(error->text, "':'"))
        return attn_fail(err, ATTN_ERR_SYNTAX, NULL,
                         "the request is not JSON: a : stands between a name and its value");
    const char next = at < skim->body_length ? skim->body[at] : '\0';
    if (text_begins(error->text, "end of file") && skim->text[0] == '{' && next != '/' && next != '#')
        return attn_fail(err, ATTN_ERR_SYNTAX, NULL, "the request is not JSON: something follows its last }");
    const char *habit = habit_find(skim->body, skim->body + at, skim->body + skim->body_length);
    if (habit != NULL)
        return attn_fail(err, ATTN_ERR_SYNTAX, NULL, "the request is not JSON: %s", habit);
    /* jansson ends its message with what it read last, which may be a part of a text. Line and column say the place. */
    const char *token = strstr(error->text, " near '");
    const int length = token != NULL ? (int)(token - error->text) : (int)strlen(error->text);
    return attn_fail(err, ATTN_ERR_SYNTAX, NULL, "the request is not JSON: %.*s%s", length, error->text,
                     json_error_code(error) == json_error_invalid_utf8 ? "; JSON is UTF-8" : "");
}

static attn_status fail_parse(const struct skim *skim, const json_error_t *error, attn_error *err)
{
    attn_status status;
    if (json_tree_is_starved())
        return attn_fail_no_memory(err);
    const size_t at = skim_body_offset(skim, error_offset(skim, error));
    switch (json_error_code(error)) {
    case json_error_duplicate_key:
        status = attn_fail(err, ATTN_ERR_FIELD, NULL, "a member is given twice: %s", error->text);
        break;
    case json_error_null_byte_in_key:
        status = attn_fail(err, ATTN_ERR_FIELD, NULL, "the name of a member holds \\u0000: no such member is known");
        break;
    case json_error_numeric_overflow:
        status = fail_overflow(skim, error, err);
        break;
    default:
        status = fail_syntax(skim, at, error, err);
        break;
    }
    return skim_place(skim, at, status, err);
}

attn_status document_read(const char *text, size_t length, attn_arena *arena, struct document *document,
                          attn_error *err)
{
    *document = (struct document){.skim = {.body = text, .body_length = length, .arena = arena}};
    attn_status status = check_bytes(&document->skim, err);
    if (status == ATTN_OK)
        status = skim_body(text, length, JSON_TEXT_MAX, JSON_DEPTH_MAX, arena, &document->skim, err);
    if (status != ATTN_OK)
        return status;
    json_error_t error;
    document->tree = json_tree_load(document->skim.text, document->skim.length, arena, &error);
    return document->tree ? ATTN_OK : fail_parse(&document->skim, &error, err);
}

void document_close(struct document *document)
{
    json_decref(document->tree);
    document->tree = NULL;
}
