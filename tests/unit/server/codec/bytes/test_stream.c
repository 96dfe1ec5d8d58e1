/*
 * test_stream.c: tests server/codec/bytes/stream.c and deferred chunks: the batches together are the same text as one
 * write.
 */
#include "codec/bytes/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "codec/tensor/write.h"
#include "failing_take.h"

static const size_t ARENA_BYTES = (size_t)64 << 20;

static void run_backwards(void *context, size_t tasks, attn_task *task, void *argument)
{
    (void)context;
    for (size_t i = tasks; i-- > 0;)
        task(argument, i, 0);
}

static const attn_runtime RUNTIME = {.threads = 2, .run = run_backwards};

/* Piece i is "<i>", dots up to a length that differs from piece to piece. */
static size_t write_numbered(const void *context, size_t index, char *to)
{
    const size_t *most = context;
    char text[24];
    const size_t wanted = 24 + index * 7 % (*most - 24);
    const int length = snprintf(text, sizeof text, "<%zu>", index);
    memset(to, '.', wanted);
    memcpy(to, text, (size_t)length);
    return wanted;
}

static struct deferred numbered(const size_t *most, size_t pieces)
{
    return (struct deferred){write_numbered, most, pieces, *most, CHUNKS_LENGTH_UNKNOWN};
}

struct text {
    char *at;
    size_t length;
};

static void append(struct text *text, const char *at, size_t length)
{
    text->at = realloc(text->at, text->length + length + 1);
    memcpy(text->at + text->length, at, length);
    text->length += length;
}

/* All batches one after the other. */
static struct text drain(struct stream *stream, size_t *batches)
{
    struct text text = {malloc(1), 0};
    for (*batches = 0; !stream_is_over(stream); ++*batches) {
        ck_assert(stream_fill(stream, *batches % 2, &RUNTIME));
        for (const struct chunk *chunk = stream->batch[*batches % 2].first; chunk != NULL; chunk = chunk->next)
            append(&text, chunk->data, chunk->length);
    }
    return text;
}

/* The text of chunks, written at once. */
static struct text whole(const struct chunks *chunks)
{
    struct text text = {malloc(1), 0};
    for (const struct chunk *chunk = chunks->first; chunk != NULL; chunk = chunk->next) {
        if (chunk->data != NULL)
            append(&text, chunk->data, chunk->length);
        for (size_t i = 0; chunk->data == NULL && i < chunk->deferred->pieces; i++) {
            char *piece = malloc(chunk->deferred->piece_bytes_max);
            append(&text, piece, chunk->deferred->write(chunk->deferred->context, i, piece));
            free(piece);
        }
    }
    return text;
}

static void check_equal(struct text got, struct text expected)
{
    ck_assert_uint_eq(got.length, expected.length);
    ck_assert_mem_eq(got.at, expected.at, got.length);
    free(got.at);
    free(expected.at);
}

START_TEST(batches_follow_one_another_without_a_gap)
{
    const size_t sizes[] = {32, 5000, 40000, (size_t)STREAM_BATCH_BYTES, 2 * (size_t)STREAM_BATCH_BYTES};
    for (size_t i = 0; i < 5; i++) {
        attn_arena *arena = attn_arena_create(ARENA_BYTES);
        struct chunks chunks = chunks_begin(arena);
        const struct deferred many = numbered(&sizes[i], 200), none = numbered(&sizes[i], 0),
                              one = numbered(&sizes[i], 1);
        struct stream stream;
        size_t batches;
        chunks.may_defer = true;
        chunks_defer(&chunks, &none);
        chunks_text(&chunks, "begin");
        chunks_defer(&chunks, &one);
        chunks_defer(&chunks, &many);
        chunks_text(&chunks, "between");
        chunks_defer(&chunks, &many);
        chunks_defer(&chunks, &none);
        ck_assert(chunks.is_ok && chunks.has_deferred);
        ck_assert_uint_eq(chunks.total_bytes, CHUNKS_LENGTH_UNKNOWN);
        ck_assert(stream_begin(&stream, &chunks, NULL));
        struct text text = drain(&stream, &batches);
        ck_assert_uint_ge(batches, 400 / STREAM_BATCH_CHUNKS);
        check_equal(text, whole(&chunks));
        stream_end(&stream);
        attn_arena_destroy(arena);
    }
}
END_TEST

START_TEST(many_chunks_that_are_there_fit_no_batch)
{
    attn_arena *arena = attn_arena_create(ARENA_BYTES);
    struct chunks chunks = chunks_begin(arena);
    const size_t most = 100;
    const struct deferred part = numbered(&most, 3);
    struct stream stream;
    size_t batches;
    chunks.may_defer = true;
    for (int i = 0; i < 500; i++) {
        chunks_format(&chunks, "(%d)", i);
        chunks_defer(&chunks, &part);
    }
    ck_assert(stream_begin(&stream, &chunks, NULL));
    check_equal(drain(&stream, &batches), whole(&chunks));
    stream_end(&stream);
    attn_arena_destroy(arena);
}
END_TEST

START_TEST(a_known_length_is_kept)
{
    attn_arena *arena = attn_arena_create(ARENA_BYTES);
    struct chunks chunks = chunks_begin(arena), tail = chunks_begin(arena);
    const struct deferred part = {.total_bytes = 1000};
    chunks.may_defer = tail.may_defer = true;
    chunks_text(&chunks, "12345");
    chunks_defer(&tail, &part);
    chunks_append(&chunks, &tail);
    chunks_text(&chunks, "67");
    ck_assert_uint_eq(chunks.total_bytes, 1007);
    ck_assert(chunks.has_deferred);
    attn_arena_destroy(arena);
}
END_TEST

/* The compressed part of the stream and the remaining part together are the text of chunks. */
static void check_expands(struct stream *stream, enum coding coding, const struct chunks *chunks, attn_arena *arena)
{
    struct text packed = {malloc(1), 0};
    for (const struct chunk *chunk = stream->batch[0].first; chunk != NULL; chunk = chunk->next)
        append(&packed, chunk->data, chunk->length);
    size_t batches;
    struct text rest = drain(stream, &batches);
    append(&packed, rest.at, rest.length);
    free(rest.at);
    struct text_span text;
    attn_error err;
    ck_assert_int_eq(
        coding_expand(coding, (struct text_span){packed.at, packed.length}, ARENA_BYTES, arena, &text, &err), ATTN_OK);
    struct text expected = whole(chunks);
    ck_assert_uint_eq(text.length, expected.length);
    ck_assert_mem_eq(text.at, expected.at, text.length);
    free(expected.at);
    free(packed.at);
}

START_TEST(a_compressed_stream_expands_to_the_text)
{
    for (int coding = 0; coding < CODING_COUNT; coding++) {
        attn_arena *arena = attn_arena_create(ARENA_BYTES);
        attn_budget *budget = attn_budget_create(ARENA_BYTES);
        struct chunks chunks = chunks_begin(arena);
        const size_t most = 60000;
        const struct deferred part = numbered(&most, 300);
        struct stream stream;
        chunks.may_defer = true;
        chunks_text(&chunks, "begin");
        chunks_defer(&chunks, &part);
        ck_assert(stream_begin(&stream, &chunks, budget) && stream_fill(&stream, 0, &RUNTIME));
        ck_assert_uint_ge(stream_sample(&stream, 0)->length, 200);
        ck_assert(stream_compress(&stream, (enum coding)coding, arena));
        check_expands(&stream, (enum coding)coding, &chunks, arena);
        ck_assert_uint_gt(attn_budget_bytes(budget), 0);
        stream_end(&stream);
        ck_assert_uint_eq(attn_budget_bytes(budget), 0);
        attn_arena_destroy(arena);
        attn_budget_destroy(budget);
    }
}
END_TEST

static void check_tensor(const attn_tensor *tensor, const struct tensor_style *style)
{
    attn_arena *arena = attn_arena_create(ARENA_BYTES);
    struct chunks at_once = chunks_begin(arena), deferred = chunks_begin(arena);
    struct stream stream;
    size_t batches;
    deferred.may_defer = true;
    tensor_write_json(tensor, style, &RUNTIME, &at_once);
    tensor_write_json(tensor, style, &RUNTIME, &deferred);
    ck_assert(deferred.is_ok && deferred.has_deferred);
    if (style->form == TENSOR_FORM_BASE64)
        ck_assert_uint_eq(deferred.total_bytes, at_once.total_bytes);
    ck_assert(stream_begin(&stream, &deferred, NULL));
    check_equal(drain(&stream, &batches), whole(&at_once));
    stream_end(&stream);
    attn_arena_destroy(arena);
}

START_TEST(a_deferred_tensor_has_the_text_of_one_written_at_once)
{
    enum { COUNT = 2 * 3 * 41 * 401 };
    float *data = malloc(COUNT * sizeof *data);
    uint32_t random = 7;
    for (size_t i = 0; i < COUNT; i++) {
        random = random * 1664525u + 1013904223u;
        data[i] = (float)(random >> 8) / (float)(1u << (i % 30)) - 3.0f;
    }
    const attn_tensor tensor = {.data = data,
                                .dtype = ATTN_F32,
                                .rank = 4,
                                .shape = {2, 3, 41, 401},
                                .stride = {3 * 41 * 401, 41 * 401, 401, 1}};
    for (int form = TENSOR_FORM_NESTED; form <= TENSOR_FORM_BASE64; form++)
        for (int digits = 0; digits <= 17; digits += 17)
            check_tensor(&tensor, &(struct tensor_style){.form = (tensor_form)form, .digits = digits});
    free(data);
}
END_TEST

/* Compresses the first batch of numbered pieces; false when a block was refused that it cannot do without. */
static bool compress_numbered(enum coding coding, attn_arena *arena, bool *was_refused)
{
    *was_refused = true;
    struct chunks chunks = chunks_begin(arena);
    const size_t most = 5000;
    const struct deferred part = numbered(&most, 30);
    struct stream stream;
    chunks.may_defer = true;
    chunks_defer(&chunks, &part);
    if (!chunks.is_ok || !stream_begin(&stream, &chunks, NULL))
        return false;
    ck_assert(stream_fill(&stream, 0, &RUNTIME));
    const bool is_compressed = stream_compress(&stream, coding, arena);
    *was_refused = take_has_failed();
    if (is_compressed)
        check_expands(&stream, coding, &chunks, arena);
    stream_end(&stream);
    return is_compressed;
}

START_TEST(a_stream_that_lacks_one_block_is_whole_or_none)
{
    for (int coding = 0; coding < CODING_COUNT; coding++) {
        bool was_refused = true;
        size_t take = 0;
        for (; was_refused; take++) {
            attn_arena *arena = attn_arena_create(ARENA_BYTES);
            fail_take(take);
            const bool is_compressed = compress_numbered((enum coding)coding, arena, &was_refused);
            ck_assert_msg(is_compressed || was_refused, "coding %d, block %zu", coding, take);
            (void)take_has_failed();
            attn_arena_destroy(arena);
        }
        ck_assert_uint_gt(take, 3);
    }
}
END_TEST

/* Whether chunks of a tensor are whole when a block was refused; a scratch may be done without. */
static bool writes_whole(const attn_tensor *tensor, const struct tensor_style *style, bool may_defer, size_t take,
                         bool *was_refused)
{
    attn_arena *arena = attn_arena_create(ARENA_BYTES);
    struct chunks out = chunks_begin(arena);
    out.may_defer = may_defer;
    fail_take(take);
    tensor_write_json(tensor, style, &RUNTIME, &out);
    *was_refused = take_has_failed();
    const bool is_ok = out.is_ok;
    if (is_ok && !may_defer) {
        struct chunks again = chunks_begin(arena);
        tensor_write_json(tensor, style, &RUNTIME, &again);
        check_equal(whole(&out), whole(&again));
    }
    attn_arena_destroy(arena);
    return is_ok;
}

START_TEST(a_tensor_that_lacks_one_block_is_whole_or_not_there)
{
    enum { SIDE = 300 };
    float *data = calloc(SIDE * SIDE, sizeof *data);
    ck_assert_ptr_nonnull(data);
    const attn_tensor tensor = attn_tensor_view(data, ATTN_F32, 2, (size_t[]){SIDE, SIDE});
    for (int form = TENSOR_FORM_NESTED; form <= TENSOR_FORM_BASE64; form++)
        for (int may_defer = 0; may_defer < 2; may_defer++) {
            const struct tensor_style style = {.form = (tensor_form)form};
            bool was_refused = true;
            size_t refusals = 0;
            for (size_t take = 0; was_refused; take++)
                refusals += !writes_whole(&tensor, &style, may_defer, take, &was_refused);
            ck_assert_uint_gt(refusals, 0);
        }
    free(data);
}
END_TEST

CHECK_MAIN("stream")
{
    tcase_add_test(tests, batches_follow_one_another_without_a_gap);
    tcase_add_test(tests, many_chunks_that_are_there_fit_no_batch);
    tcase_add_test(tests, a_known_length_is_kept);
    tcase_add_test(tests, a_compressed_stream_expands_to_the_text);
    tcase_add_test(tests, a_stream_that_lacks_one_block_is_whole_or_none);
    tcase_add_test(tests, a_tensor_that_lacks_one_block_is_whole_or_not_there);
    tcase_add_test(tests, a_deferred_tensor_has_the_text_of_one_written_at_once);
}
