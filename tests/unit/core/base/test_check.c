/*
 * test_check.c: tests core/src/base/check.c.
 */
#include "base/check.h"

#include <stdio.h>
#include <string.h>

#include "check_main.h"

/* An attn_namer: "options.norm_eps" becomes "/options.norm/eps". */
static void name_with_slashes(const attn_request *request, const char *path, char *name, size_t size)
{
    (void)request;
    snprintf(name, size, "/%s", path);
    char *underscore = strrchr(name, '_');
    if (underscore != NULL)
        *underscore = '/';
}

START_TEST(members_have_their_c_names_unless_the_caller_has_others)
{
    static const char format[] = "~ is %d beside @options.softcap and @: see ~options.qk_norm.";
    attn_error err;
    struct attn_check plain = {.err = &err}, named = {.names = name_with_slashes, .err = &err};
    ck_assert(!attn_refuse(&plain, ATTN_ERR_VALUE, "options.norm_eps", format, 7));
    ck_assert_str_eq(err.field, "options.norm_eps");
    ck_assert_str_eq(err.message, "norm_eps is 7 beside options.softcap and options.norm_eps: see qk_norm.");
    ck_assert(!attn_refuse(&named, ATTN_ERR_VALUE, "options.norm_eps", format, 7));
    ck_assert_str_eq(err.field, "/options.norm/eps");
    ck_assert_str_eq(err.message, "eps is 7 beside /options.softcap and /options.norm/eps: see norm.");
}
END_TEST

START_TEST(the_first_failure_stays)
{
    attn_error err;
    struct attn_check check = {.err = &err};
    const attn_tensor tensor = attn_tensor_view(NULL, ATTN_F32, 1, (const size_t[]){3});
    ck_assert(!attn_refuse_shape(&check, "inputs.key", &tensor, "[4]", "~ has %d", 3));
    ck_assert(!attn_refuse(&check, ATTN_ERR_VALUE, "inputs.value", "~"));
    ck_assert(!attn_refuse_shape(&check, "inputs.value", &tensor, "[5]", "~"));
    ck_assert(!attn_refuse_no_memory(&check) && !attn_refuse_stopped(&check));
    ck_assert_int_eq(check.status, ATTN_ERR_SHAPE);
    ck_assert_str_eq(err.message, "key has 3");
    ck_assert_str_eq(err.expected, "[4]");
    ck_assert_str_eq(err.received, "[3]");
}
END_TEST

START_TEST(a_message_that_is_too_long_is_cut)
{
    char text[2000];
    attn_error err;
    struct attn_check check = {.err = &err};
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    ck_assert(!attn_refuse(&check, ATTN_ERR_VALUE, "options.norm_eps", "~ %s @", text));
    ck_assert_uint_lt(strlen(err.message), sizeof err.message);
}
END_TEST

CHECK_MAIN("check")
{
    tcase_add_test(tests, members_have_their_c_names_unless_the_caller_has_others);
    tcase_add_test(tests, the_first_failure_stays);
    tcase_add_test(tests, a_message_that_is_too_long_is_cut);
}
