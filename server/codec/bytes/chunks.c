/*
 * chunks.c: text that grows in an arena. Each chunk is twice as large as the one before, up to CHUNK_BYTES_MAX. So a
 * small answer takes little memory, and a large one has few chunks.
 */
#include "codec/bytes/chunks.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "codec/bytes/pace.h"
#include "codec/bytes/utf8.h"

enum { CHUNK_BYTES_FIRST = 1 << 10, CHUNK_BYTES_MAX = 256 << 10 };

struct chunks chunks_begin(attn_arena *arena)
{
    return (struct chunks){.arena = arena, .is_ok = true};
}

static struct chunk *new_chunk(attn_arena *arena, size_t capacity)
{
    struct chunk *chunk = NULL;
    if (capacity <= SIZE_MAX - sizeof *chunk)
        chunk = attn_arena_take(arena, sizeof *chunk + capacity, 1);
    if (chunk != NULL)
        *chunk = (struct chunk){.data = (char *)(chunk + 1), .capacity = capacity};
    return chunk;
}

static void link_chunk(struct chunks *chunks, struct chunk *chunk)
{
    if (chunks->last == NULL)
        chunks->first = chunk;
    else
        chunks->last->next = chunk;
    chunks->last = chunk;
}

static void count_bytes(struct chunks *chunks, size_t bytes)
{
    bool is_unknown = chunks->total_bytes == CHUNKS_LENGTH_UNKNOWN || bytes == CHUNKS_LENGTH_UNKNOWN;
    chunks->total_bytes = is_unknown ? CHUNKS_LENGTH_UNKNOWN : chunks->total_bytes + bytes;
}

/*
 * The new chunk is twice as large as the last one, its header included, but within bounds. It has exactly the bytes
 * that are wanted when these are more, or when memory is short. When the request was cancelled, no chunk is made: the
 * writer then stops as it does without memory.
 */
static struct chunk *add_chunk(struct chunks *chunks, size_t want)
{
    size_t bytes = CHUNK_BYTES_FIRST;
    if (attn_arena_is_cancelled(chunks->arena))
        return NULL;
    if (chunks->last != NULL && chunks->last->data != NULL)
        bytes = chunks->last->capacity < CHUNK_BYTES_MAX / 2 ? 2 * (chunks->last->capacity + sizeof(struct chunk))
                                                             : CHUNK_BYTES_MAX;
    size_t usual = bytes - sizeof(struct chunk);
    struct chunk *chunk = usual > want ? new_chunk(chunks->arena, usual) : NULL;
    if (chunk == NULL)
        chunk = new_chunk(chunks->arena, want);
    if (chunk != NULL)
        link_chunk(chunks, chunk);
    return chunk;
}

char *chunks_reserve(struct chunks *chunks, size_t want)
{
    if (!chunks->is_ok)
        return NULL;
    struct chunk *last = chunks->last;
    if (last == NULL || last->capacity - last->length < want)
        last = add_chunk(chunks, want);
    chunks->is_ok = last != NULL;
    return last == NULL ? NULL : last->data + last->length;
}

void chunks_commit(struct chunks *chunks, size_t used)
{
    if (!chunks->is_ok || chunks->last == NULL)
        return;
    chunks->last->length += used;
    count_bytes(chunks, used);
}

void chunks_defer(struct chunks *chunks, const struct deferred *deferred)
{
    assert(chunks->may_defer);
    struct chunk *chunk = chunks->is_ok ? attn_arena_take(chunks->arena, 1, sizeof *chunk) : NULL;
    chunks->is_ok = chunk != NULL;
    if (chunk == NULL)
        return;
    *chunk = (struct chunk){.deferred = deferred};
    link_chunk(chunks, chunk);
    chunks->has_deferred = true;
    count_bytes(chunks, deferred->total_bytes);
}

void chunks_bytes(struct chunks *chunks, const char *bytes, size_t length)
{
    char *to = length == 0 ? NULL : chunks_reserve(chunks, length);
    if (to == NULL)
        return;
    memcpy(to, bytes, length);
    chunks_commit(chunks, length);
}

void chunks_count(struct chunks *chunks, uint64_t count)
{
    char text[TEXT_COUNT_MAX];
    chunks_bytes(chunks, text, (size_t)(text_write_count(text, count) - text));
}

void chunks_borrow(struct chunks *chunks, const void *bytes, size_t length)
{
    struct chunk *chunk = NULL;
    if (chunks->is_ok && length > 0) {
        chunk = new_chunk(chunks->arena, 0);
        chunks->is_ok = chunk != NULL;
    }
    if (chunk == NULL)
        return;
    chunk->data = (char *)(uintptr_t)bytes; /* the chunk is full from the beginning, so nobody writes to it */
    chunk->length = chunk->capacity = length;
    link_chunk(chunks, chunk);
    count_bytes(chunks, length);
}

char *chunks_join(const struct chunks *chunks)
{
    assert(!chunks->has_deferred);
    char *text = chunks->is_ok ? attn_arena_take(chunks->arena, chunks->total_bytes + 1, 1) : NULL;
    if (text == NULL)
        return NULL;
    struct pace pace = pace_begin(chunks->arena);
    char *to = text;
    for (const struct chunk *chunk = chunks->first; chunk != NULL; chunk = chunk->next) {
        for (size_t at = 0, some; at < chunk->length; at += some, to += some) {
            some = chunk->length - at < PACE_BYTES ? chunk->length - at : PACE_BYTES;
            if (pace_stops(&pace, some))
                return NULL;
            memcpy(to, chunk->data + at, some);
        }
    }
    *to = '\0';
    return text;
}

/* Most texts are short and fit into the first room. A longer text is formatted a second time, into enough room. */
void chunks_format(struct chunks *chunks, const char *format, ...)
{
    enum { SHORT = 128 };
    size_t room = SHORT;
    char *to = chunks_reserve(chunks, room);
    for (; to != NULL; to = chunks_reserve(chunks, room)) {
        va_list arguments;
        va_start(arguments, format);
        const int length = vsnprintf(to, room, format, arguments);
        va_end(arguments);
        chunks->is_ok = length >= 0;
        if (length >= 0 && (size_t)length < room) {
            chunks_commit(chunks, (size_t)length);
            return;
        }
        room = (size_t)length + 1;
    }
}

/* The escape of a character that JSON text may not hold as it is; NULL for every other character. */
static const char *json_escape(unsigned char character, char scratch[8])
{
    switch (character) {
    case '"':
        return "\\\"";
    case '\\':
        return "\\\\";
    case '\n':
        return "\\n";
    case '\r':
        return "\\r";
    case '\t':
        return "\\t";
    }
    if (character >= 0x20)
        return NULL;
    snprintf(scratch, 8, "\\u%04x", character);
    return scratch;
}

size_t chunks_json_bytes(struct text_span text)
{
    char scratch[8];
    size_t bytes = 2;
    for (size_t i = 0; i < text.length; i++) {
        const char *instead = json_escape((unsigned char)text.at[i], scratch);
        bytes += instead != NULL ? strlen(instead) : 1;
    }
    return bytes;
}

void chunks_json_string(struct chunks *chunks, const char *text)
{
    chunks_json_span(chunks, text_span_of(text));
}

/* The length of the character at, or 0, without a look behind end. */
static size_t length_within(const char *at, const char *end)
{
    char last[4] = "";
    if (end - at >= (ptrdiff_t)sizeof last)
        return utf8_length(at);
    memcpy(last, at, (size_t)(end - at)); /* the NUL behind them ends a character that is cut off */
    return utf8_length(last);
}

void chunks_json_span(struct chunks *chunks, struct text_span text)
{
    chunks_bytes(chunks, "\"", 1);
    const char *at = text.at, *end = text.at + text.length;
    const char *run = at; /* the characters from here on have not been appended yet */
    while (at < end && chunks->is_ok) {
        char scratch[8];
        size_t length = length_within(at, end);
        const char *instead = length == 0 ? "\xEF\xBF\xBD" : json_escape((unsigned char)*at, scratch);
        if (instead != NULL) {
            chunks_bytes(chunks, run, (size_t)(at - run));
            chunks_text(chunks, instead);
            run = at + 1;
        }
        at += length == 0 ? 1 : length;
    }
    chunks_bytes(chunks, run, (size_t)(at - run));
    chunks_bytes(chunks, "\"", 1);
}

void chunks_append(struct chunks *chunks, struct chunks *tail)
{
    chunks->is_ok = chunks->is_ok && tail->is_ok;
    if (tail->first != NULL) {
        if (chunks->last == NULL)
            chunks->first = tail->first;
        else
            chunks->last->next = tail->first;
        chunks->last = tail->last;
        chunks->has_deferred |= tail->has_deferred;
        count_bytes(chunks, tail->total_bytes);
    }
    *tail = chunks_begin(tail->arena);
}

size_t chunks_copy(const struct chunk **at, size_t *offset, char *to, size_t most)
{
    size_t copied = 0;
    while (*at != NULL && copied < most) {
        const size_t left = (*at)->length - *offset, step = left < most - copied ? left : most - copied;
        memcpy(to + copied, (*at)->data + *offset, step);
        copied += step;
        *offset += step;
        if (*offset < (*at)->length)
            break;
        *at = (*at)->next;
        *offset = 0;
    }
    return copied;
}
