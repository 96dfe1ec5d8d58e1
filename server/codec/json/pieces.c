/* pieces.c: reads a long list or object of JSON in pieces. */
#include "codec/json/pieces.h"

#include <ctype.h>
#include <string.h>

#include "base/array.h"

enum { PIECE_BYTES = 16 << 10 }; /* of text; a tree has up to a hundred times as many */

/* ---- the text ---- */

static const char *skip_space(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
        at++;
    return at;
}

/* The byte behind the string that begins here; end when the string does not end. */
static const char *skip_string(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++)
        if (*at == '\\' && ++at == end)
            return end;
    return at < end ? at + 1 : end;
}

/* The comma or the bracket behind the value that begins here. */
static const char *skip_value(const char *at, const char *end)
{
    size_t depth = 0;
    while (at < end) {
        const char c = *at;
        if (depth == 0 && (c == ',' || c == ']' || c == '}'))
            break;
        if (c == '"') {
            at = skip_string(at, end);
            continue;
        }
        depth += c == '[' || c == '{';
        depth -= c == ']' || c == '}';
        at++;
    }
    return at;
}

static bool is_collection(struct text_span text)
{
    const char last = text.length >= 2 ? text.at[text.length - 1] : '\0';
    return text.length >= 2 && ((text.at[0] == '{' && last == '}') || (text.at[0] == '[' && last == ']'));
}

static struct text_span trimmed(const char *at, const char *end)
{
    at = skip_space(at, end);
    while (end > at && skip_space(end - 1, end) == end)
        end--;
    return (struct text_span){at, (size_t)(end - at)};
}

struct text_span json_text_find(struct text_span object, const char *name)
{
    static const struct text_span none;
    const size_t length = strlen(name);
    const struct text_span whole = object.at != NULL ? trimmed(object.at, object.at + object.length) : object;
    if (!is_collection(whole))
        return none;
    const char *end = whole.at + whole.length;
    for (const char *at = skip_space(whole.at + 1, end); at < end && *at == '"';) {
        const char *key = at + 1, *key_end = skip_string(at, end), *colon = skip_space(key_end, end);
        if (colon == end || *colon != ':')
            break;
        const char *value_end = skip_value(colon + 1, end);
        if ((size_t)(key_end - key) == length + 1 && memcmp(key, name, length) == 0) {
            const struct text_span value = trimmed(colon + 1, value_end);
            return is_collection(value) ? value : none;
        }
        at = value_end < end && *value_end == ',' ? skip_space(value_end + 1, end) : end;
    }
    return none;
}

enum { DIGITS_MAX = 18 }; /* of an integer that 64 bits hold, whatever its digits are */

/* The bytes of the number or word that begins here; 0: none begins here. */
static size_t number_bytes(const char *at, const char *end)
{
    const char *from = at;
    while (at < end && (isalnum((unsigned char)*at) || *at == '-' || *at == '+' || *at == '.'))
        at++;
    return (size_t)(at - from);
}

/* Whether jansson does not read the number, and Python does. */
static bool is_of_python(const char *at, size_t bytes)
{
    static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
    size_t digits = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(words); i++)
        if (bytes == strlen(words[i]) && memcmp(at, words[i], bytes) == 0)
            return true;
    while (digits < bytes && (isdigit((unsigned char)at[digits]) || (digits == 0 && *at == '-')))
        digits++;
    return digits == bytes && digits > DIGITS_MAX;
}

/* The first such number, with its bytes; end: there is none. */
static const char *find_of_python(const char *at, const char *end, size_t *bytes)
{
    while (at < end) {
        *bytes = number_bytes(at, end);
        if (*bytes > 0 && is_of_python(at, *bytes))
            return at;
        at = *bytes > 0 ? at + *bytes : *at == '"' ? skip_string(at, end) : at + 1;
    }
    *bytes = 0;
    return end;
}

bool json_text_quote_numbers(struct text_span text, attn_arena *arena, struct text_span *quoted)
{
    const char *end = text.at + text.length, *from = text.at;
    size_t room = text.length, length = 0, bytes;
    *quoted = text;
    for (const char *at = find_of_python(from, end, &bytes); at < end; at = find_of_python(at + bytes, end, &bytes))
        room += 2;
    if (room == text.length)
        return true;
    char *copy = attn_arena_take(arena, room, 1);
    while (copy != NULL && from < end) {
        const char *at = find_of_python(from, end, &bytes);
        const size_t before = (size_t)(at - from);
        if (before + bytes + (bytes > 0 ? 2 : 0) > room - length)
            break; /* another program writes to the text */
        memcpy(copy + length, from, before);
        length += before;
        if (bytes > 0) {
            copy[length] = copy[length + bytes + 1] = '"';
            memcpy(copy + length + 1, at, bytes);
            length += bytes + 2;
        }
        from = at + bytes;
    }
    *quoted = (struct text_span){copy, length};
    return copy != NULL;
}

size_t json_text_items(struct text_span collection)
{
    size_t items = 0;
    if (!is_collection(collection))
        return 0;
    const char *last = collection.at + collection.length - 1;
    for (const char *at = skip_space(collection.at + 1, last); at < last; at++, items++)
        at = skip_value(at, last);
    return items;
}

/* ---- pieces ---- */

/* The comma at which a piece that begins here ends, or the closing bracket. */
static const char *piece_end(const char *from, const char *last)
{
    const char *at = skip_value(from, last);
    while (at < last && at - from < PIECE_BYTES)
        at = skip_value(at + 1, last);
    return at;
}

struct reader {
    struct text_span collection;
    attn_arena *scratch;
    json_piece_function *each;
    void *context;
    json_error_t *error;
    attn_error *err;
    size_t index, items; /* of the first item of the next piece; of all together */
};

/* Fails: jansson refuses the piece that begins at, or the piece has another number of items than it can have. */
static attn_status fail_piece(const struct reader *reader, const char *at, bool is_read)
{
    if (is_read)
        *reader->error = (json_error_t){.line = 1, .text = "the number of items is not that of the commas"};
    reader->error->position += (int)(at - reader->collection.at) - 1;
    return ATTN_ERR_SYNTAX;
}

/* Reads the items of the text at[0 .. length). Only the piece of an empty collection has none. */
static attn_status read_piece(struct reader *reader, const char *at, size_t length)
{
    const struct text_span collection = reader->collection;
    char *copy = attn_arena_take(reader->scratch, length + 2, 1);
    if (copy == NULL)
        return attn_fail_no_memory(reader->err);
    copy[0] = collection.at[0];
    memcpy(copy + 1, at, length);
    copy[length + 1] = collection.at[collection.length - 1];
    json_t *piece = json_tree_load(copy, length + 2, reader->scratch, reader->error);
    const size_t items = json_is_object(piece) ? json_object_size(piece) : json_array_size(piece);
    if (piece == NULL || items > reader->items - reader->index || (items == 0 && length + 2 < collection.length))
        return fail_piece(reader, at, piece != NULL);
    reader->error->line = 0;
    const attn_status status = reader->each(reader->context, piece, reader->index);
    reader->index += items;
    json_decref(piece);
    return status;
}

attn_status json_pieces_each(struct text_span collection, size_t items, attn_arena *scratch, json_piece_function *each,
                             void *context, json_error_t *error, attn_error *err)
{
    const char *last = collection.at + collection.length - 1;
    struct reader reader = {.collection = collection,
                            .scratch = scratch,
                            .each = each,
                            .context = context,
                            .error = error,
                            .items = items,
                            .err = err};
    attn_status status = ATTN_OK;
    *error = (json_error_t){.line = 0};
    for (const char *at = collection.at + 1, *end; status == ATTN_OK && at <= last; at = end + 1) {
        const attn_arena_mark mark = attn_arena_mark_here(scratch);
        end = piece_end(at, last);
        status = read_piece(&reader, at, (size_t)(end - at));
        attn_arena_release(scratch, mark);
    }
    return status;
}
