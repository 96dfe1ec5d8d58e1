/*
 * test_hints.c: tests of server/codec/request/hints.c: the hints of an answer to an ambiguous request.
 */
#include "codec/request/hints.h"

#include "envelope_stage.h"

#define ONE  "{\"inputs\":{\"query\":[[1,2]],\"key\":[[1,2],[3,4],[5,6]]"
#define ALL  "{\"inputs\":{\"query\":[[1,2],[3,4],[5,6]]"
#define MORE ",\"past_key\":[[[[1,2]]]],\"past_value\":[[[[1,2]]]]"

/* The members that the hints add to diagnostics; "" without a hint. */
static const char *hints_of(const char *request)
{
    attn_plan plan;
    struct chunks out = chunks_begin(arena);
    accept(request);
    const attn_status status = attn_plan_make(&envelope.request, &plan, &err);
    ck_assert_msg(status == ATTN_OK, "%s: %s", request, err.message);
    hints_write(&envelope, &plan, &out);
    ck_assert(out.is_ok);
    const char *text = chunks_join(&out);
    return attn_arena_copy_text(arena, text != NULL ? text : "", out.total_bytes);
}

static const char *const hinted[] = {
    ONE "},\"masks\":{\"causal\":true},\"options\":{\"rope\":{}}}",
    ONE "},\"masks\":{\"window\":[1,0]},\"options\":{\"rope\":{}}}",
    ONE "},\"options\":{\"rope\":{},\"alibi\":true}}",
    ONE "},\"options\":{\"rope\":{},\"alibi\":[0.5]}}",
    ONE "},\"options\":{\"rope\":{},\"relative_bias\":{\"table\":[[1],[2],[3],[4]]}}}",
    ONE "},\"masks\":{\"causal\":{\"offset\":2}},\"options\":{\"rope\":{}}}",
};

START_TEST(rope_that_counts_from_another_place_than_the_mask_is_told)
{
    const char *text = hints_of(hinted[_i]);
    ck_assert_msg(strstr(text, ",\"hints\":[{\"pointer\":\"/options/rope\",\"message\":\"") == text, "%s", text);
    ck_assert_ptr_nonnull(strstr(text, "as position 0 (past_len)"));
    ck_assert_ptr_nonnull(strstr(text, "as position 2: give rope.positions"));
    ck_assert_str_eq(text + strlen(text) - 3, "\"}]");
}
END_TEST

static const char *const plain[] = {
    ONE "},\"options\":{\"rope\":{}}}",
    ONE "},\"masks\":{\"causal\":true}}",
    ONE "},\"masks\":{\"causal\":{\"align\":\"top_left\"}},\"options\":{\"rope\":{}}}",
    ONE "},\"masks\":{\"causal\":true},\"options\":{\"rope\":{\"positions\":{\"query\":[2],\"key\":[0,1,2]}}}}",
    ALL "},\"masks\":{\"causal\":true},\"options\":{\"rope\":{},\"alibi\":true}}",
    ALL MORE "},\"masks\":{\"causal\":true},\"options\":{\"rope\":{}}}",
};

START_TEST(what_has_one_meaning_gets_no_hint)
{
    ck_assert_str_eq(hints_of(plain[_i]), "");
}
END_TEST

CHECK_MAIN("hints")
{
    tcase_add_checked_fixture(tests, prepare, release);
    tcase_add_loop_test(tests, rope_that_counts_from_another_place_than_the_mask_is_told, 0,
                        sizeof hinted / sizeof hinted[0]);
    tcase_add_loop_test(tests, what_has_one_meaning_gets_no_hint, 0, sizeof plain / sizeof plain[0]);
}
