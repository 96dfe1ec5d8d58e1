/*
 * skim.h: splits the body of a request into large and small parts, in one pass.
 *
 * Arrays that begin with a number are most of a body, and never reach the JSON library: each is lifted out. So is every
 * long plain string (base64 data). The rest is the envelope, a small JSON text. Each lifted piece leaves a marker "[n]"
 * there, where n is its index in the table of lifted pieces. A client cannot write a marker: every array that begins
 * with a number is lifted, so an array of one number in the envelope is always a marker.
 *
 * Only the brackets of lifted arrays are checked here. tensor/scan.h checks the rest when it reads an array.
 */
#ifndef CODEC_JSON_SKIM_H
#define CODEC_JSON_SKIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attn/arena.h"
#include "base/text.h"
#include "codec/bytes/pace.h"

enum {
    JSON_TEXT_MAX = 1 << 20, /* bytes of the envelope of a request */
    JSON_DEPTH_MAX = 32,     /* levels of objects and arrays in it */
    JSON_POINTER_MAX = 160,  /* bytes of a JSON pointer in an error, with its NUL; longer ones are cut */
    SKIM_LONG_STRING = 1024, /* bytes: longer strings of printable ASCII without escapes are lifted */
    SKIM_LONG_SPACE = 16,    /* bytes: longer runs of white space become one space */
};

/* A piece of the body that was lifted out: text[0 .. length) from '[' to the matching ']', or from '"' to '"'. */
struct lifted_text {
    const char *text;
    size_t length;
    size_t commas; /* in an array; bounds the number of its elements */
};

/* From this anchor to the next, offsets in the body and in the envelope differ by a constant. */
struct skim_anchor {
    size_t envelope_at, body_at;
};

struct skim {
    const char *body;
    size_t body_length;
    const attn_arena *arena; /* has the watch; NULL: the work never stops */
    char *text;              /* the envelope; not terminated */
    size_t length;
    struct lifted_text *lifted;
    size_t lifted_count;
    struct skim_anchor *anchors;
    size_t anchor_count;
};

/*
 * Skims body[0 .. length) into *skim, in linear time and without recursion. The result lives in arena, and body must
 * outlive it.
 *   ATTN_ERR_SYNTAX    an array or string without end, or more than depth_max levels; line and column say where
 *   ATTN_ERR_TOO_LARGE the envelope would be longer than text_max bytes
 *   ATTN_ERR_NO_MEMORY
 */
ATTN_MUST_CHECK attn_status skim_body(const char *body, size_t length, size_t text_max, size_t depth_max,
                                      attn_arena *arena, struct skim *skim, attn_error *err);

/* Converts an offset in the envelope to the offset of the same byte in the body. */
size_t skim_body_offset(const struct skim *skim, size_t envelope_offset);

/*
 * Fills line and column of *err with the place of body[offset]; err may be NULL. Returns the status that it is given;
 * ATTN_ERR_CANCELLED, with another message, if the request was cancelled before the place was found.
 */
ATTN_MUST_CHECK attn_status skim_place(const struct skim *skim, size_t body_offset, attn_status status,
                                       attn_error *err);

/*
 * Finds the end of a JSON array, at several gigabytes per second. text[0] must be '['. Returns the byte after the ']'
 * that closes it, and counts the commas of the array outside of strings. Returns NULL when the text ends before, or when
 * pace stops the search. Only brackets are matched; the reader of the array checks whether it is JSON.
 */
const char *array_end_find(const char *text, const char *end, struct pace *pace, size_t *commas);

/* ---- extent.c: how much work the text of a request can ask for, before it is decoded ---- */

/*
 * Whether the map of the request has few cells and takes few operations, at most. text is the JSON of a body of
 * body_bytes. True is certain, false is not.
 */
bool extent_is_small(struct text_span text, uint64_t body_bytes);

#endif
