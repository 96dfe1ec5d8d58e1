/*
 * test_number_write.c: tests server/codec/number/write.c against strtof, strtod and printf, which glibc rounds
 * correctly.
 */
#include "codec/number/number.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_main.h"

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static const char *text_f32(char text[NUMBER_TEXT_MAX + 1], float value)
{
    *number_write_f32(text, value) = '\0';
    return text;
}

static const char *text_f64(char text[NUMBER_TEXT_MAX + 1], double value)
{
    *number_write_f64(text, value) = '\0';
    return text;
}

static const char *text_digits(char text[NUMBER_TEXT_MAX + 1], double value, int digits)
{
    *number_write_digits(text, value, digits) = '\0';
    return text;
}

/* The significant digits of a decimal, without zeros at either end; returns their count. */
static size_t significant(char digits[64], const char *text)
{
    size_t count = 0;
    for (; *text != '\0' && *text != 'e'; text++) {
        if (*text >= '0' && *text <= '9' && (count > 0 || *text != '0'))
            digits[count++] = *text;
    }
    while (count > 0 && digits[count - 1] == '0')
        count--;
    digits[count] = '\0';
    return count;
}

/* '-'? ('0' | [1-9][0-9]*) ('.' [0-9]+)? ('e' '-'? [1-9][0-9]*)? */
static bool is_json(const char *text)
{
    text += *text == '-';
    size_t integer = strspn(text, "0123456789");
    if (integer == 0 || (*text == '0' && integer > 1))
        return false;
    text += integer;
    if (*text == '.') {
        size_t fraction = strspn(text + 1, "0123456789");
        if (fraction == 0 || text[fraction] == '0')
            return false;
        text += 1 + fraction;
    }
    if (*text == 'e') {
        text += 1 + (text[1] == '-');
        if (*text == '0' || *text == '\0')
            return false;
        text += strspn(text, "0123456789");
    }
    return *text == '\0';
}

static void check_f32(float value)
{
    char text[NUMBER_TEXT_MAX + 1], printed[64], digits[64], printed_digits[64];
    text_f32(text, value);
    float back = strtof(text, NULL);
    ck_assert_msg(memcmp(&back, &value, sizeof back) == 0, "%s reads back as another number", text);
    ck_assert_msg(is_json(text), "%s", text);
    int count = 1;
    do
        snprintf(printed, sizeof printed, "%.*e", count++ - 1, (double)value);
    while (strtof(printed, NULL) != value);
    /* The best rounding to n digits is not always in the interval when another decimal of n digits is, hence <=. */
    size_t length = significant(digits, text);
    size_t printed_length = significant(printed_digits, printed);
    ck_assert_msg(length <= printed_length, "%s is longer than %s", text, printed);
    ck_assert_msg(length < printed_length || strcmp(digits, printed_digits) == 0, "%s is not as close as %s", text,
                  printed);
}

static void check_f64(double value)
{
    char text[NUMBER_TEXT_MAX + 1], printed[64], digits[64], printed_digits[64];
    text_f64(text, value);
    double back = strtod(text, NULL);
    ck_assert_msg(memcmp(&back, &value, sizeof back) == 0, "%s reads back as another number", text);
    ck_assert_msg(is_json(text), "%s", text);
    int count = value != 0 && significant(digits, text) > 2 ? (int)significant(digits, text) - 1 : 1;
    do
        snprintf(printed, sizeof printed, "%.*e", count++ - 1, value);
    while (strtod(printed, NULL) != value);
    size_t length = significant(digits, text);
    size_t printed_length = significant(printed_digits, printed);
    ck_assert_msg(length <= printed_length, "%s is longer than %s", text, printed);
    ck_assert_msg(length < printed_length || strcmp(digits, printed_digits) == 0, "%s is not as close as %s", text,
                  printed);
}

static void check_digits(double value, int digits)
{
    char text[NUMBER_TEXT_MAX + 1], printed[64], ours[64], theirs[64];
    text_digits(text, value, digits);
    snprintf(printed, sizeof printed, "%.*e", digits - 1, value);
    ck_assert_msg(is_json(text), "%s", text);
    ck_assert_msg(strtod(text, NULL) == strtod(printed, NULL), "%s is not %s", text, printed);
    significant(ours, text);
    significant(theirs, printed);
    ck_assert_msg(strcmp(ours, theirs) == 0, "%s has other digits than %s", text, printed);
}

struct format_case {
    double value;
    const char *expected;
};

static const struct format_case FORMAT_CASES[] = {
    {0, "0"},
    {-0.0, "-0"},
    {1, "1"},
    {-1, "-1"},
    {0.25, "0.25"},
    {-12.5, "-12.5"},
    {100, "100"},
    {123456, "123456"},
    {0.1, "0.1"},
    {0.00001, "0.00001"},
    {0.000012345, "0.000012345"},
    {0.000001, "1e-6"},
    {1e-7, "1e-7"},
    {1.5e-7, "1.5e-7"},
    {1e15, "1000000000000000"},
    {9007199254740992, "9007199254740992"},
    {1e16, "1e16"},
    {1.5e21, "1.5e21"},
    {-1.25e100, "-1.25e100"},
    {1.7976931348623157e308, "1.7976931348623157e308"},
    {4.9406564584124654e-324, "5e-324"},
    {2.2250738585072014e-308, "2.2250738585072014e-308"},
    {0.00001234567890123457, "0.00001234567890123457"},
    {1234567890123456.7, "1234567890123456.8"},
};

START_TEST(text_has_the_form_that_people_expect)
{
    char text[NUMBER_TEXT_MAX + 1];
    ck_assert_str_eq(text_f64(text, FORMAT_CASES[_i].value), FORMAT_CASES[_i].expected);
}
END_TEST

START_TEST(float32_is_shortest_for_float32_and_not_for_the_double)
{
    char text[NUMBER_TEXT_MAX + 1];
    ck_assert_str_eq(text_f32(text, 0.1f), "0.1");
    ck_assert_str_eq(text_f32(text, 0.3f), "0.3");
    ck_assert_str_eq(text_f32(text, FLT_MAX), "3.4028235e38");
    ck_assert_str_eq(text_f32(text, FLT_MIN), "1.1754944e-38");
    ck_assert_str_eq(text_f32(text, 0x1p-149f), "1e-45");
    ck_assert_str_eq(text_f32(text, 16777216.0f), "16777216");
    ck_assert_str_eq(text_f32(text, 33554432.0f), "33554432");
    ck_assert_str_eq(text_f32(text, 8.5899346e9f), "8589935000");
    ck_assert_str_eq(text_f32(text, -0.0f), "-0");
    ck_assert_str_eq(text_f32(text, 0.0f), "0");
}
END_TEST

START_TEST(powers_of_two_and_their_neighbours_are_shortest_and_read_back)
{
    for (int exponent = -149; exponent < 128; exponent++) {
        float value = ldexpf(1, exponent);
        check_f32(value);
        check_f32(nextafterf(value, 0));
        check_f32(-nextafterf(value, value * 2));
    }
    for (int exponent = -1074; exponent < 1024; exponent++) {
        double value = ldexp(1, exponent);
        check_f64(value);
        check_f64(nextafter(value, 0));
        check_f64(-nextafter(value, value * 2));
    }
}
END_TEST

START_TEST(random_numbers_are_shortest_and_read_back)
{
    uint64_t random = 88172645463325252u;
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = next_random(&random);
        uint32_t half = (uint32_t)bits;
        float f32;
        double f64;
        memcpy(&f32, &half, sizeof f32);
        memcpy(&f64, &bits, sizeof f64);
        if (isfinite(f32))
            check_f32(f32);
        if (isfinite(f64))
            check_f64(f64);
        check_f32((float)(bits >> 11) * 0x1p-53f);
        check_f32((float)(bits % 2000000) / 1000);
        check_f64((double)(bits >> 11) * 0x1p-53);
    }
}
END_TEST

START_TEST(a_hundred_thousand_neighbours_of_one_half_read_back)
{
    char text[NUMBER_TEXT_MAX + 1];
    float value = 0.5f;
    for (int i = 0; i < 100000; i++) {
        ck_assert(strtof(text_f32(text, value), NULL) == value);
        value = nextafterf(value, 1);
    }
}
END_TEST

START_TEST(digits_are_rounded_correctly_and_trailing_zeros_dropped)
{
    char text[NUMBER_TEXT_MAX + 1];
    ck_assert_str_eq(text_digits(text, 0, 6), "0");
    ck_assert_str_eq(text_digits(text, -0.0, 6), "-0");
    ck_assert_str_eq(text_digits(text, 0.5, 6), "0.5");
    ck_assert_str_eq(text_digits(text, 2.0 / 3, 3), "0.667");
    ck_assert_str_eq(text_digits(text, 123456, 3), "123000");
    ck_assert_str_eq(text_digits(text, 999.96, 4), "1000");
    ck_assert_str_eq(text_digits(text, 9.75, 1), "10");
    ck_assert_str_eq(text_digits(text, 0.1, 17), "0.10000000000000001");
    ck_assert_str_eq(text_digits(text, -1e-9, 2), "-1e-9");
    ck_assert_str_eq(text_digits(text, 4.9406564584124654e-324, 3), "4.94e-324");
}
END_TEST

START_TEST(a_tie_of_digits_goes_to_even)
{
    char text[NUMBER_TEXT_MAX + 1];
    ck_assert_str_eq(text_digits(text, 0.125, 2), "0.12");
    ck_assert_str_eq(text_digits(text, 0.375, 2), "0.38");
    ck_assert_str_eq(text_digits(text, 2.5, 1), "2");
    ck_assert_str_eq(text_digits(text, 3.5, 1), "4");
    ck_assert_str_eq(text_digits(text, nextafter(2.5, 3), 1), "3");
    ck_assert_str_eq(text_digits(text, nextafter(3.5, 3), 1), "3");
}
END_TEST

START_TEST(random_numbers_have_the_digits_that_printf_gives)
{
    uint64_t random = 5;
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = next_random(&random);
        double value;
        memcpy(&value, &bits, sizeof value);
        int digits = 1 + (int)(next_random(&random) % 17);
        if (isfinite(value))
            check_digits(value, digits);
        check_digits((double)(bits >> 11) * 0x1p-53, digits);
        check_digits((double)(bits % 100000) / 64, digits); /* ties among them */
    }
    for (int exponent = -1074; exponent < 1024; exponent += 3) {
        for (int digits = 1; digits <= 17; digits++)
            check_digits(ldexp(1, exponent), digits);
    }
}
END_TEST

START_TEST(nothing_is_written_beyond_the_announced_length)
{
    uint64_t random = 9;
    char room[NUMBER_TEXT_MAX + 16];
    memset(room, '#', sizeof room);
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = next_random(&random);
        double value = -(double)bits * pow(10, (double)(bits % 45) - 40);
        number_write_f64(room, value);
        number_write_f32(room, (float)value);
        number_write_digits(room, value, 17);
    }
    for (size_t i = NUMBER_TEXT_MAX; i < sizeof room; i++)
        ck_assert_int_eq(room[i], '#');
}
END_TEST

CHECK_MAIN("number_write")
{
    tcase_add_loop_test(tests, text_has_the_form_that_people_expect, 0, COUNT(FORMAT_CASES));
    tcase_add_test(tests, float32_is_shortest_for_float32_and_not_for_the_double);
    tcase_add_test(tests, powers_of_two_and_their_neighbours_are_shortest_and_read_back);
    tcase_add_test(tests, random_numbers_are_shortest_and_read_back);
    tcase_add_test(tests, a_hundred_thousand_neighbours_of_one_half_read_back);
    tcase_add_test(tests, digits_are_rounded_correctly_and_trailing_zeros_dropped);
    tcase_add_test(tests, a_tie_of_digits_goes_to_even);
    tcase_add_test(tests, random_numbers_have_the_digits_that_printf_gives);
    tcase_add_test(tests, nothing_is_written_beyond_the_announced_length);
}
