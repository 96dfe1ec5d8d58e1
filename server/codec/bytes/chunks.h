/*
 * chunks.h: text or bytes that grow in an arena as a list of chunks, ready to be sent in order. Large parts may be
 * written later, while the answer is sent (stream.h).
 */
#ifndef CODEC_BYTES_CHUNKS_H
#define CODEC_BYTES_CHUNKS_H

#include <stdint.h>
#include <string.h>

#include "attn/arena.h"
#include "base/text.h"

/*
 * A part that is written later. Any thread may write any of its pieces, in any order, as long as the arena lives. write
 * stores the piece of that index at to, at most piece_bytes_max bytes, and returns its length.
 */
struct deferred {
    size_t (*write)(const void *context, size_t index, char *to);
    const void *context;
    size_t pieces, piece_bytes_max;
    size_t total_bytes; /* of all pieces; CHUNKS_LENGTH_UNKNOWN when it is known only after writing */
};

#define CHUNKS_LENGTH_UNKNOWN SIZE_MAX

struct chunk {
    struct chunk *next;
    char *data; /* NULL: the chunk is the part deferred */
    size_t length, capacity;
    const struct deferred *deferred;
};

/* Everything lives in arena. Once a write failed, all later ones do nothing and is_ok stays false. */
struct chunks {
    attn_arena *arena;
    struct chunk *first, *last;
    size_t total_bytes; /* CHUNKS_LENGTH_UNKNOWN once a part of unknown length was deferred */
    bool is_ok;
    bool may_defer; /* the sender of these chunks writes deferred parts; set it before anything is appended */
    bool has_deferred;
};

struct chunks chunks_begin(attn_arena *arena);
/* Room for at least want bytes in one piece. The caller fills it and then commits it. NULL without memory. */
char *chunks_reserve(struct chunks *chunks, size_t want);
/* Makes the first used bytes of the last reservation part of the text. */
void chunks_commit(struct chunks *chunks, size_t used);
/* Appends bytes without copying them: they must stay as they are, as long as the chunks are used. */
void chunks_borrow(struct chunks *chunks, const void *bytes, size_t length);
/* The whole text, terminated, in the arena. No part may be deferred. NULL without memory. */
char *chunks_join(const struct chunks *chunks);
/*
 * Copies the next bytes, at most most, and moves *at and *offset behind them; *at NULL is the end. No chunk may be deferred.
 * Returns how many there were.
 */
size_t chunks_copy(const struct chunk **at, size_t *offset, char *to, size_t most);
void chunks_bytes(struct chunks *chunks, const char *bytes, size_t length);
/* Inline, because most texts are constants, whose length the compiler knows. */
static inline void chunks_text(struct chunks *chunks, const char *text)
{
    chunks_bytes(chunks, text, strlen(text));
}
void chunks_count(struct chunks *chunks, uint64_t count); /* Appends count in decimal digits. */
void chunks_format(struct chunks *chunks, const char *format, ...) __attribute__((format(printf, 2, 3)));
/*
 * Appends text as a JSON string in quotes. Controls, quotes and backslashes are escaped. Bytes that are not UTF-8
 * become U+FFFD. The text of a span may hold U+0000, and a NUL stands behind it too.
 */
void chunks_json_string(struct chunks *chunks, const char *text);
void chunks_json_span(struct chunks *chunks, struct text_span text);
/* The bytes that this appends of valid UTF-8. */
size_t chunks_json_bytes(struct text_span text);
/* Appends a part that is written later. deferred and its context live in the arena. Only when may_defer is set. */
void chunks_defer(struct chunks *chunks, const struct deferred *deferred);
/* Moves all chunks of tail behind those of chunks; both must share the arena or outlive it. tail is then empty. */
void chunks_append(struct chunks *chunks, struct chunks *tail);

#endif
