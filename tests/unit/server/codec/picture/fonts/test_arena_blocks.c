/*
 * test_arena_blocks.c: tests of server/codec/picture/fonts/arena_blocks.c and bound.h: memory for libraries that free, sums
 * of sizes.
 */
#include "codec/picture/fonts/fonts.h"

#include <stdint.h>
#include <string.h>

#include "check_main.h"
#include "codec/bytes/bound.h"
#include "codec/bytes/chunks.h"

START_TEST(a_block_that_was_given_back_serves_its_size_again)
{
    attn_arena *arena = attn_arena_create(1 << 20);
    struct blocks blocks = blocks_begin(arena);
    char *one = blocks_take(&blocks, 100);
    ck_assert_ptr_nonnull(one);
    blocks_give(&blocks, one);
    blocks_give(&blocks, NULL);
    ck_assert_ptr_eq(blocks_take(&blocks, 90), one);
    ck_assert_ptr_ne(blocks_take(&blocks, 90), one);
    attn_arena_destroy(arena);
}
END_TEST

START_TEST(a_block_is_resized_with_its_content)
{
    attn_arena *arena = attn_arena_create(1 << 20);
    struct blocks blocks = blocks_begin(arena);
    char *text = blocks_resize(&blocks, NULL, 10);
    ck_assert_ptr_nonnull(text);
    memcpy(text, "content", 8);
    ck_assert_ptr_eq(blocks_resize(&blocks, text, 20), text);
    char *larger = blocks_resize(&blocks, text, 4000);
    ck_assert(larger != text && strcmp(larger, "content") == 0);
    ck_assert_ptr_null(blocks_resize(&blocks, larger, 2 << 20));
    ck_assert(strcmp(larger, "content") == 0 && blocks.is_short);
    attn_arena_destroy(arena);
}
END_TEST

START_TEST(no_block_is_larger_than_the_largest_class)
{
    attn_arena *arena = attn_arena_create(SIZE_MAX);
    struct blocks blocks = blocks_begin(arena);
    ck_assert_ptr_null(blocks_take(&blocks, SIZE_MAX / 2));
    ck_assert(blocks.is_short);
    attn_arena_destroy(arena);
}
END_TEST

START_TEST(sums_that_do_not_fit_are_the_most)
{
    ck_assert_uint_eq(bound_add(1, 2, 3), 7);
    ck_assert(bound_add(0, SIZE_MAX, 2) == SIZE_MAX && bound_add(SIZE_MAX, 1, 1) == SIZE_MAX);
    ck_assert(bound_digits(0) == 1 && bound_digits(9) == 1 && bound_digits(10) == 2 && bound_digits(SIZE_MAX) == 20);
}
END_TEST

/* A block that could not be recorded for later makes the whole result invalid. */
START_TEST(a_deferred_part_without_memory_is_no_answer)
{
    const struct deferred part = {.pieces = 1, .piece_bytes_max = 1, .total_bytes = 1};
    attn_arena *none = attn_arena_create(0);
    struct chunks out = chunks_begin(none);
    out.may_defer = true;
    chunks_defer(&out, &part);
    ck_assert(!out.is_ok && !out.has_deferred);
    chunks_defer(&out, &part);
    chunks_commit(&out, 0);
    ck_assert(!out.is_ok && out.total_bytes == 0);
    attn_arena_destroy(none);
}
END_TEST

CHECK_MAIN("blocks")
{
    tcase_add_test(tests, a_block_that_was_given_back_serves_its_size_again);
    tcase_add_test(tests, a_block_is_resized_with_its_content);
    tcase_add_test(tests, no_block_is_larger_than_the_largest_class);
    tcase_add_test(tests, sums_that_do_not_fit_are_the_most);
    tcase_add_test(tests, a_deferred_part_without_memory_is_no_answer);
}
