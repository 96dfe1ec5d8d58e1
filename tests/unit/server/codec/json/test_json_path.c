/*
 * test_json_path.c: tests of json_path_at in server/codec/json/document.c.
 */
#include "codec/json/document.h"

#include <string.h>

#include "check_main.h"

/* '@' marks the position whose path is asked for. */
static const struct {
    const char *text, *pointer;
} PLACES[] = {
    {"@", ""},
    {"[@", "/0"},
    {"[1,[], {},\n@", "/3"},
    {"{\"a\":@", "/a"},
    {"{\"a\" : {\"b\":[\"x\",[[1,2],@", "/a/b/1/1"},
    {"{\"a\":[1],\"b\":\"c\",\"d\" :@", "/d"},
    {"{\"a\":\"[{,\\\"\\\\\",\"b\":@", "/b"},
    {"{\"a/b~c\":@", "/a~1b~0c"},
    {"{\"a\\\"b\":@", "/a\\\"b"},
    {"{\"a\"\n\t\r :@", "/a"},
    {"\"a\":@", ""},
    {"1,@", ""},
};

START_TEST(a_place_has_the_pointer_of_the_brackets_around_it)
{
    for (size_t i = 0; i < sizeof PLACES / sizeof *PLACES; i++) {
        char pointer[64];
        json_path_at(PLACES[i].text, strcspn(PLACES[i].text, "@"), pointer, sizeof pointer);
        ck_assert_str_eq(pointer, PLACES[i].pointer);
    }
}
END_TEST

START_TEST(what_is_too_long_is_cut_and_what_is_too_deep_has_none)
{
    char pointer[4], brackets[100];
    json_path_at("{\"abcdef\":", 10, pointer, sizeof pointer);
    ck_assert_str_eq(pointer, "/ab");
    memset(brackets, '[', sizeof brackets);
    json_path_at(brackets, sizeof brackets, pointer, sizeof pointer);
    ck_assert_str_eq(pointer, "");
}
END_TEST

START_TEST(every_prefix_is_read_within_its_bounds)
{
    static const char text[] = "{\"a\\\\\":[{\"b\":\"\\u1234\"},1]}]]}";
    for (size_t length = 0; length < sizeof text; length++) {
        char pointer[32];
        json_path_at(text, length, pointer, sizeof pointer);
        ck_assert_uint_lt(strlen(pointer), sizeof pointer);
    }
}
END_TEST

CHECK_MAIN("json_path")
{
    tcase_add_test(tests, a_place_has_the_pointer_of_the_brackets_around_it);
    tcase_add_test(tests, what_is_too_long_is_cut_and_what_is_too_deep_has_none);
    tcase_add_test(tests, every_prefix_is_read_within_its_bounds);
}
