/*
 * draft.h: a text while normalizers and pre-tokenizers change it. Each byte knows the characters of the original text
 * that it stands for, so every token has offsets in the original.
 *
 * A draft consists of pieces in order. A piece is still text, or it is an added token. Steps either rewrite all pieces
 * of text (draft_rewrite) or split them (draft_split); each takes linear time. The outcome remembers the first
 * failure, and everything after it does nothing.
 */
#ifndef CODEC_TOKENIZER_TEXT_DRAFT_H
#define CODEC_TOKENIZER_TEXT_DRAFT_H

#include <stdint.h>

#include "codec/bytes/outcome.h"
#include "codec/bytes/pace.h"
#include "codec/tokenizer/text/pattern.h"

/* Characters of the original text, counted in code points. */
struct origin {
    uint32_t begin, end;
};

#define PIECE_IS_TEXT UINT32_MAX

struct piece {
    uint32_t begin, end; /* bytes of the draft */
    uint32_t first;      /* the character of the original where the piece begins */
    uint32_t id;         /* of an added token, or PIECE_IS_TEXT */
};

/* A part of a piece, relative to the draft. Is a match of a pattern, or lies between matches. */
struct draft_span {
    uint32_t begin, end;
    bool is_match;
    uint32_t id; /* of an added token, or PIECE_IS_TEXT */
};

struct draft_text {
    char *bytes; /* UTF-8; a NUL stands behind the last byte */
    struct origin *origins;
    size_t length, capacity, origin_capacity;
};

struct draft_pieces {
    struct piece *items;
    size_t count, capacity;
};

/* A block that an array has outgrown, for the next array that grows. */
struct draft_spare {
    void *at;
    size_t bytes;
};

enum { DRAFT_SPARES = 8 };

struct draft {
    struct outcome outcome;
    struct draft_spare spares[DRAFT_SPARES];
    struct pace pace;
    struct draft_text text, next_text;
    struct draft_pieces pieces, next_pieces;
    struct draft_span *spans;
    size_t span_count, span_capacity;
    struct pattern_search search;
};

/* What becomes of the matches of a pattern when a piece is split. */
enum draft_behavior {
    DRAFT_REMOVED,
    DRAFT_ISOLATED,
    DRAFT_MERGED_WITH_PREVIOUS,
    DRAFT_MERGED_WITH_NEXT,
    DRAFT_CONTIGUOUS,
};

/* Longer texts are refused. */
enum { DRAFT_BYTES_MAX = 1 << 30 };

static inline bool draft_has_failed(const struct draft *draft)
{
    return outcome_has_failed(&draft->outcome);
}

/*
 * A draft of one piece. name stands for the text in messages: "the text". Memory comes from arena.
 *   ATTN_ERR_SYNTAX     the text is not UTF-8
 *   ATTN_ERR_VALUE      the text holds U+0000
 *   ATTN_ERR_TOO_LARGE, ATTN_ERR_NO_MEMORY, ATTN_ERR_CANCELLED
 */
attn_status draft_begin(struct draft *draft, const char *name, const char *text, size_t length, attn_arena *arena,
                        attn_error *err);

/* Counts bytes of work. True: stop, because of the deadline or an earlier failure. */
bool draft_stops(struct draft *draft, size_t bytes);
/* Enlarges an array in the draft's arena to at least wanted items. False without memory. */
bool draft_grow(struct draft *draft, void **items, size_t *capacity, size_t wanted, size_t item_bytes);

/* Appends a rewritten version of a piece of draft->text, by the functions below. */
typedef void draft_edit(struct draft *draft, const struct piece *piece, const void *options);
void draft_rewrite(struct draft *draft, draft_edit *edit, const void *options);
/* Appends a visible character for each byte (unicode_of_byte). */
draft_edit draft_spell_bytes;
/* Appends a character. */
void draft_put(struct draft *draft, uint32_t c, struct origin origin);
/* Appends UTF-8 text, all of it from the same origin. */
void draft_put_text(struct draft *draft, const char *text, size_t length, struct origin origin);
/* Appends bytes of draft->text unchanged. */
void draft_put_old(struct draft *draft, size_t begin, size_t end);

/*
 * Appends characters that stand for characters of a piece in order. A character with change 0 replaces the next one of
 * the piece; with change -n, the next one and n more. A positive change inserts the character, which then has the origin
 * of the last one replaced.
 */
struct draft_transform {
    struct draft *draft;
    const struct piece *piece;
    size_t at; /* in draft->text: the next character to be replaced */
};
struct draft_transform draft_transform_begin(struct draft *draft, const struct piece *piece);
void draft_transform_put(struct draft_transform *transform, uint32_t c, int64_t change);

/* Appends to draft->spans, in order: parts that cover the whole piece. An empty part is allowed. */
typedef void draft_find(struct draft *draft, const struct piece *piece, const void *options);
void draft_split(struct draft *draft, draft_find *find, const void *options, enum draft_behavior behavior);
void draft_add_span(struct draft *draft, size_t begin, size_t end, bool is_match);
/* The same with the id of an added token; the behavior of its split must be DRAFT_ISOLATED. */
void draft_add_token(struct draft *draft, size_t begin, size_t end, uint32_t id);
/* Adds spans for the whole piece: the matches, and what lies between. inverted: what lies between counts as matches. */
void draft_add_matches(struct draft *draft, const struct piece *piece, const struct pattern *pattern, bool inverted);

/* Reads the character at draft->text.bytes[at]; *at moves behind it. */
uint32_t draft_next(const struct draft *draft, size_t *at);
/* The start of the character before at, which is not at the beginning of the draft. */
size_t draft_before(const struct draft *draft, size_t at);

#endif
