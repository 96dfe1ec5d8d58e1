/*
 * test_chunks.c: tests server/codec/bytes/chunks.c.
 */
#include "codec/bytes/chunks.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_main.h"

static attn_arena *arena;

static void make_arena(void)
{
    arena = attn_arena_create((size_t)64 << 20);
}

static void drop_arena(void)
{
    attn_arena_destroy(arena);
}

/* All chunks as one text, to be freed. */
static char *join(const struct chunks *chunks)
{
    char *text = malloc(chunks->total_bytes + 1);
    size_t used = 0;
    for (const struct chunk *chunk = chunks->first; chunk != NULL; chunk = chunk->next) {
        ck_assert(chunk->length <= chunk->capacity);
        memcpy(text + used, chunk->data, chunk->length);
        used += chunk->length;
    }
    ck_assert_uint_eq(used, chunks->total_bytes);
    text[used] = '\0';
    return text;
}

static void check_text(const struct chunks *chunks, const char *expected)
{
    ck_assert(chunks->is_ok);
    char *text = join(chunks);
    ck_assert_str_eq(text, expected);
    free(text);
}

START_TEST(nothing_written_is_no_chunk)
{
    struct chunks chunks = chunks_begin(arena);
    chunks_text(&chunks, "");
    chunks_bytes(&chunks, NULL, 0);
    ck_assert_ptr_null(chunks.first);
    check_text(&chunks, "");
}
END_TEST

START_TEST(text_bytes_and_formats_stand_in_order)
{
    struct chunks chunks = chunks_begin(arena);
    chunks_text(&chunks, "{\"a\":");
    chunks_format(&chunks, "%d", 42);
    chunks_bytes(&chunks, "}xyz", 1);
    check_text(&chunks, "{\"a\":42}");
}
END_TEST

START_TEST(a_megabyte_in_small_pieces_is_all_there_in_few_chunks)
{
    struct chunks chunks = chunks_begin(arena);
    enum { PIECES = 100000, PIECE = 11 };
    char *expected = malloc(PIECES * PIECE + 1);
    for (int i = 0; i < PIECES; i++) {
        chunks_format(&chunks, "%010d,", i);
        snprintf(expected + i * PIECE, (size_t)((PIECES - i) * PIECE) + 1, "%010d,", i);
    }
    check_text(&chunks, expected);
    free(expected);
    int count = 0;
    for (const struct chunk *chunk = chunks.first; chunk != NULL; chunk = chunk->next)
        count++;
    ck_assert_int_lt(count, 30);
    ck_assert_uint_lt(attn_arena_bytes(arena), 1100000 * 5 / 4);
}
END_TEST

START_TEST(a_reservation_is_contiguous_and_only_what_is_committed_counts)
{
    struct chunks chunks = chunks_begin(arena);
    chunks_text(&chunks, "ab");
    char *room = chunks_reserve(&chunks, 300000);
    ck_assert_ptr_nonnull(room);
    memset(room, 'x', 300000);
    chunks_commit(&chunks, 3);
    chunks_text(&chunks, "cd");
    ck_assert_ptr_nonnull(chunks_reserve(&chunks, 1000000));
    chunks_text(&chunks, "ef");
    check_text(&chunks, "abxxxcdef");
}
END_TEST

START_TEST(after_a_refusal_nothing_more_is_written)
{
    attn_arena *small = attn_arena_create(4096);
    struct chunks chunks = chunks_begin(small);
    chunks_text(&chunks, "first");
    ck_assert_ptr_null(chunks_reserve(&chunks, 100000));
    ck_assert(!chunks.is_ok);
    chunks_text(&chunks, "second");
    chunks_format(&chunks, "%d", 3);
    chunks_json_string(&chunks, "four");
    chunks_commit(&chunks, 5);
    ck_assert(!chunks.is_ok);
    ck_assert_uint_eq(chunks.total_bytes, 5);
    attn_arena_destroy(small);
}
END_TEST

START_TEST(a_size_near_the_limit_of_size_t_is_refused)
{
    struct chunks chunks = chunks_begin(arena);
    ck_assert_ptr_null(chunks_reserve(&chunks, SIZE_MAX));
    ck_assert(!chunks.is_ok);
}
END_TEST

START_TEST(writing_succeeds_when_repeated_with_64_bytes_more_each_time)
{
    bool is_done = false;
    for (size_t limit = 0; !is_done; limit += 64) {
        ck_assert_uint_lt(limit, 100000);
        attn_arena *small = attn_arena_create(limit);
        struct chunks chunks = chunks_begin(small);
        for (int i = 0; i < 1000; i++)
            chunks_format(&chunks, "%d,", i);
        is_done = chunks.is_ok;
        attn_arena_destroy(small);
    }
}
END_TEST

struct string_case {
    const char *text, *expected;
};

static const struct string_case STRING_CASES[] = {
    {"", "\"\""},
    {"Ben okula gidiyorum", "\"Ben okula gidiyorum\""},
    {"\"\\/", "\"\\\"\\\\/\""},
    {"a\nb\tc\rd\be\x1F\x7F", "\"a\\nb\\tc\\rd\\u0008e\\u001f\x7F\""},
    {"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\""},
    {"\x80", "\"\xEF\xBF\xBD\""},
    {"a\xFF\xFE", "\"a\xEF\xBF\xBD\xEF\xBF\xBD\""},
    {"\xC0\xAF", "\"\xEF\xBF\xBD\xEF\xBF\xBD\""},                 /* '/' in two bytes */
    {"\xED\xA0\x80", "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""}, /* a surrogate */
    {"\xED\x9F\xBF\xEE\x80\x80", "\"\xED\x9F\xBF\xEE\x80\x80\""}, /* its neighbours */
    {"\xE0\x9F\xBF", "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""}, /* too long a form */
    {"\xF4\x8F\xBF\xBF", "\"\xF4\x8F\xBF\xBF\""},                 /* U+10FFFF */
    {"\xF4\x90\x80\x80", "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""},
    {"x\xE2\x82", "\"x\xEF\xBF\xBD\xEF\xBF\xBD\""}, /* cut off by the end */
};

START_TEST(a_json_string_is_escaped_and_always_utf8)
{
    struct chunks chunks = chunks_begin(arena);
    chunks_json_string(&chunks, STRING_CASES[_i].text);
    check_text(&chunks, STRING_CASES[_i].expected);
}
END_TEST

START_TEST(the_json_string_of_a_span_ends_with_its_length)
{
    struct chunks chunks = chunks_begin(arena);
    chunks_json_span(&chunks, (struct text_span){"a\0b\0", 4});
    chunks_json_span(&chunks, (struct text_span){"", 0});
    check_text(&chunks, "\"a\\u0000b\\u0000\"\"\"");
    ck_assert_uint_eq(chunks_json_bytes((struct text_span){"a\0b\0", 4}), 16);
    ck_assert_uint_eq(chunks_json_bytes(text_span_of("\"\\\n\xC3\xA4")), 10);
}
END_TEST

START_TEST(append_moves_the_tail_behind)
{
    struct chunks chunks = chunks_begin(arena), tail = chunks_begin(arena);
    chunks_append(&chunks, &tail);
    chunks_text(&tail, "one");
    chunks_append(&chunks, &tail);
    ck_assert_ptr_null(tail.first);
    ck_assert_uint_eq(tail.total_bytes, 0);
    chunks_text(&chunks, " two");
    chunks_text(&tail, " three");
    chunks_append(&chunks, &tail);
    chunks_text(&chunks, " four");
    check_text(&chunks, "one two three four");
}
END_TEST

START_TEST(append_of_a_failed_tail_fails)
{
    struct chunks chunks = chunks_begin(arena), tail = chunks_begin(arena);
    tail.is_ok = false;
    chunks_append(&chunks, &tail);
    ck_assert(!chunks.is_ok);
}
END_TEST

CHECK_MAIN("chunks")
{
    tcase_add_checked_fixture(tests, make_arena, drop_arena);
    tcase_add_test(tests, nothing_written_is_no_chunk);
    tcase_add_test(tests, text_bytes_and_formats_stand_in_order);
    tcase_add_test(tests, a_megabyte_in_small_pieces_is_all_there_in_few_chunks);
    tcase_add_test(tests, a_reservation_is_contiguous_and_only_what_is_committed_counts);
    tcase_add_test(tests, after_a_refusal_nothing_more_is_written);
    tcase_add_test(tests, a_size_near_the_limit_of_size_t_is_refused);
    tcase_add_test(tests, writing_succeeds_when_repeated_with_64_bytes_more_each_time);
    tcase_add_loop_test(tests, a_json_string_is_escaped_and_always_utf8, 0, COUNT(STRING_CASES));
    tcase_add_test(tests, the_json_string_of_a_span_ends_with_its_length);
    tcase_add_test(tests, append_moves_the_tail_behind);
    tcase_add_test(tests, append_of_a_failed_tail_fails);
}
