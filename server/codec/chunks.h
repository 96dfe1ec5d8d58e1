/*
 * chunks.h: text or bytes that grow in an arena as a list of chunks, ready to be sent in order.
 */
#ifndef CODEC_CHUNKS_H
#define CODEC_CHUNKS_H

#include "attn/arena.h"

struct chunk {
    struct chunk *next;
    char *data;
    size_t length, capacity;
};

/* Everything lives in arena. Once a write failed, all later ones do nothing and is_ok stays false. */
struct chunks {
    attn_arena *arena;
    struct chunk *first, *last;
    size_t total_bytes;
    bool is_ok;
};

struct chunks chunks_begin(attn_arena *arena);
/* Room for at least want bytes in one piece, to be filled and then committed; NULL without memory. */
char *chunks_reserve(struct chunks *chunks, size_t want);
/* The first used bytes of the last reservation are content now. */
void chunks_commit(struct chunks *chunks, size_t used);
void chunks_text(struct chunks *chunks, const char *text);
/* Appends bytes without copying them: they must stay as they are, as long as the chunks are used. */
void chunks_borrow(struct chunks *chunks, const void *bytes, size_t length);
/* All of it as one terminated text in the arena; NULL without memory. */
char *chunks_join(const struct chunks *chunks);
void chunks_bytes(struct chunks *chunks, const char *bytes, size_t length);
void chunks_format(struct chunks *chunks, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* text as a JSON string with quotes: escapes controls, quote, backslash; the bytes must be UTF-8 (else U+FFFD). */
void chunks_json_string(struct chunks *chunks, const char *text);
/* Moves all chunks of tail behind those of chunks; both must share the arena or outlive it. tail is then empty. */
void chunks_append(struct chunks *chunks, struct chunks *tail);

#endif
