/*
 * test_arena.c: tests core/src/base/arena.c.
 */
#include "attn/arena.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "check_main.h"

static const size_t MIB = (size_t)1 << 20;

/* A small deterministic generator; which numbers come does not matter. */
static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

START_TEST(blocks_are_aligned_and_do_not_overlap)
{
    attn_arena *arena = attn_arena_create(64 * MIB);
    enum { BLOCKS = 600 };
    unsigned char *blocks[BLOCKS];
    size_t sizes[BLOCKS];
    uint32_t random = 1;
    for (int i = 0; i < BLOCKS; i++) {
        sizes[i] = next_random(&random) % (i % 50 == 0 ? 200000 : 700);
        blocks[i] = attn_arena_take(arena, sizes[i], 1);
        ck_assert_ptr_nonnull(blocks[i]);
        ck_assert_uint_eq((uintptr_t)blocks[i] % ATTN_ALIGNMENT, 0);
        memset(blocks[i], i & 0xFF, sizes[i]);
    }
    for (int i = 0; i < BLOCKS; i++) {
        for (size_t j = 0; j < sizes[i]; j++)
            if (blocks[i][j] != (i & 0xFF))
                ck_abort_msg("byte %zu of block %d is %d", j, i, blocks[i][j]);
    }
    attn_arena_destroy(arena);
}
END_TEST

/* Also such as are aligned to large pages, and end anywhere in one. */
START_TEST(large_blocks_have_any_size)
{
    attn_arena *arena = attn_arena_create(64 * MIB);
    for (size_t bytes = 2 * MIB - 64; bytes < 9 * MIB; bytes += MIB + 65) {
        char *block = attn_arena_take(arena, bytes, 1);
        ck_assert_ptr_nonnull(block);
        block[0] = block[bytes - 1] = 1;
    }
    attn_arena_destroy(arena);
}
END_TEST

START_TEST(nothing_is_taken_from_the_system_before_it_is_needed)
{
    attn_arena *arena = attn_arena_create(MIB);
    ck_assert_uint_eq(attn_arena_bytes(arena), 0);
    ck_assert_uint_eq(attn_arena_limit_bytes(arena), MIB);
    attn_arena_destroy(arena);
    attn_arena_destroy(NULL);
}
END_TEST

START_TEST(the_ceiling_is_never_passed)
{
    uint32_t random = 7;
    for (size_t limit = 0; limit < 300000; limit += 4999) {
        attn_arena *arena = attn_arena_create(limit);
        for (int i = 0; i < 400; i++) {
            void *block = attn_arena_take(arena, next_random(&random) % 9000, 1);
            ck_assert(attn_arena_bytes(arena) <= limit);
            if (block == NULL)
                break;
        }
        ck_assert(attn_arena_peak_bytes(arena) <= limit);
        attn_arena_destroy(arena);
    }
}
END_TEST

START_TEST(exactly_what_is_left_can_be_taken)
{
    attn_arena *arena = attn_arena_create(100 * ATTN_ALIGNMENT);
    ck_assert_ptr_null(attn_arena_take(arena, 99 * ATTN_ALIGNMENT + 1, 1));
    ck_assert_uint_eq(attn_arena_bytes(arena), 0);
    ck_assert_ptr_nonnull(attn_arena_take(arena, 99 * ATTN_ALIGNMENT, 1)); /* one line is the header of the chunk */
    ck_assert_uint_eq(attn_arena_bytes(arena), 100 * ATTN_ALIGNMENT);
    ck_assert_ptr_null(attn_arena_take(arena, 1, 1));
    attn_arena_destroy(arena);
}
END_TEST

START_TEST(small_blocks_use_a_small_arena_up)
{
    attn_arena *arena = attn_arena_create(100 * ATTN_ALIGNMENT);
    for (int i = 0; i < 99; i++)
        ck_assert_ptr_nonnull(attn_arena_take(arena, ATTN_ALIGNMENT, 1));
    ck_assert_ptr_null(attn_arena_take(arena, 1, 1));
    attn_arena_destroy(arena);
}
END_TEST

/* Some work of blocks of several sizes; false without memory. */
static bool take_several(attn_arena *arena)
{
    static const size_t SIZES[] = {10, 5000, 0, 70000, 300, 64, 20000, 1000, 128, 40000, 7};
    for (size_t i = 0; i < COUNT(SIZES); i++) {
        if (attn_arena_take(arena, SIZES[i], 1) == NULL)
            return false;
    }
    return true;
}

START_TEST(the_same_work_succeeds_when_repeated_with_64_bytes_more_each_time)
{
    size_t limit = 0;
    bool is_done = false;
    while (!is_done) {
        attn_arena *arena = attn_arena_create(limit);
        is_done = take_several(arena);
        attn_arena_destroy(arena);
        limit += 64;
        ck_assert_uint_lt(limit, MIB);
    }
    /* What was asked for is 136,509 bytes; headers, rounding and the rests of chunks must stay a small part of it. */
    ck_assert_uint_lt(limit, 136509 * 5 / 4);
}
END_TEST

START_TEST(a_refusal_leaves_the_arena_as_before)
{
    attn_arena *arena = attn_arena_create(100000);
    char *first = attn_arena_take(arena, 64, 1);
    ck_assert_ptr_nonnull(first);
    size_t bytes = attn_arena_bytes(arena);
    ck_assert_ptr_null(attn_arena_take(arena, 100000, 1));
    ck_assert_ptr_null(attn_arena_take(arena, SIZE_MAX, 1));
    ck_assert_uint_eq(attn_arena_bytes(arena), bytes);
    char *second = attn_arena_take(arena, 64, 1);
    ck_assert_ptr_eq(second, first + 64);
    attn_arena_destroy(arena);
}
END_TEST

START_TEST(products_that_overflow_are_refused)
{
    attn_arena *arena = attn_arena_create(SIZE_MAX);
    ck_assert_ptr_null(attn_arena_take(arena, SIZE_MAX / 2 + 1, 2));
    ck_assert_ptr_null(attn_arena_take(arena, SIZE_MAX / 8 + 2, 8));
    ck_assert_ptr_null(attn_arena_take(arena, SIZE_MAX, 1));
    ck_assert_ptr_null(attn_arena_take(arena, SIZE_MAX - 64, 1));
    ck_assert_ptr_null(attn_arena_take_zeroed(arena, SIZE_MAX / 2 + 1, 2));
    ck_assert_ptr_null(attn_arena_copy_text(arena, "", SIZE_MAX));
    ck_assert_ptr_nonnull(attn_arena_take(arena, SIZE_MAX, 0));
    attn_arena_destroy(arena);
}
END_TEST

START_TEST(zeroed_blocks_are_zero_even_in_used_memory)
{
    attn_arena *arena = attn_arena_create(MIB);
    for (int round = 0; round < 2; round++) {
        unsigned char *block = attn_arena_take_zeroed(arena, 500, 4);
        ck_assert_ptr_nonnull(block);
        for (int i = 0; i < 2000; i++)
            ck_assert_uint_eq(block[i], 0);
        memset(block, 0xFF, 2000);
        attn_arena_reset(arena);
    }
    attn_arena_destroy(arena);
}
END_TEST

START_TEST(text_is_copied_and_terminated)
{
    attn_arena *arena = attn_arena_create(MIB);
    ck_assert_str_eq(attn_arena_copy_text(arena, "queries", 5), "queri");
    ck_assert_str_eq(attn_arena_copy_text(arena, NULL, 0), "");
    attn_arena_destroy(arena);
}
END_TEST

START_TEST(release_gives_the_same_place_again_and_later_chunks_back)
{
    attn_arena *arena = attn_arena_create(4 * MIB);
    char *kept = attn_arena_take(arena, 1000, 1);
    ck_assert_ptr_nonnull(kept);
    memset(kept, 5, 1000);
    attn_arena_mark mark = attn_arena_mark_here(arena);
    size_t bytes = attn_arena_bytes(arena);
    void *next = attn_arena_take(arena, 100, 1);
    for (int i = 0; i < 100; i++)
        ck_assert_ptr_nonnull(attn_arena_take(arena, 300u * (unsigned)i, 1));
    ck_assert_uint_gt(attn_arena_bytes(arena), bytes);
    attn_arena_release(arena, mark);
    ck_assert_uint_eq(attn_arena_bytes(arena), bytes);
    ck_assert_ptr_eq(attn_arena_take(arena, 100, 1), next);
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(kept[i], 5);
    attn_arena_destroy(arena);
}
END_TEST

START_TEST(marks_nest_and_one_of_an_empty_arena_works)
{
    attn_arena *arena = attn_arena_create(4 * MIB);
    attn_arena_mark outer = attn_arena_mark_here(arena);
    ck_assert_ptr_nonnull(attn_arena_take(arena, 300000, 1));
    attn_arena_mark inner = attn_arena_mark_here(arena);
    ck_assert_ptr_nonnull(attn_arena_take(arena, 10, 1));
    ck_assert_ptr_nonnull(attn_arena_take(arena, 500000, 1));
    attn_arena_release(arena, inner);
    ck_assert_ptr_nonnull(attn_arena_take(arena, 10, 1));
    attn_arena_release(arena, outer);
    ck_assert_uint_eq(attn_arena_bytes(arena), 0);
    ck_assert_uint_gt(attn_arena_peak_bytes(arena), 800000);
    attn_arena_destroy(arena);
}
END_TEST

START_TEST(reset_keeps_the_memory_for_the_next_use)
{
    attn_arena *arena = attn_arena_create(4 * MIB);
    ck_assert(take_several(arena));
    size_t bytes = attn_arena_bytes(arena);
    for (int i = 0; i < 20; i++) {
        attn_arena_reset(arena);
        ck_assert_uint_eq(attn_arena_bytes(arena), bytes);
        ck_assert(take_several(arena));
        ck_assert_uint_eq(attn_arena_bytes(arena), bytes);
    }
    attn_arena_destroy(arena);
}
END_TEST

START_TEST(kept_memory_does_not_stand_in_the_way_of_a_larger_block)
{
    attn_arena *arena = attn_arena_create(MIB);
    for (int i = 0; i < 90; i++)
        ck_assert_ptr_nonnull(attn_arena_take(arena, 10000, 1));
    attn_arena_reset(arena);
    ck_assert_ptr_nonnull(attn_arena_take(arena, MIB - ATTN_ALIGNMENT, 1));
    ck_assert_uint_eq(attn_arena_bytes(arena), MIB);
    attn_arena_destroy(arena);
}
END_TEST

START_TEST(a_budget_bounds_all_its_arenas_together)
{
    attn_budget *budget = attn_budget_create(MIB);
    attn_arena *one = attn_arena_create_within(budget, 4 * MIB), *other = attn_arena_create_within(budget, 4 * MIB);
    ck_assert_ptr_nonnull(attn_arena_take(one, 700 << 10, 1));
    ck_assert_ptr_nonnull(attn_arena_take(other, 64, 1)); /* the first small chunk is free */
    ck_assert_ptr_null(attn_arena_take(other, 700 << 10, 1));
    ck_assert(!attn_arena_hit_limit(other));
    const size_t refused = attn_budget_refused_bytes(budget), taken = attn_budget_bytes(budget);
    ck_assert_uint_ge(refused, taken + (700 << 10));
    ck_assert_uint_le(refused, taken + (701 << 10));
    ck_assert_uint_gt(refused - taken, attn_budget_room_bytes(budget));
    ck_assert_uint_eq(attn_budget_refused_bytes(budget), 0);
    attn_arena_destroy(one);
    ck_assert_ptr_nonnull(attn_arena_take(other, 700 << 10, 1));
    attn_arena *third = attn_arena_create_beside(other);
    ck_assert_uint_eq(attn_arena_limit_bytes(third), 4 * MIB);
    ck_assert_ptr_null(attn_arena_take(third, 700 << 10, 1));
    attn_arena_destroy(third);
    attn_arena_destroy(other);
    ck_assert_uint_eq(attn_budget_bytes(budget), 0);
    attn_budget_destroy(budget);
}
END_TEST

START_TEST(an_arena_knows_that_its_own_ceiling_refused)
{
    attn_arena *arena = attn_arena_create(MIB);
    ck_assert_ptr_nonnull(attn_arena_take(arena, 64, 1));
    ck_assert(!attn_arena_hit_limit(arena));
    ck_assert_ptr_null(attn_arena_take(arena, 2 * MIB, 1));
    ck_assert(attn_arena_hit_limit(arena));
    attn_arena_destroy(arena);
}
END_TEST

START_TEST(large_arenas_leave_a_share_of_the_budget_to_small_ones)
{
    attn_budget *budget = attn_budget_create(32 * MIB);
    attn_arena *large = attn_arena_create_within(budget, 64 * MIB), *small = attn_arena_create_within(budget, MIB);
    size_t taken = 0;
    while (attn_arena_take(large, MIB / 2 - ATTN_ALIGNMENT, 1) != NULL)
        taken += MIB / 2;
    ck_assert_uint_eq(taken, 28 * MIB);
    ck_assert_ptr_null(attn_arena_take(large, 100 << 10, 1));
    ck_assert_ptr_nonnull(attn_arena_take(small, 100 << 10, 1));
    ck_assert_ptr_nonnull(attn_arena_take(small, 80 << 10, 1));
    ck_assert_ptr_null(attn_arena_take(small, 80 << 10, 1)); /* it is large now */
    attn_arena_destroy(large);
    attn_arena_destroy(small);
    attn_budget_destroy(budget);
}
END_TEST

/* Takes blocks of these sizes in an arena of its own; the address of the first. */
static const void *take_and_leave(attn_budget *budget, size_t bytes, size_t count)
{
    attn_arena *arena = attn_arena_create_within(budget, 64 * MIB);
    const void *first = attn_arena_take(arena, bytes, 1);
    ck_assert_ptr_nonnull(first);
    for (size_t i = 1; i < count; i++)
        ck_assert_ptr_nonnull(attn_arena_take(arena, bytes, 1));
    attn_arena_destroy(arena);
    return first;
}

START_TEST(an_arena_takes_the_blocks_that_another_one_left)
{
    attn_budget *budget = attn_budget_create(32 * MIB);
    const void *first = take_and_leave(budget, 300 << 10, 1);
    ck_assert_uint_eq(attn_budget_bytes(budget), 0);
    ck_assert_ptr_eq(take_and_leave(budget, 280 << 10, 1), first);
    attn_arena *arena = attn_arena_create_within(budget, MIB);
    ck_assert_ptr_eq(attn_arena_take(arena, 280 << 10, 1), first);
    ck_assert_uint_gt(attn_budget_bytes(budget), 300 << 10); /* what the block takes, not what it is used for */
    attn_arena_destroy(arena);
    ck_assert_uint_eq(attn_budget_bytes(budget), 0);
    attn_budget_destroy(budget);
}
END_TEST

static size_t allocated_bytes(void)
{
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

START_TEST(what_arenas_leave_to_each_other_is_bounded)
{
    attn_budget *budget = attn_budget_create(32 * MIB);
    const size_t before = allocated_bytes();
    take_and_leave(budget, 300 << 10, 90);
    ck_assert_uint_le(allocated_bytes() - before, attn_budget_spare_limit_bytes(32 * MIB) + (64 << 10));
    attn_budget_trim(budget);
    ck_assert_uint_le(allocated_bytes() - before, 64 << 10);
    attn_budget_destroy(budget);
}
END_TEST

START_TEST(blocks_of_huge_pages_are_left_too)
{
    attn_budget *budget = attn_budget_create(64 * MIB);
    take_and_leave(budget, 9 * MIB, 1);
    ck_assert_uint_eq(attn_budget_bytes(budget), 0);
    ck_assert_uint_ge(attn_budget_spare_bytes(budget), 9 * MIB);
    take_and_leave(budget, 8 * MIB, 1); /* in the same block */
    ck_assert_uint_lt(attn_budget_spare_bytes(budget), 10 * MIB);
    attn_budget_trim(budget);
    ck_assert_uint_eq(attn_budget_spare_bytes(budget), 0);
    attn_budget_destroy(budget);
}
END_TEST

START_TEST(blocks_that_were_left_make_way_for_others)
{
    attn_budget *budget = attn_budget_create(32 * MIB);
    const size_t before = allocated_bytes();
    take_and_leave(budget, 6 * MIB, 1);
    ck_assert_uint_ge(attn_budget_spare_bytes(budget), 6 * MIB);
    attn_arena *arena = attn_arena_create_within(budget, 64 * MIB);
    ck_assert_ptr_nonnull(attn_arena_take(arena, 20 * MIB, 1));
    ck_assert_uint_ge(attn_budget_spare_bytes(budget), 6 * MIB); /* there was room for both */
    ck_assert_ptr_nonnull(attn_arena_take(arena, 3 * MIB, 1));
    ck_assert_uint_eq(attn_budget_spare_bytes(budget), 0);
    ck_assert_uint_le(allocated_bytes() - before, 28 * MIB);
    attn_arena_destroy(arena);
    attn_budget_destroy(budget);
}
END_TEST

CHECK_MAIN("arena")
{
    tcase_add_test(tests, blocks_are_aligned_and_do_not_overlap);
    tcase_add_test(tests, large_blocks_have_any_size);
    tcase_add_test(tests, nothing_is_taken_from_the_system_before_it_is_needed);
    tcase_add_test(tests, the_ceiling_is_never_passed);
    tcase_add_test(tests, exactly_what_is_left_can_be_taken);
    tcase_add_test(tests, small_blocks_use_a_small_arena_up);
    tcase_add_test(tests, the_same_work_succeeds_when_repeated_with_64_bytes_more_each_time);
    tcase_add_test(tests, a_refusal_leaves_the_arena_as_before);
    tcase_add_test(tests, products_that_overflow_are_refused);
    tcase_add_test(tests, zeroed_blocks_are_zero_even_in_used_memory);
    tcase_add_test(tests, text_is_copied_and_terminated);
    tcase_add_test(tests, release_gives_the_same_place_again_and_later_chunks_back);
    tcase_add_test(tests, marks_nest_and_one_of_an_empty_arena_works);
    tcase_add_test(tests, reset_keeps_the_memory_for_the_next_use);
    tcase_add_test(tests, kept_memory_does_not_stand_in_the_way_of_a_larger_block);
    tcase_add_test(tests, a_budget_bounds_all_its_arenas_together);
    tcase_add_test(tests, large_arenas_leave_a_share_of_the_budget_to_small_ones);
    tcase_add_test(tests, an_arena_takes_the_blocks_that_another_one_left);
    tcase_add_test(tests, what_arenas_leave_to_each_other_is_bounded);
    tcase_add_test(tests, blocks_of_huge_pages_are_left_too);
    tcase_add_test(tests, blocks_that_were_left_make_way_for_others);
    tcase_add_test(tests, an_arena_knows_that_its_own_ceiling_refused);
}
