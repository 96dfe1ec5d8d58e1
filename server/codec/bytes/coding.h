/*
 * coding.h: the content codings of bodies and answers: gzip (RFC 1952), zstd (RFC 8878), and deflate, which is HTTP's
 * name for the zlib format (RFC 1950).
 *
 * Only this file and coding.c know zlib and zstd. A body is expanded up to a limit. An answer is compressed piece by
 * piece as it is written.
 */
#ifndef CODEC_BYTES_CODING_H
#define CODEC_BYTES_CODING_H

#include "attn/arena.h"
#include "base/text.h"
#include "codec/bytes/chunks.h"
#include "codec/bytes/media.h"

/* The order decides when a client likes several codings equally. */
#define CODING_LIST(X)                                                                                                 \
    X(CODING_ZSTD, "zstd")                                                                                             \
    X(CODING_GZIP, "gzip")                                                                                             \
    X(CODING_DEFLATE, "deflate")

enum coding {
#define CODING_ENUM(code, name) code,
    CODING_LIST(CODING_ENUM)
#undef CODING_ENUM
        CODING_COUNT,
    CODING_IDENTITY = CODING_COUNT
};

/* A set of codings. */
#define CODING_BIT(coding) (1u << (coding))
#define CODING_ALL         (CODING_BIT(CODING_COUNT) - 1)
/*
 * The codings of answers. deflate is missing, because every client with deflate also takes gzip, and gzip is no larger.
 */
#define CODING_ANSWERS (CODING_BIT(CODING_ZSTD) | CODING_BIT(CODING_GZIP))

/* "gzip"; "identity" for CODING_IDENTITY. */
const char *coding_name(enum coding coding);

/*
 * Expands body to *text, which is in arena. A body may consist of several gzip members or zstd
 * frames.
 *   ATTN_ERR_SYNTAX     the body has another coding, or is damaged or cut off
 *   ATTN_ERR_TOO_LARGE  the text has more than limit_bytes; no more than that is ever written
 *   ATTN_ERR_NO_MEMORY
 *   ATTN_ERR_CANCELLED  the arena's watch asked to stop
 */
ATTN_MUST_CHECK attn_status coding_expand(enum coding coding, struct text_span body, size_t limit_bytes,
                                          attn_arena *arena, struct text_span *text, attn_error *err);

/* Compresses one answer. Its memory is in an arena, so nothing needs to be freed. */
struct compressor;

/*
 * likely_bytes is how much will be compressed, or CHUNKS_LENGTH_UNKNOWN; it decides the size of the tables. NULL
 * without memory.
 */
struct compressor *compressor_begin(enum coding coding, size_t likely_bytes, attn_arena *arena);
/* Compresses data and appends the output that is ready. is_last ends the stream. Without memory out->is_ok is false. */
void compressor_take(struct compressor *compressor, const char *data, size_t length, bool is_last, struct chunks *out);

enum { CODING_WORTH_BYTES = 1024 }; /* smaller answers are not compressed */

/* Whether a sample of the answer shrinks by at least a tenth. Random weights in binary form do not. */
bool coding_is_worth(const char *sample, size_t length, attn_arena *arena);
/*
 * Whether to compress an answer of that type and of at least so many bytes. sample is a part of the answer, or NULL.
 * Text always shrinks, PNG never. Numbers in binary form may or may not shrink.
 */
bool coding_is_worth_for(enum media media, const struct chunk *sample, size_t bytes, attn_arena *arena);

#endif
