/*
 * test_json_plain.c: plain JSON gives the same tree as the library; any other JSON is left to the library.
 */
#include "codec/json/tree.h"

#include <stdio.h>
#include <string.h>

#include "check_main.h"

static const char *const PLAIN[] = {
    "{\"inputs\":{\"query\":[0],\"key\":[1],\"value\":[2]},\"options\":{\"return\":[\"output\", \"attention\"]}}",
    " { \"a\" :\t[ 1 ,\r\n2,[ ] , { } ] , \"b\" : true , \"\" : \"\" } ",
    "[true,false,null,0,7,123456789012345,\"x y~!\"]",
    "\"alone\"",
    "42",
    "null",
    "[[[[[[[[1]]]]]]]]",
};

static const char *const NOT_PLAIN[] = {
    "",
    " ",
    "{",
    "[",
    "\"",
    "{\"a\"",
    "{\"a\":",
    "{\"a\":1",
    "[1",
    "[1,",
    "{\"a\":1,}",
    "[1,]",
    "[,1]",
    "{,}",
    "1 2",
    "[1 2]",
    "{\"a\" 1}",
    "{a:1}",
    "{1:1}",
    "'a'",
    "tru",
    "truex",
    "nul",
    "+1",
    "-1",
    "01",
    "1.5",
    "1e5",
    "[1.5]",
    "1234567890123456",
    "\"a\\n\"",
    "\"\\u0041\"",
    "\"\xC3\xA9\"",
    "\"\x7F\"",
    "\"\t\"",
    "{\"a\":1,\"a\":2}",
    "{\"a\":{\"b\":1,\"b\":1}}",
    "[1]]",
    "NaN",
    "[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]",
    "[1}",
    "{\"a\":1]",
    "\xEF\xBB\xBF[1]",
};

static json_t *by_library(const char *text, size_t length)
{
    return json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
}

START_TEST(plain_text_is_read_as_the_library_reads_it)
{
    for (size_t i = 0; i < sizeof PLAIN / sizeof *PLAIN; i++) {
        json_t *tree = json_plain_load(PLAIN[i], strlen(PLAIN[i])), *expected = by_library(PLAIN[i], strlen(PLAIN[i]));
        ck_assert_msg(tree != NULL, "not read: %s", PLAIN[i]);
        ck_assert_msg(json_equal(tree, expected), "read otherwise: %s", PLAIN[i]);
        json_decref(tree);
        json_decref(expected);
    }
}
END_TEST

START_TEST(anything_else_is_left_to_the_library)
{
    for (size_t i = 0; i < sizeof NOT_PLAIN / sizeof *NOT_PLAIN; i++)
        ck_assert_msg(json_plain_load(NOT_PLAIN[i], strlen(NOT_PLAIN[i])) == NULL, "read: %s", NOT_PLAIN[i]);
}
END_TEST

/* text, spoilt: when it is read at all, then as the library reads it. */
static void check_agrees(const char *text, size_t length)
{
    json_t *tree = json_plain_load(text, length), *expected;
    if (tree == NULL)
        return;
    expected = by_library(text, length);
    ck_assert_msg(expected != NULL && json_equal(tree, expected), "read otherwise: %.*s", (int)length, text);
    json_decref(tree);
    json_decref(expected);
}

START_TEST(no_text_is_read_that_the_library_refuses)
{
    static const char spoilers[] = "\0{}[]\",:\\ 019-+.eEtfn\n\x1f\x7f\x80\xff";
    for (size_t i = 0; i < sizeof PLAIN / sizeof *PLAIN; i++) {
        const size_t length = strlen(PLAIN[i]);
        for (size_t at = 0; at < length; at++) {
            char text[200];
            check_agrees(PLAIN[i], at); /* cut off */
            for (size_t s = 0; s < sizeof spoilers; s++) {
                memcpy(text, PLAIN[i], length);
                text[at] = spoilers[s];
                check_agrees(text, length);
                memcpy(text + at + 1, PLAIN[i] + at, length - at); /* inserted */
                check_agrees(text, length + 1);
            }
            memcpy(text, PLAIN[i], at);
            memcpy(text + at, PLAIN[i] + at + 1, length - at - 1); /* left out */
            check_agrees(text, length - 1);
        }
    }
}
END_TEST

static size_t blocks_left;
static long blocks_out;

static void *take_one(size_t size)
{
    void *block = blocks_left > 0 ? malloc(size) : NULL;
    blocks_left -= block != NULL;
    blocks_out += block != NULL;
    return block;
}

static void give_one(void *block)
{
    blocks_out -= block != NULL;
    free(block);
}

START_TEST(without_memory_there_is_no_tree_and_nothing_is_left_behind)
{
    json_t *tree = NULL;
    size_t tries = 0;
    json_set_alloc_funcs(take_one, give_one);
    while (tree == NULL) {
        ck_assert_int_eq(blocks_out, 0);
        blocks_left = tries++;
        tree = json_plain_load(PLAIN[0], strlen(PLAIN[0]));
    }
    json_decref(tree);
    ck_assert_int_eq(blocks_out, 0);
    ck_assert_uint_gt(tries, 10);
}
END_TEST

CHECK_MAIN("json_plain")
{
    tcase_add_test(tests, plain_text_is_read_as_the_library_reads_it);
    tcase_add_test(tests, anything_else_is_left_to_the_library);
    tcase_add_test(tests, no_text_is_read_that_the_library_refuses);
    tcase_add_test(tests, without_memory_there_is_no_tree_and_nothing_is_left_behind);
}
