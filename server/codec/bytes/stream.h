/*
 * stream.h: an answer that is written while it is sent: batch by batch, in order, within a bounded memory.
 *
 * chunks are the text that is there and, between, the parts that are not (struct deferred). A batch is what comes next
 * of both; its deferred pieces are formatted by all idle threads, then compressed when the answer is. Two batches make
 * a window: one is sent while the other is filled. The text depends neither on the threads nor on the batches.
 */
#ifndef CODEC_BYTES_STREAM_H
#define CODEC_BYTES_STREAM_H

#include "attn/runtime.h"
#include "codec/bytes/chunks.h"
#include "codec/bytes/coding.h"

enum {
    STREAM_FROM_BYTES = 1 << 20,  /* answers that cannot be as large are written as a whole */
    STREAM_BATCH_BYTES = 2 << 20, /* deferred text of a batch, unless one piece alone is larger */
    STREAM_BATCH_CHUNKS = 64,
    STREAM_BYTES_MAX = 4 * STREAM_BATCH_BYTES /* what two batches take, compressed text included */
};

/* To be sent: the list from first on. */
struct stream_batch {
    const struct chunk *first;
    struct chunk written[STREAM_BATCH_CHUNKS];
    char *room;             /* of the deferred pieces */
    attn_arena *compressed; /* NULL: none */
};

struct stream {
    struct stream_batch batch[2];
    const struct chunk *next; /* NULL: all is in batches */
    size_t next_piece;        /* of next, when that is deferred */
    size_t piece_bytes, batch_pieces;
    struct compressor *compressor; /* NULL: none */
    attn_budget *budget;
};

/* From chunks, whose arena it shares; budget counts what is taken beside it. False without memory. */
ATTN_MUST_CHECK bool stream_begin(struct stream *stream, const struct chunks *chunks, attn_budget *budget);
/* From the next batch on, and with batch 0 if that is filled already. False without memory. */
ATTN_MUST_CHECK bool stream_compress(struct stream *stream, enum coding coding, attn_arena *arena);
/* Whether every batch was filled. */
bool stream_is_over(const struct stream *stream);
/* Writes what comes next into batch index, whose old content is lost. One call at a time. False without memory. */
ATTN_MUST_CHECK bool stream_fill(struct stream *stream, size_t index, const attn_runtime *runtime);
/* The largest chunk of a batch, to see whether it is worth compressing; NULL when there is none. */
const struct chunk *stream_sample(const struct stream *stream, size_t index);
/* Gives back what is not in the arena. */
void stream_end(struct stream *stream);

#endif
