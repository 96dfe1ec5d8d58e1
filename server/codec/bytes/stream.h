/*
 * stream.h: an answer that is written while it is sent: batch by batch, in order, within a bounded memory.
 *
 * The chunks of an answer are text, and parts that are not written yet (struct deferred). A batch is the next run of
 * chunks. All idle threads format the deferred pieces of a batch; then the batch is compressed, if the answer is. There
 * are two batches: one is sent while the other is filled. Neither the number of threads nor the size of batches changes
 * the text.
 */
#ifndef CODEC_BYTES_STREAM_H
#define CODEC_BYTES_STREAM_H

#include "attn/runtime.h"
#include "codec/bytes/chunks.h"
#include "codec/bytes/coding.h"

enum {
    STREAM_FROM_BYTES = 1 << 20,  /* smaller answers are written as a whole */
    STREAM_BATCH_BYTES = 2 << 20, /* the deferred text of a batch, unless a single piece is larger */
    STREAM_BATCH_CHUNKS = 64,
    STREAM_BYTES_MAX = 4 * STREAM_BATCH_BYTES /* the memory of two batches, with their compressed text */
};

/* The chunks to send: the list from first on. */
struct stream_batch {
    const struct chunk *first;
    struct chunk written[STREAM_BATCH_CHUNKS];
    char *room;             /* the memory of the deferred pieces */
    attn_arena *compressed; /* the compressed text; NULL: none */
};

struct stream {
    struct stream_batch batch[2];
    const struct chunk *next; /* the next chunk to put into a batch; NULL: all chunks are in batches */
    size_t next_piece;        /* the next piece of next, when next is deferred */
    size_t piece_bytes, batch_pieces;
    struct compressor *compressor; /* NULL: none */
    attn_budget *budget;
};

/* Begins the stream of chunks, in their arena. budget counts the memory beside that arena. False without memory. */
ATTN_MUST_CHECK bool stream_begin(struct stream *stream, const struct chunks *chunks, attn_budget *budget);
/* Compresses batch 0, if it is filled already, and all later ones. False without memory. */
ATTN_MUST_CHECK bool stream_compress(struct stream *stream, enum coding coding, attn_arena *arena);
/* Whether every batch was filled. */
bool stream_is_over(const struct stream *stream);
/* Fills batch index with the next chunks; its old content is lost. One call at a time. False without memory. */
ATTN_MUST_CHECK bool stream_fill(struct stream *stream, size_t index, const attn_runtime *runtime);
/* The largest chunk of a batch, as a sample for coding_is_worth. NULL when the batch is empty. */
const struct chunk *stream_sample(const struct stream *stream, size_t index);
/* Releases the memory that is not in the arena. */
void stream_end(struct stream *stream);

#endif
