/* stream.c: an answer that is written while it is sent: batch by batch, in order, within a bounded memory. */
#include "codec/bytes/stream.h"

#include <assert.h>

static size_t largest_piece(const struct chunks *chunks)
{
    size_t bytes = 0;
    for (const struct chunk *chunk = chunks->first; chunk != NULL; chunk = chunk->next)
        if (chunk->data == NULL && chunk->deferred->piece_bytes_max > bytes)
            bytes = chunk->deferred->piece_bytes_max;
    return bytes;
}

bool stream_begin(struct stream *stream, const struct chunks *chunks, attn_budget *budget)
{
    *stream = (struct stream){.next = chunks->first, .piece_bytes = largest_piece(chunks), .budget = budget};
    stream->batch_pieces = stream->piece_bytes == 0 ? 0 : STREAM_BATCH_BYTES / stream->piece_bytes;
    if (stream->batch_pieces > STREAM_BATCH_CHUNKS)
        stream->batch_pieces = STREAM_BATCH_CHUNKS;
    if (stream->batch_pieces == 0)
        stream->batch_pieces = 1;
    for (size_t i = 0; i < 2; i++) {
        stream->batch[i].room = attn_arena_take(chunks->arena, stream->batch_pieces, stream->piece_bytes);
        if (stream->batch[i].room == NULL)
            return false;
    }
    return true;
}

bool stream_is_over(const struct stream *stream)
{
    return stream->next == NULL;
}

/* A deferred piece and the place it is written to. */
struct stream_task {
    const struct deferred *deferred;
    size_t index;
    struct chunk *to;
};

static void write_piece(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct stream_task *task = (const struct stream_task *)argument + index;
    task->to->length = task->deferred->write(task->deferred->context, task->index, task->to->data);
    assert(task->to->length <= task->to->capacity);
}

static void step(struct stream *stream)
{
    const struct deferred *deferred = stream->next->data == NULL ? stream->next->deferred : NULL;
    stream->next_piece++;
    if (deferred != NULL && stream->next_piece < deferred->pieces)
        return;
    stream->next = stream->next->next;
    stream->next_piece = 0;
}

/* Lists the chunks of a batch. Text chunks are not copied. Returns the number of pieces that must be written. */
static size_t lay_out(struct stream *stream, struct stream_batch *batch, struct stream_task *tasks)
{
    size_t pieces = 0, count = 0;
    for (; stream->next != NULL && count < STREAM_BATCH_CHUNKS && pieces < stream->batch_pieces; step(stream)) {
        const struct chunk *next = stream->next;
        struct chunk *chunk = &batch->written[count];
        if (next->data != NULL) {
            *chunk = (struct chunk){.data = next->data, .length = next->length, .capacity = next->capacity};
        } else if (next->deferred->pieces == 0) {
            continue;
        } else {
            *chunk =
                (struct chunk){.data = batch->room + pieces * stream->piece_bytes, .capacity = stream->piece_bytes};
            tasks[pieces++] = (struct stream_task){next->deferred, stream->next_piece, chunk};
        }
        if (count++ > 0)
            batch->written[count - 2].next = chunk;
    }
    batch->first = count > 0 ? batch->written : NULL;
    return pieces;
}

static bool compress(struct stream *stream, struct stream_batch *batch)
{
    if (batch->compressed == NULL)
        batch->compressed = attn_arena_create_within(stream->budget, 2 * (size_t)STREAM_BATCH_BYTES);
    if (batch->compressed == NULL)
        return false;
    attn_arena_reset(batch->compressed);
    struct chunks out = chunks_begin(batch->compressed);
    for (const struct chunk *chunk = batch->first; chunk != NULL; chunk = chunk->next)
        compressor_take(stream->compressor, chunk->data, chunk->length, chunk->next == NULL && stream->next == NULL,
                        &out);
    batch->first = out.first;
    return out.is_ok;
}

bool stream_compress(struct stream *stream, enum coding coding, attn_arena *arena)
{
    stream->compressor = compressor_begin(coding, CHUNKS_LENGTH_UNKNOWN, arena);
    return stream->compressor != NULL && compress(stream, &stream->batch[0]);
}

bool stream_fill(struct stream *stream, size_t index, const attn_runtime *runtime)
{
    struct stream_task tasks[STREAM_BATCH_CHUNKS];
    struct stream_batch *batch = &stream->batch[index];
    const size_t pieces = lay_out(stream, batch, tasks);
    runtime->run(runtime->context, pieces, write_piece, tasks);
    return stream->compressor == NULL || compress(stream, batch);
}

const struct chunk *stream_sample(const struct stream *stream, size_t index)
{
    const struct chunk *largest = stream->batch[index].first;
    for (const struct chunk *chunk = largest; chunk != NULL; chunk = chunk->next)
        if (chunk->length > largest->length)
            largest = chunk;
    return largest;
}

void stream_end(struct stream *stream)
{
    for (size_t i = 0; i < 2; i++)
        attn_arena_destroy(stream->batch[i].compressed);
}
