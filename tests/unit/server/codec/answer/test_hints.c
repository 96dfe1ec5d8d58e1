/*
 * test_hints.c: tests of server/codec/answer/hints.c: the hints of an answer to an ambiguous request.
 */
#include "codec/answer/forms.h"

#include <stdio.h>
#include <string.h>

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
    hints_write(&envelope, &plan, &(attn_result){0}, &out);
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

/* Two items, two heads, two queries and keys: every shape of a mask is ambiguous. */
#define TWO "{\"inputs\":{\"query\":[[[1,2],[3,4]],[[5,6],[7,8]]]},\"options\":{\"num_heads\":2},\"masks\":{"

static const struct {
    const char *request, *pointer, *fragment;
} masks[] = {
    {TWO "\"attend\":[[[1,1],[1,1]],[[1,0],[0,1]]]}}", "/masks/attend", "(batch, 1, q_len, kv_len)"},
    {TWO "\"attend\":[[1,1],[1,0]]}}", "/masks/attend", "masks.padding takes (batch, kv_len)"},
    {TWO "\"bias\":[[[1,1],[1,1]],[[1,0],[0,1]]]}}", "/masks/bias", "(batch, 1, q_len, kv_len)"},
    {TWO "\"bias\":[[1,1],[2,0]]}}", "/masks/bias", "masks.padding takes (batch, kv_len)"},
    {ALL "},\"masks\":{\"bias\":[[1,0,0],[1,1,0],[1,1,1]]}}", "/masks/bias", "a mask is masks.attend"},
    {ALL "},\"masks\":{\"bias\":[[0,1,1],[0,0,1],[0,0,0]]}}", "/masks/bias", "a mask is masks.attend"},
    {ALL "},\"masks\":{\"bias\":[1,1,0]}}", "/masks/bias", "a mask is masks.attend"},
    {ALL "},\"masks\":{\"bias\":[[0,0,0],[0,1,0],[0,1,1]]}}", "/masks/bias", "a mask is masks.attend"},
    {ALL "},\"masks\":{\"bias\":[[0,1,1]]},\"options\":{\"compute\":\"float64\"}}", "/masks/bias",
     "a mask is masks.attend"},
    {ALL MORE "},\"masks\":{\"bias\":[[1,1,0,0],[1,1,1,0],[1,1,1,1]]}}", "/masks/bias", "a mask is masks.attend"},
    {"{\"inputs\":{\"query\":[[[1,2]],[[3,4]],[[5,6]]]}}", "/inputs/query", "inputs are (batch, len, d)"},
    {"{\"inputs\":{\"query\":[[[1,2]],[[3,4]]],\"key\":[[[1,2]],[[3,4]]]}}", "/inputs/query",
     "one sequence of 2 positions is (2, d) or (1, 2, d)"},
    {TWO "\"attend\":[[0,1],[0,0]]}}", "/masks/attend", "is the mask inverted?"},
    {ALL "},\"masks\":{\"attend\":[[0,1,1],[0,0,1],[0,0,0]]}}", "/masks/attend", "is the mask inverted?"},
    {ALL MORE "},\"masks\":{\"attend\":[[0,0,1,1],[0,0,0,1],[0,0,0,0]]}}", "/masks/attend", "inverted?"},
    {ALL "},\"masks\":{\"attend\":[[[[0,1,1],[0,0,1],[0,0,0]]]]}}", "/masks/attend", "inverted?"},
    {TWO "\"padding\":[[0,1],[0,0]]}}", "/masks/padding", "item 1 has no token"},
    {ALL "},\"masks\":{\"padding\":[0,0,0]}}", "/masks/padding", "item 0 has no token"},
};

START_TEST(a_mask_with_two_meanings_is_told)
{
    char pointer[64];
    const char *text = hints_of(masks[_i].request);
    snprintf(pointer, sizeof pointer, ",\"hints\":[{\"pointer\":\"%s\",\"message\":\"", masks[_i].pointer);
    ck_assert_msg(strstr(text, pointer) == text, "%s", text);
    ck_assert_msg(strstr(text, masks[_i].fragment) != NULL, "%s", text);
}
END_TEST

static const char *const clear_masks[] = {
    TWO "\"attend\":true}}",
    TWO "\"attend\":[[[[1,1],[1,1]]],[[[1,0],[0,1]]]]}}",
    TWO "\"attend\":[1,0]}}",
    TWO "\"bias\":[0.5,1]}}",
    ALL "},\"masks\":{\"bias\":[[1,0,0],[1,1,0],[1,1,2]]}}",
    ALL "},\"masks\":{\"bias\":[[1,0,0],[0,1,0],[0,0,1]]}}",
    ALL "},\"masks\":{\"bias\":[[0,1,0],[1,0,1],[0,1,0]]}}",
    ALL "},\"masks\":{\"bias\":[0,1,0]}}",
    ALL "},\"masks\":{\"bias\":[[1],[0],[0]]}}",
    ALL "},\"masks\":{\"bias\":[1,1,1]}}",
    ALL "},\"masks\":{\"bias\":[[0,\"-Infinity\",0]]}}",
    ALL "},\"masks\":{\"bias\":1}}",
    "{\"inputs\":{\"query\":[[[1,2]]]}}",
    "{\"inputs\":{\"query\":[[[[1,2]]],[[[3,4]]]]}}",
    "{\"inputs\":{\"query\":[[[1,2]],[[3,4]]]},\"options\":{\"cache\":\"a\"}}",
    "{\"inputs\":{\"query\":[[[1,2]],[[3,4]]],\"key\":[[[1,2],[1,2]],[[3,4],[5,6]]]}}",
    "{\"inputs\":{\"query\":[[[1,2]],[[3,4]]],\"past_key\":[[[[1,2]]],[[[3,4]]]],\"past_value\":[[[[1,2]]],[[[3,4]]]]}}",
    TWO "\"padding\":[[1,1],[1,0]]}}",
    ALL "},\"masks\":{\"attend\":[[1,0,0],[1,1,0],[1,1,1]]}}",
    ALL "},\"masks\":{\"attend\":[[0,0,0],[0,0,0],[0,0,0]]}}",
    ALL "},\"masks\":{\"attend\":[[0,1,1],[1,0,1],[1,1,0]]}}",
    ONE "},\"masks\":{\"attend\":[[0,1,1]]}}",
    ALL ",\"key\":[[1,2]]},\"masks\":{\"attend\":[[0],[1],[1]]}}",
};

START_TEST(a_mask_with_one_meaning_gets_no_hint)
{
    ck_assert_str_eq(hints_of(clear_masks[_i]), "");
}
END_TEST

CHECK_MAIN("hints")
{
    tcase_add_loop_test(tests, a_mask_with_two_meanings_is_told, 0, sizeof masks / sizeof masks[0]);
    tcase_add_loop_test(tests, a_mask_with_one_meaning_gets_no_hint, 0, sizeof clear_masks / sizeof clear_masks[0]);
    tcase_add_checked_fixture(tests, prepare, release);
    tcase_add_loop_test(tests, rope_that_counts_from_another_place_than_the_mask_is_told, 0,
                        sizeof hinted / sizeof hinted[0]);
    tcase_add_loop_test(tests, what_has_one_meaning_gets_no_hint, 0, sizeof plain / sizeof plain[0]);
}
