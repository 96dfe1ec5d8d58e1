/*
 * test_outcome.c: tests server/codec/bytes/outcome.c.
 */
#include "check_main.h"
#include "codec/bytes/outcome.h"

START_TEST(the_first_failure_stays)
{
    attn_error err;
    attn_arena *arena = attn_arena_create(1 << 12);
    struct outcome outcome = {.arena = arena, .err = &err};
    ck_assert(outcome_note(&outcome, ATTN_OK));
    ck_assert_ptr_nonnull(outcome_take(&outcome, 1, 16));
    ck_assert(!outcome_fail(&outcome, ATTN_ERR_VALUE, "/a", "a is %d", 1));
    ck_assert(!outcome_fail(&outcome, ATTN_ERR_FIELD, "/b", "b"));
    ck_assert(!outcome_note(&outcome, ATTN_ERR_SHAPE));
    ck_assert(!outcome_no_memory(&outcome));
    ck_assert_ptr_null(outcome_take(&outcome, 1, 16));
    ck_assert_int_eq(outcome.status, ATTN_ERR_VALUE);
    ck_assert_str_eq(err.field, "/a");
    ck_assert_str_eq(err.message, "a is 1");
    attn_arena_destroy(arena);
}
END_TEST

START_TEST(a_full_arena_is_a_failure)
{
    attn_error err;
    attn_arena *arena = attn_arena_create(1 << 12);
    struct outcome outcome = {.arena = arena, .err = &err};
    ck_assert_ptr_null(outcome_take(&outcome, 1 << 20, 16));
    ck_assert_int_eq(outcome.status, ATTN_ERR_NO_MEMORY);
    ck_assert_int_eq(err.status, ATTN_ERR_NO_MEMORY);
    ck_assert_ptr_null(outcome_copy_text(&outcome, "text", 4));
    attn_arena_destroy(arena);
}
END_TEST

CHECK_MAIN("outcome")
{
    tcase_add_test(tests, the_first_failure_stays);
    tcase_add_test(tests, a_full_arena_is_a_failure);
}
