/* test_coding.c: gzip, zstd and deflate: round trips, invalid bodies, and lack of memory. */
#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "codec/bytes/coding.h"

enum { TEXT_BYTES = 300000, ROOM = 64 << 20 };

/* Text of a moderate compression ratio. */
static char *make_text(size_t length)
{
    char *text = malloc(length);
    ck_assert_ptr_nonnull(text);
    uint32_t state = 1;
    for (size_t i = 0; i < length; i++) {
        state = state * 1664525u + 1013904223u;
        text[i] = (char)('0' + (state >> 24) % 10);
    }
    return text;
}

/* All of chunks in one run, from malloc. */
static char *join(const struct chunks *chunks)
{
    char *all = malloc(chunks->total_bytes + 1);
    size_t used = 0;
    ck_assert_ptr_nonnull(all);
    for (const struct chunk *chunk = chunks->first; chunk != NULL; chunk = chunk->next) {
        memcpy(all + used, chunk->data, chunk->length);
        used += chunk->length;
    }
    ck_assert_uint_eq(used, chunks->total_bytes);
    return all;
}

static struct chunks compress(enum coding coding, const char *text, size_t length, size_t step, attn_arena *arena)
{
    struct chunks out = chunks_begin(arena);
    struct compressor *compressor = compressor_begin(coding, length, arena);
    ck_assert_ptr_nonnull(compressor);
    for (size_t at = 0; at < length; at += step)
        compressor_take(compressor, text + at, length - at < step ? length - at : step, at + step >= length, &out);
    ck_assert(out.is_ok);
    return out;
}

START_TEST(text_comes_back_whatever_the_pieces)
{
    static const size_t steps[] = {1000, 65536, TEXT_BYTES};
    char *text = make_text(TEXT_BYTES);
    for (int coding = 0; coding < CODING_COUNT; coding++)
        for (size_t s = 0; s < sizeof steps / sizeof steps[0]; s++) {
            attn_arena *arena = attn_arena_create(ROOM);
            struct chunks small = compress((enum coding)coding, text, TEXT_BYTES, steps[s], arena);
            ck_assert_uint_lt(small.total_bytes, TEXT_BYTES * 6 / 10);
            char *body = join(&small);
            struct text_span back;
            attn_error err = {0};
            ck_assert_int_eq(coding_expand((enum coding)coding, (struct text_span){body, small.total_bytes}, TEXT_BYTES,
                                           arena, &back, &err),
                             ATTN_OK);
            ck_assert_uint_eq(back.length, TEXT_BYTES);
            ck_assert_int_eq(memcmp(back.at, text, TEXT_BYTES), 0);
            free(body);
            attn_arena_destroy(arena);
        }
    free(text);
}
END_TEST

START_TEST(members_and_frames_follow_one_another)
{
    char *text = make_text(5000);
    for (int coding = 0; coding < CODING_COUNT; coding++) {
        const bool may_follow = coding != CODING_DEFLATE; /* zlib's format is one stream */
        attn_arena *arena = attn_arena_create(ROOM);
        struct chunks small = compress((enum coding)coding, text, 5000, 5000, arena);
        char *once = join(&small), *twice = malloc(2 * small.total_bytes);
        memcpy(twice, once, small.total_bytes);
        memcpy(twice + small.total_bytes, once, small.total_bytes);
        struct text_span back;
        attn_error err = {0};
        ck_assert_int_eq(coding_expand((enum coding)coding, (struct text_span){twice, 2 * small.total_bytes}, 10000,
                                       arena, &back, &err),
                         may_follow ? ATTN_OK : ATTN_ERR_SYNTAX);
        if (may_follow) {
            ck_assert_uint_eq(back.length, 10000);
            ck_assert_int_eq(memcmp(back.at + 5000, text, 5000), 0);
        }
        free(once);
        free(twice);
        attn_arena_destroy(arena);
    }
    free(text);
}
END_TEST

START_TEST(one_byte_over_the_limit_is_too_much)
{
    char *text = make_text(TEXT_BYTES);
    for (int coding = 0; coding < CODING_COUNT; coding++) {
        attn_arena *arena = attn_arena_create(ROOM);
        struct chunks small = compress((enum coding)coding, text, TEXT_BYTES, TEXT_BYTES, arena);
        char *body = join(&small);
        struct text_span back;
        size_t before = attn_arena_bytes(arena);
        attn_error err = {0};
        ck_assert_int_eq(coding_expand((enum coding)coding, (struct text_span){body, small.total_bytes}, TEXT_BYTES - 1,
                                       arena, &back, &err),
                         ATTN_ERR_TOO_LARGE);
        ck_assert_ptr_nonnull(strstr(err.message, "299999 bytes"));
        ck_assert_uint_lt(attn_arena_bytes(arena) - before, 4 * TEXT_BYTES + (1 << 20));
        free(body);
        attn_arena_destroy(arena);
    }
    free(text);
}
END_TEST

START_TEST(every_cut_and_every_flipped_byte_is_noticed)
{
    char *text = make_text(500);
    for (int coding = 0; coding < CODING_COUNT; coding++) {
        attn_arena *arena = attn_arena_create(ROOM);
        struct chunks small = compress((enum coding)coding, text, 500, 500, arena);
        char *body = join(&small);
        struct text_span back;
        for (size_t length = 0; length < small.total_bytes; length++) {
            attn_arena_mark mark = attn_arena_mark_here(arena);
            attn_error err = {0};
            ck_assert_int_eq(
                coding_expand((enum coding)coding, (struct text_span){body, length}, TEXT_BYTES, arena, &back, &err),
                ATTN_ERR_SYNTAX);
            attn_arena_release(arena, mark);
        }
        for (size_t i = 0; i < small.total_bytes; i++) { /* whatever comes out, it ends and stays within bounds */
            attn_arena_mark mark = attn_arena_mark_here(arena);
            attn_error err = {0};
            body[i] = (char)(body[i] ^ 0x55);
            attn_status status = coding_expand((enum coding)coding, (struct text_span){body, small.total_bytes},
                                               TEXT_BYTES, arena, &back, &err);
            ck_assert(status == ATTN_ERR_SYNTAX || (status == ATTN_OK && back.length <= TEXT_BYTES));
            body[i] = (char)(body[i] ^ 0x55);
            attn_arena_release(arena, mark);
        }
        free(body);
        attn_arena_destroy(arena);
    }
    free(text);
}
END_TEST

/* The library would decode them with memory that is neither counted nor freed. */
START_TEST(formats_before_zstd_0_8_are_refused_at_every_frame)
{
    attn_arena *arena = attn_arena_create(ROOM);
    struct chunks small = compress(CODING_ZSTD, "text", 4, 4, arena);
    char *body = attn_arena_take(arena, 1, small.total_bytes + 10);
    char *frame = join(&small);
    memcpy(body, frame, small.total_bytes);
    for (unsigned before = 0xfd2fb522; before <= 0xfd2fb527; before++)
        for (size_t at = 0; at <= small.total_bytes; at += small.total_bytes) {
            const char magic[] = {(char)before, (char)(before >> 8), (char)(before >> 16), (char)(before >> 24), 96,
                                  -23};
            struct text_span back;
            attn_error err = {0};
            memcpy(body + at, magic, sizeof magic);
            ck_assert_int_eq(
                coding_expand(CODING_ZSTD, (struct text_span){body, at + sizeof magic}, TEXT_BYTES, arena, &back, &err),
                ATTN_ERR_SYNTAX);
            memcpy(body, frame, small.total_bytes);
        }
    free(frame);
    attn_arena_destroy(arena);
}
END_TEST

START_TEST(memory_that_ends_is_told)
{
    char *text = make_text(20000);
    for (int coding = 0; coding < CODING_COUNT; coding++) {
        attn_arena *plenty = attn_arena_create(ROOM);
        struct chunks small = compress((enum coding)coding, text, 20000, 20000, plenty);
        char *body = join(&small);
        bool has_succeeded = false;
        for (size_t room = 4096; !has_succeeded && room < 8 << 20; room += 4096) {
            attn_arena *arena = attn_arena_create(room);
            attn_error err = {0};
            struct text_span back;
            attn_status status = coding_expand((enum coding)coding, (struct text_span){body, small.total_bytes}, 20000,
                                               arena, &back, &err);
            ck_assert(status == ATTN_OK || status == ATTN_ERR_NO_MEMORY);
            has_succeeded = status == ATTN_OK;
            attn_arena_destroy(arena);
        }
        ck_assert(has_succeeded);
        free(body);
        attn_arena_destroy(plenty);
    }
    free(text);
}
END_TEST

START_TEST(a_sample_tells_whether_it_is_worth_it)
{
    attn_arena *arena = attn_arena_create(ROOM);
    char *text = make_text(20000);
    ck_assert(coding_is_worth(text, 20000, arena));
    uint32_t state = 7;
    for (size_t i = 0; i < 20000; i++) {
        state = state * 1664525u + 1013904223u;
        text[i] = (char)(state >> 24);
    }
    ck_assert(!coding_is_worth(text, 20000, arena));
    free(text);
    attn_arena_destroy(arena);
}
END_TEST

/* "ab" in a frame of version 0.7, alone and behind a frame to skip: the library would expand it with malloc's memory.
 */
START_TEST(frames_of_old_versions_are_refused)
{
    static const char text[] = "\x50\x2a\x4d\x18\x01\0\0\0!"
                               "\x27\xb5\x2f\xfd\x20\x02\x40\0\x02"
                               "ab\xc0\0";
    const size_t skipped = 9;
    for (size_t from = 0; from <= skipped; from += skipped) {
        attn_arena *arena = attn_arena_create(ROOM);
        struct text_span back;
        attn_error err = {0};
        ck_assert_int_eq(coding_expand(CODING_ZSTD, (struct text_span){text + from, sizeof text - from}, ROOM / 2,
                                       arena, &back, &err),
                         ATTN_ERR_SYNTAX);
        ck_assert_ptr_nonnull(strstr(err.message, "not valid zstd"));
        attn_arena_destroy(arena);
    }
}
END_TEST

/* Compression fails only for lack of memory: no result is reported as complete until memory suffices. */
START_TEST(a_compressor_short_of_memory_gives_nothing_that_looks_whole)
{
    enum { BYTES = 200000 };
    char *text = make_text(BYTES);
    for (int coding = 0; coding < CODING_COUNT; coding++) {
        bool is_whole = false, was_refused = false, was_cut = false;
        for (size_t limit = 0; !is_whole; limit += 32768) {
            attn_arena *small = attn_arena_create(limit);
            struct chunks out = chunks_begin(small);
            struct compressor *compressor = compressor_begin((enum coding)coding, BYTES, small);
            was_refused = was_refused || compressor == NULL;
            if (compressor != NULL)
                compressor_take(compressor, text, BYTES, true, &out);
            is_whole = compressor != NULL && out.is_ok;
            was_cut = was_cut || (compressor != NULL && !out.is_ok);
            attn_arena_destroy(small);
        }
        ck_assert_msg(was_refused, "coding %d takes no memory to begin", coding);
        ck_assert_msg(was_cut, "coding %d takes no memory to go on", coding);
    }
    attn_arena *tiny = attn_arena_create(4096);
    ck_assert(!coding_is_worth(text, BYTES, tiny));
    attn_arena_destroy(tiny);
    free(text);
}
END_TEST

/* The second of two bodies is larger than the first one announced, and needs more memory. */
START_TEST(a_body_that_outgrows_the_memory_is_refused)
{
    enum { BYTES = 2000000 };
    char *zeros = calloc(1, BYTES);
    ck_assert_ptr_nonnull(zeros);
    for (int coding = 0; coding < CODING_COUNT; coding++) {
        if (coding == CODING_DEFLATE) /* which has but one stream */
            continue;
        attn_arena *arena = attn_arena_create(ROOM);
        struct chunks small = compress((enum coding)coding, zeros, BYTES, BYTES, arena);
        char *once = join(&small), *body = malloc(2 * small.total_bytes);
        ck_assert_ptr_nonnull(body);
        memcpy(body, once, small.total_bytes);
        memcpy(body + small.total_bytes, once, small.total_bytes);
        attn_status status = ATTN_ERR_NO_MEMORY;
        for (size_t limit = 4096; status != ATTN_OK; limit += 65536) {
            attn_arena *tight = attn_arena_create(limit);
            struct text_span back;
            attn_error err = {0};
            status = coding_expand((enum coding)coding, (struct text_span){body, 2 * small.total_bytes}, 2 * BYTES,
                                   tight, &back, &err);
            ck_assert_msg(status == ATTN_OK || status == ATTN_ERR_NO_MEMORY, "%zu: %s", limit, err.message);
            ck_assert(status != ATTN_OK || back.length == 2 * BYTES);
            attn_arena_destroy(tight);
        }
        free(body);
        free(once);
        attn_arena_destroy(arena);
    }
    free(zeros);
}
END_TEST

/* A frame of zstd that says it has 60 MB, in 12 bytes: it reserves what 12 bytes may become at gzip's ratio. */
START_TEST(a_claim_of_a_length_reserves_little)
{
    static const char claim[] = "\x28\xb5\x2f\xfd\xa0\0\0\x93\x03\x01\0\0";
    attn_arena *arena = attn_arena_create(ROOM);
    struct text_span back;
    attn_error err = {0};
    attn_status status =
        coding_expand(CODING_ZSTD, (struct text_span){claim, sizeof claim - 1}, ROOM, arena, &back, &err);
    ck_assert_int_eq(status, ATTN_ERR_SYNTAX);
    ck_assert_uint_lt(attn_arena_peak_bytes(arena), 1 << 20);
    attn_arena_destroy(arena);
}
END_TEST

static bool count_look(void *context)
{
    ++*(size_t *)context;
    return false;
}

/* Text of unknown length moves into ever larger blocks; each MiB that is moved checks the deadline. */
START_TEST(a_text_that_moves_is_copied_with_looks)
{
    enum { BYTES = 40 << 20, PACES = BYTES / (64 << 10) };
    char *zeros = calloc(1, BYTES);
    ck_assert_ptr_nonnull(zeros);
    attn_arena *arena = attn_arena_create((size_t)1 << 30);
    struct chunks out = compress(CODING_DEFLATE, zeros, BYTES, BYTES, arena);
    char *body = join(&out);
    struct text_span text;
    size_t looks = 0;
    attn_error err = {0};
    attn_arena_watch(arena, count_look, &looks);
    ck_assert_int_eq(
        coding_expand(CODING_DEFLATE, (struct text_span){body, out.total_bytes}, BYTES, arena, &text, &err), ATTN_OK);
    ck_assert_uint_eq(text.length, BYTES);
    /* It has moved from 1, 2, 4, 8, 16 and 32 MiB. The expansion itself checks the deadline, too. */
    ck_assert_uint_ge(looks, PACES + 1 + 2 + 4 + 8 + 16 + 32);
    attn_arena_destroy(arena);
    free(body);
    free(zeros);
}
END_TEST

CHECK_MAIN("coding")
{
    tcase_add_test(tests, a_compressor_short_of_memory_gives_nothing_that_looks_whole);
    tcase_add_test(tests, a_body_that_outgrows_the_memory_is_refused);
    tcase_add_test(tests, text_comes_back_whatever_the_pieces);
    tcase_add_test(tests, members_and_frames_follow_one_another);
    tcase_add_test(tests, one_byte_over_the_limit_is_too_much);
    tcase_add_test(tests, every_cut_and_every_flipped_byte_is_noticed);
    tcase_add_test(tests, formats_before_zstd_0_8_are_refused_at_every_frame);
    tcase_add_test(tests, memory_that_ends_is_told);
    tcase_add_test(tests, a_claim_of_a_length_reserves_little);
    tcase_add_test(tests, a_sample_tells_whether_it_is_worth_it);
    tcase_add_test(tests, frames_of_old_versions_are_refused);
    tcase_add_test(tests, a_text_that_moves_is_copied_with_looks);
}
