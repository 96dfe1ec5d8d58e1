/*
 * test_skim.c: tests of server/codec/json/skim.c.
 */
#include "codec/json/skim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_main.h"

enum { ARENA_BYTES = 1 << 26, TEXT_MAX = 1 << 20, DEPTH_MAX = 32 };

static attn_arena *arena;
static attn_error err;
static struct skim skim;

static void make_arena(void)
{
    arena = attn_arena_create(ARENA_BYTES);
    ck_assert_ptr_nonnull(arena);
}

static void destroy_arena(void)
{
    attn_arena_destroy(arena);
}

static attn_status skim_text(const char *text)
{
    err = (attn_error){0};
    return skim_body(text, strlen(text), TEXT_MAX, DEPTH_MAX, arena, &skim, &err);
}

START_TEST(only_tensors_are_lifted)
{
    static const struct {
        const char *body, *envelope;
    } cases[] = {
        {"", ""},
        {"{}", "{}"},
        {"{\"a\":[1,2]}", "{\"a\":[0]}"},
        {"{\"a\":[[ 1 ]],\"b\":[-2]}", "{\"a\":[0],\"b\":[1]}"},
        {"{\"a\":[\"x\",[1]]}", "{\"a\":[\"x\",[0]]}"},
        {"[true]", "[0]"},
        {"[false]", "[0]"},
        {"[null,1]", "[0]"},
        {"[\"NaN\"]", "[0]"},
        {"[\"Infinity\"]", "[0]"},
        {"[\"-Infinity\"]", "[0]"},
        {"[\"Nan\"]", "[\"Nan\"]"},
        {"[]", "[0]"},
        {"[[ [] ]]", "[0]"},
        {"[{\"a\":[0]}]", "[{\"a\":[0]}]"},
        {"[[[{}]]]", "[[[{}]]]"},
        {"[\"[1]\"]", "[\"[1]\"]"},
        {"{\"[1]\":\"\\\"[2]\"}", "{\"[1]\":\"\\\"[2]\"}"},
        {"[1,\"]\",\"\\\"]\",2]", "[0]"},
        {"x[1]y", "x[0]y"},
        {"                                  1", " 1"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        ck_assert_msg(skim_text(cases[i].body) == ATTN_OK, "%s: %s", cases[i].body, err.message);
        ck_assert_msg(skim.length == strlen(cases[i].envelope) &&
                          (skim.length == 0 || memcmp(skim.text, cases[i].envelope, skim.length) == 0),
                      "%s: %.*s", cases[i].body, (int)skim.length, skim.text);
    }
}
END_TEST

START_TEST(long_plain_strings_are_lifted_but_names_and_escapes_are_not)
{
    char plain[SKIM_LONG_STRING + 1], body[4 * SKIM_LONG_STRING];
    memset(plain, 'A', sizeof plain - 1);
    plain[sizeof plain - 1] = '\0';
    snprintf(body, sizeof body, "{\"a\":\"%s\"}", plain);
    ck_assert_int_eq(skim_text(body), ATTN_OK);
    ck_assert_uint_eq(skim.length, strlen("{\"a\":[0]}"));
    ck_assert_mem_eq(skim.text, "{\"a\":[0]}", skim.length);
    ck_assert_uint_eq(skim.lifted[0].length, sizeof plain + 1);
    snprintf(body, sizeof body, "{\"%s\" : 1}", plain);
    ck_assert_int_eq(skim_text(body), ATTN_OK);
    ck_assert_uint_eq(skim.lifted_count, 0);
    snprintf(body, sizeof body, "{\"a\":\"%s\\n\"}", plain);
    ck_assert_int_eq(skim_text(body), ATTN_OK);
    ck_assert_uint_eq(skim.lifted_count, 0);
    snprintf(body, sizeof body, "{\"a\":\"%s\xc3\xa9\"}", plain);
    ck_assert_int_eq(skim_text(body), ATTN_OK);
    ck_assert_uint_eq(skim.lifted_count, 0);
}
END_TEST

/* More in one piece than twice the room that there was. */
START_TEST(a_name_of_any_length_is_kept_whole)
{
    enum { NAME = 100000 };
    char *body = malloc(NAME + 8);
    ck_assert_ptr_nonnull(body);
    memset(body, 'a', NAME);
    body[0] = '"';
    memcpy(body + NAME, "\":[1]", sizeof "\":[1]");
    ck_assert_int_eq(skim_text(body), ATTN_OK);
    ck_assert_uint_eq(skim.length, strlen(body));
    ck_assert_mem_eq(skim.text, body, NAME);
    ck_assert_mem_eq(skim.text + NAME, "\":[0]", strlen("\":[0]"));
    free(body);
}
END_TEST

START_TEST(every_byte_of_the_envelope_leads_back_to_the_body)
{
    const char *body = "{ \"a\":[1,2,3],                         \"b\":[[4]],\n\"c\":x}";
    ck_assert_int_eq(skim_text(body), ATTN_OK);
    for (size_t i = 0; i < skim.length; i++) {
        char c = skim.text[i];
        if (strchr("{}abcx\":,", c))
            ck_assert_int_eq(body[skim_body_offset(&skim, i)], c);
    }
    const size_t offset = skim_body_offset(&skim, skim.length - 2);
    ck_assert_int_eq(skim_place(&skim, offset, ATTN_ERR_SYNTAX, &err), ATTN_ERR_SYNTAX);
    ck_assert_uint_eq(err.line, 2);
    ck_assert_uint_eq(err.column, 5);
}
END_TEST

START_TEST(what_has_no_end_is_refused_with_its_place)
{
    static const struct {
        const char *body, *fragment;
        size_t line, column;
    } cases[] = {
        {"{\"a\":\n [1,2}", "array that begins here has no end", 2, 2},
        {"{\"a\": \"x}", "string that begins here has no end", 1, 7},
        {"{\"a\": \"x\\", "string that begins here has no end", 1, 7},
        {"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "more than 32 levels", 1, 33},
        {"{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{", "more than 32 levels", 1, 33},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        ck_assert_int_eq(skim_text(cases[i].body), ATTN_ERR_SYNTAX);
        ck_assert_msg(strstr(err.message, cases[i].fragment), "%s: %s", cases[i].body, err.message);
        ck_assert_uint_eq(err.line, cases[i].line);
        ck_assert_uint_eq(err.column, cases[i].column);
    }
}
END_TEST

START_TEST(a_long_envelope_is_too_large)
{
    const char *body = "{\"member\": \"value\"}";
    ck_assert_int_eq(skim_body(body, strlen(body), 10, DEPTH_MAX, arena, &skim, &err), ATTN_ERR_TOO_LARGE);
    ck_assert_ptr_nonnull(strstr(err.message, "longer than 10 bytes"));
}
END_TEST

/* The obvious way to find the end of an array. */
static const char *plain_array_end(const char *text, const char *end, size_t *commas)
{
    size_t depth = 0;
    bool is_in_string = false;
    *commas = 0;
    for (; text < end; text++) {
        if (is_in_string && *text == '\\' && text + 1 < end)
            text++;
        else if (*text == '"')
            is_in_string = !is_in_string;
        else if (is_in_string)
            continue;
        else if (*text == ',')
            ++*commas;
        else if (*text == '[')
            depth++;
        else if (*text == ']' && --depth == 0)
            return text + 1;
    }
    return NULL;
}

START_TEST(array_end_agrees_with_the_obvious_way_on_random_text)
{
    static const char alphabet[] = "[[]]\"\\,,1 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    unsigned seed = 1;
    char text[300];
    for (int round = 0; round < 100000; round++) {
        size_t length = 1 + (size_t)round % sizeof text, spread = round % 3 == 0 ? 10 : sizeof alphabet - 1;
        for (size_t i = 0; i < length; i++) {
            seed = seed * 1664525 + 1013904223;
            text[i] = alphabet[(seed >> 16) % spread];
        }
        text[0] = '[';
        size_t commas, plain_commas;
        const char *end = array_end_find(text, text + length, &(struct pace){.bytes = 0}, &commas);
        const char *plain_end = plain_array_end(text, text + length, &plain_commas);
        ck_assert_msg(end == plain_end, "%.*s", (int)length, text);
        if (end)
            ck_assert_uint_eq(commas, plain_commas);
    }
}
END_TEST

CHECK_MAIN("skim")
{
    tcase_add_checked_fixture(tests, make_arena, destroy_arena);
    tcase_add_test(tests, only_tensors_are_lifted);
    tcase_add_test(tests, long_plain_strings_are_lifted_but_names_and_escapes_are_not);
    tcase_add_test(tests, a_name_of_any_length_is_kept_whole);
    tcase_add_test(tests, every_byte_of_the_envelope_leads_back_to_the_body);
    tcase_add_test(tests, what_has_no_end_is_refused_with_its_place);
    tcase_add_test(tests, a_long_envelope_is_too_large);
    tcase_add_test(tests, array_end_agrees_with_the_obvious_way_on_random_text);
}
