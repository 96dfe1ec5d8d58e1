/*
 * test_status.c: tests core/src/base/status.c.
 */
#include "attn/status.h"

#include <stdlib.h>
#include <string.h>

#include "check_main.h"

START_TEST(every_status_has_the_name_that_answers_use)
{
    ck_assert_str_eq(attn_status_name(ATTN_OK), "ok");
    ck_assert_str_eq(attn_status_name(ATTN_ERR_SHAPE), "shape");
    ck_assert_str_eq(attn_status_name(ATTN_ERR_TOO_LARGE), "too-large");
    ck_assert_str_eq(attn_status_name(ATTN_ERR_CANCELLED), "cancelled");
}
END_TEST

START_TEST(fail_records_status_field_and_message)
{
    attn_error err;
    memset(&err, 0xAB, sizeof err);
    attn_status status = attn_fail(&err, ATTN_ERR_SHAPE, "inputs.key", "key has %zu, query has %d", (size_t)4, 3);
    ck_assert_int_eq(status, ATTN_ERR_SHAPE);
    ck_assert_int_eq(err.status, ATTN_ERR_SHAPE);
    ck_assert_str_eq(err.field, "inputs.key");
    ck_assert_str_eq(err.message, "key has 4, query has 3");
    ck_assert_str_eq(err.expected, "");
    ck_assert_str_eq(err.received, "");
    ck_assert_uint_eq(err.line, 0);
    ck_assert_uint_eq(err.column, 0);
}
END_TEST

START_TEST(fail_works_without_a_record_and_without_a_field)
{
    ck_assert_int_eq(attn_fail(NULL, ATTN_ERR_VALUE, "/x", "no"), ATTN_ERR_VALUE);
    attn_error err;
    ck_assert_int_eq(attn_fail(&err, ATTN_ERR_VALUE, NULL, "no"), ATTN_ERR_VALUE);
    ck_assert_str_eq(err.field, "");
}
END_TEST

START_TEST(fail_may_quote_the_record_that_it_replaces)
{
    attn_error err;
    ck_assert_int_eq(attn_fail(&err, ATTN_ERR_FIELD, "/a", "first"), ATTN_ERR_FIELD);
    ck_assert_int_eq(attn_fail(&err, ATTN_ERR_FIELD, err.field, "then %s", err.message), ATTN_ERR_FIELD);
    ck_assert_str_eq(err.message, "then first");
    ck_assert_str_eq(err.field, "/a");
}
END_TEST

START_TEST(a_long_message_is_cut_between_characters)
{
    attn_error err;
    char text[1000];
    for (size_t lead = 0; lead < 4; lead++) {
        memset(text, 'x', lead);
        size_t length = lead;
        while (length + 3 < sizeof text) {
            memcpy(text + length, "\xE2\x82\xAC", 3); /* the euro sign */
            length += 3;
        }
        text[length] = '\0';
        ck_assert_int_eq(attn_fail(&err, ATTN_ERR_FIELD, text, "%s", text), ATTN_ERR_FIELD);
        ck_assert_uint_eq((strlen(err.message) - lead) % 3, 0);
        ck_assert_uint_gt(strlen(err.message), sizeof err.message - 4);
        ck_assert_uint_eq((strlen(err.field) - lead) % 3, 0);
    }
}
END_TEST

START_TEST(expect_adds_fragments_and_leaves_out_those_too_long_to_stay_json)
{
    attn_error err;
    ck_assert_int_eq(attn_fail(&err, ATTN_ERR_SHAPE, "/q", "no"), ATTN_ERR_SHAPE);
    ck_assert_int_eq(attn_expect(&err, "[3,3]", "[3,4]"), ATTN_ERR_SHAPE);
    ck_assert_str_eq(err.expected, "[3,3]");
    ck_assert_str_eq(err.received, "[3,4]");
    char text[sizeof err.expected + 1];
    memset(text, '1', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    ck_assert_int_eq(attn_expect(&err, text, NULL), ATTN_ERR_SHAPE);
    ck_assert_str_eq(err.expected, "");
    ck_assert_str_eq(err.received, "");
}
END_TEST

CHECK_MAIN("status")
{
    tcase_add_test(tests, every_status_has_the_name_that_answers_use);
    tcase_add_test(tests, fail_records_status_field_and_message);
    tcase_add_test(tests, fail_works_without_a_record_and_without_a_field);
    tcase_add_test(tests, fail_may_quote_the_record_that_it_replaces);
    tcase_add_test(tests, a_long_message_is_cut_between_characters);
    tcase_add_test(tests, expect_adds_fragments_and_leaves_out_those_too_long_to_stay_json);
}
