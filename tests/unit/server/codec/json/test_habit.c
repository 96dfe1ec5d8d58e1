/*
 * test_habit.c: each usual mistake has its sentence, wherever in it the parser stopped.
 */
#include "codec/json/habit.h"

#include <check.h>
#include <string.h>

#include "check_main.h"

static const struct {
    const char *text, *stop, *sentence; /* the parser stopped where stop begins; NULL: none of the usual mistakes */
} slips[] = {
    {"[1,.5]", ".5", "a digit before its point"},
    {"[-.5]", "-.5", "a digit before its point"},
    {"[+1]", "+1", "without +"},
    {"[-01]", "-01", "does not begin with 0"},
    {"[0x1F]", "x1F", "decimal numbers alone"},
    {"[1.]", "1.", "a digit behind its point"},
    {"[1.e5]", "1.e5", "a digit behind its point"},
    {"[1e]", "1e", "a digit in its exponent"},
    {"[2.5e+]", "2.5e+", "a digit in its exponent"},
    {"[1_000]", "_000", "without _"},
    {"[1.2.3]", ".3", "one point at most"},
    {"[1.5f]", "f]", "no letters behind it"},
    {"[1/2]", "/2", "0.5 for 1/2"},
    {"[--1]", "--1", "a digit behind its -"},
    {"[NULL]", "NULL", "null in small letters"},
    {"{\"a\":yes}", "yes", "double quotes"},
    {"{\"a\":[x]}", "x]", "double quotes"},
    {"{\"scale\":0,5}", "5}", "with a point"},
    {"{\"a\":1 \"b\":2}", "\"b\"", "a comma is missing"},
    {"[1 2]", "2]", "a comma is missing"},
    {"a=1&b=2", "a=1", "it is a form"},
    {"%7B=", "%7B", "it is a form"},
    {" hello", "hello", "begins with {"},
    {"------x", "------", "begins with {"},
    {"{\"a\":?}", "?}", NULL},
};

START_TEST(a_usual_mistake_has_its_sentence)
{
    for (size_t i = 0; i < sizeof slips / sizeof slips[0]; i++) {
        const char *text = slips[i].text, *at = strstr(text, slips[i].stop);
        const char *told = habit_find(text, at, text + strlen(text));
        if (slips[i].sentence == NULL)
            ck_assert_msg(told == NULL, "%s: %s", text, told);
        else
            ck_assert_msg(told != NULL && strstr(told, slips[i].sentence) != NULL, "%s: %s", text, told);
    }
}
END_TEST

START_TEST(no_byte_behind_the_end_is_read)
{
    for (size_t i = 0; i < sizeof slips / sizeof slips[0]; i++)
        for (size_t length = 1; length <= strlen(slips[i].text); length++) {
            char copy[64];
            char *begin = copy + sizeof copy - length; /* the sanitizer watches the end of the copy */
            memcpy(begin, slips[i].text, length);
            for (size_t at = 0; at <= length; at++)
                (void)habit_find(begin, begin + at, begin + length);
        }
}
END_TEST

CHECK_MAIN("habit")
{
    tcase_add_test(tests, a_usual_mistake_has_its_sentence);
    tcase_add_test(tests, no_byte_behind_the_end_is_read);
}
