/* vocabulary.h: the tokens of a tokenizer: text to id and id to text. */
#ifndef CODEC_TOKENIZER_MODEL_VOCABULARY_H
#define CODEC_TOKENIZER_MODEL_VOCABULARY_H

#include "attn/arena.h"
#include "base/text.h"

#define VOCABULARY_NONE UINT32_MAX

enum { VOCABULARY_IDS_MAX = 1 << 24 };

struct vocabulary_slot {
    uint32_t hash, id; /* id VOCABULARY_NONE: an empty slot */
};

struct vocabulary {
    struct text_span *texts; /* by id; at NULL: no token has the id. A NUL stands behind each */
    uint32_t size;           /* one more than the highest id */
    struct vocabulary_slot *slots;
    uint32_t slot_count;
    uint32_t model_tokens; /* how many texts the table has; added tokens are not in it */
    size_t longest;        /* bytes of the longest of these */
};

/* The memory of a vocabulary for that many tokens with ids below size, beside their texts. */
size_t vocabulary_bytes(size_t count, size_t size);
/* An empty vocabulary in arena, for that many tokens with ids below size. */
attn_status vocabulary_create(struct vocabulary *vocabulary, size_t count, size_t size, attn_arena *arena,
                              attn_error *err);
/*
 * Adds a token; its text, NUL-terminated, stays where it is. An id that is taken fails. A text that is there already
 * means the new id from now on.
 */
attn_status vocabulary_add(struct vocabulary *vocabulary, struct text_span text, uint32_t id, attn_error *err);
/* VOCABULARY_NONE when no token has that text. */
uint32_t vocabulary_find(const struct vocabulary *vocabulary, const char *text, size_t length);
/* at is NULL when no token has that id. */
struct text_span vocabulary_text(const struct vocabulary *vocabulary, uint32_t id);

#endif
