/* pieces.c: reads a long list or object of JSON in pieces. */
#include "codec/json/pieces.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "codec/bytes/utf8.h"
#include "codec/number/number.h"

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

/* The comma or the bracket behind the value that begins here. *commas is how many stand between its own items. */
static const char *skip_value(const char *at, const char *end, size_t *commas)
{
    size_t depth = 0;
    *commas = 0;
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
        *commas += depth == 1 && c == ',';
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

static struct json_collection collection_of(struct text_span text, size_t commas)
{
    if (!is_collection(text))
        return (struct json_collection){.items = 0};
    const char *last = text.at + text.length - 1;
    return (struct json_collection){text, skip_space(text.at + 1, last) < last ? commas + 1 : 0};
}

struct json_collection json_collection_of(struct text_span text)
{
    const struct text_span value = text.at != NULL ? trimmed(text.at, text.at + text.length) : text;
    size_t commas = 0;
    if (is_collection(value))
        (void)skip_value(value.at, value.at + value.length, &commas);
    return collection_of(value, commas);
}

void json_text_find(struct text_span object, const char *const *names, size_t count, struct json_collection *found)
{
    const struct text_span whole = object.at != NULL ? trimmed(object.at, object.at + object.length) : object;
    memset(found, 0, count * sizeof *found);
    if (!is_collection(whole))
        return;
    const char *end = whole.at + whole.length;
    for (const char *at = skip_space(whole.at + 1, end); at < end && *at == '"';) {
        const char *key = at + 1, *key_end = skip_string(at, end), *colon = skip_space(key_end, end);
        size_t commas;
        if (colon == end || *colon != ':')
            break;
        const char *value_end = skip_value(colon + 1, end, &commas);
        for (size_t i = 0; i < count; i++)
            if ((size_t)(key_end - key) == strlen(names[i]) + 1 && memcmp(key, names[i], strlen(names[i])) == 0)
                found[i] = collection_of(trimmed(colon + 1, value_end), commas);
        at = value_end < end && *value_end == ',' ? skip_space(value_end + 1, end) : end;
    }
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

/* ---- plain items ---- */

struct reader {
    struct text_span collection;
    attn_arena *scratch;
    const struct json_taker *taker;
    void *context;
    json_error_t *error;
    attn_error *err;
    size_t index, items; /* of the next item; of all together */
};

/* The character of the escape at *from, behind its backslash. 0: jansson reads it, or refuses it. */
static uint32_t read_escape(char **from, const char *end)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    char digits[5] = "";
    const char letter = *from < end ? *(*from)++ : '\0';
    const char *known = letter != '\0' ? strchr(letters, letter) : NULL;
    if (known != NULL)
        return (unsigned char)meanings[known - letters];
    if (letter != 'u' || end - *from < 4)
        return 0;
    memcpy(digits, *from, 4);
    if (strspn(digits, "0123456789abcdefABCDEF") != 4) /* strtoul reads 0x, too */
        return 0;
    *from += 4;
    const unsigned long c = strtoul(digits, NULL, 16);
    return c < 0xD800 || c > 0xDFFF ? (uint32_t)c : 0;
}

/* Decodes the string at *at in its place, with a NUL at its end. False: it is not plain. */
static bool read_string(char **at, const char *end, struct text_span *text)
{
    char *from = *at, *to = from + 1;
    if (from >= end || *from++ != '"')
        return false;
    text->at = to;
    while (from < end && *from != '"') {
        const size_t bytes = (unsigned char)*from < 0x20 ? 0 : utf8_length(from);
        if (*from == '\\') {
            from++;
            const uint32_t c = read_escape(&from, end);
            if (c == 0)
                return false;
            to = utf8_write(to, c);
            continue;
        }
        if (bytes == 0)
            return false;
        for (size_t i = 0; i < bytes; i++)
            *to++ = *from++;
    }
    if (from >= end)
        return false;
    text->length = (size_t)(to - text->at);
    *to = '\0';
    *at = from + 1;
    return true;
}

static bool read_number(char **at, const char *end, struct json_item *item)
{
    const char *behind = number_read_f64(*at, end, &item->number);
    item->has_number = behind != NULL && isfinite(item->number);
    if (item->has_number)
        *at += behind - *at;
    return item->has_number;
}

/* Whether c is the next character behind white space; if so, moves past it. */
static bool take_between(char **at, const char *end, char c)
{
    *at += skip_space(*at, end) - *at;
    const bool is_here = *at < end && **at == c;
    *at += is_here ? skip_space(*at + 1, end) - *at : 0;
    return is_here;
}

static bool read_item(char **at, const char *end, bool is_member, struct json_item *item)
{
    *item = (struct json_item){.has_number = false};
    *at += skip_space(*at, end) - *at;
    if (is_member)
        return read_string(at, end, &item->text) && take_between(at, end, ':') && read_number(at, end, item);
    if (!take_between(at, end, '['))
        return read_string(at, end, &item->text);
    return read_string(at, end, &item->text) && take_between(at, end, ',') &&
           (read_string(at, end, &item->second) || read_number(at, end, item)) && take_between(at, end, ']');
}

/*
 * Has the plain items of a copy of the text taken. Returns the bytes of these, each with the comma or the bracket behind it,
 * which is not in the copy when the text ends with it.
 */
static size_t take_plain(struct reader *reader, char *copy, size_t length, bool is_end)
{
    const bool is_object = *reader->collection.at == '{';
    const char *end = copy + length;
    struct json_item item;
    size_t done = 0;
    for (char *at = copy; reader->index < reader->items && read_item(&at, end, is_object, &item); at++) {
        at += skip_space(at, end) - at;
        if ((at < end ? *at != ',' : !is_end) || !reader->taker->item(reader->context, &item, reader->index))
            break;
        reader->index++;
        done = (size_t)(at - copy) + 1;
    }
    return done;
}

/* ---- pieces ---- */

/* The comma at which a piece that begins here ends, or the closing bracket. */
static const char *piece_end(const char *from, const char *last)
{
    size_t commas;
    const char *at = skip_value(from, last, &commas);
    while (at < last && at - from < PIECE_BYTES)
        at = skip_value(at + 1, last, &commas);
    return at;
}

/* Fails: jansson refuses the piece that begins at, or the piece has another number of items than it can have. */
static attn_status fail_piece(const struct reader *reader, const char *at, bool is_read)
{
    if (is_read)
        *reader->error = (json_error_t){.line = 1, .text = "the number of items is not that of the commas"};
    reader->error->position += (int)(at - reader->collection.at) - 1;
    return ATTN_ERR_SYNTAX;
}

/* Has the items of the text at[0 .. length) taken by their tree. Only the piece of an empty collection has none. */
static attn_status take_tree(struct reader *reader, const char *at, size_t length)
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
    const attn_status status = reader->taker->piece(reader->context, piece, reader->index);
    reader->index += items;
    json_decref(piece);
    return status;
}

/* Reads the next items from at on. Returns where the items behind them begin: behind last, there are none. */
static const char *read_piece(struct reader *reader, const char *at, const char *last, attn_status *status)
{
    const bool is_end = last - at <= PIECE_BYTES;
    const size_t length = is_end ? (size_t)(last - at) : PIECE_BYTES;
    char *copy = attn_arena_take(reader->scratch, length + 1, 1);
    if (copy == NULL) {
        *status = attn_fail_no_memory(reader->err);
        return at;
    }
    memcpy(copy, at, length);
    copy[length] = '\0';
    const size_t done = take_plain(reader, copy, length, is_end);
    if (done > 0)
        return at + done;
    const char *end = piece_end(at, last);
    *status = take_tree(reader, at, (size_t)(end - at));
    return end + 1;
}

attn_status json_pieces_each(const struct json_collection *collection, attn_arena *scratch,
                             const struct json_taker *taker, void *context, json_error_t *error, attn_error *err)
{
    const struct text_span text = collection->text;
    const char *last = text.at + text.length - 1, *at = text.at + 1;
    struct reader reader = {.collection = text,
                            .scratch = scratch,
                            .taker = taker,
                            .context = context,
                            .error = error,
                            .items = collection->items,
                            .err = err};
    attn_status status = ATTN_OK;
    *error = (json_error_t){.line = 0};
    while (status == ATTN_OK && at <= last) {
        const attn_arena_mark mark = attn_arena_mark_here(scratch);
        at = read_piece(&reader, at, last, &status);
        attn_arena_release(scratch, mark);
        if (status == ATTN_OK && attn_arena_is_cancelled(scratch))
            status = attn_fail(err, ATTN_ERR_CANCELLED, NULL, "cancelled while a file was read");
    }
    return status;
}
