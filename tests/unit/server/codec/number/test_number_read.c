/*
 * test_number_read.c: tests server/codec/number/read.c.
 *
 * The corpus of hard decimals is not part of this project. It is looked for in ATTN_SHARED, else in ../shared beside
 * the repository; without it that one test says so, and the hardest lines, which stand here, are checked all the same.
 */
#include "codec/number/number.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "shared.h"

static uint32_t bits_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint64_t bits_f64(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* xorshift64: which numbers come does not matter, only that they are many and the same each time. */
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/*
 * A copy of text with more behind it, as numbers stand in an array: the reader takes another way when there is room to
 * load whole words. Valid until the next call.
 */
static const char *in_an_array(const char *text)
{
    static char copy[1 << 15];
    const int length = snprintf(copy, sizeof copy, "%s,9.87654321,-1.5e3,0.25,11111111", text);
    ck_assert_int_lt(length, (int)sizeof copy);
    return copy;
}

static float read_f32(const char *text)
{
    float value = -77.0f, inside = -78.0f;
    const size_t length = strlen(text);
    ck_assert_msg(number_read_f32(text, text + length, &value) == text + length, "not read whole: %s", text);
    const char *array = in_an_array(text);
    ck_assert_msg(number_read_f32(array, array + strlen(array), &inside) == array + length, "not read to: %s", array);
    ck_assert_msg(bits_f32(value) == bits_f32(inside), "float32 of %s", array);
    return value;
}

static double read_f64(const char *text)
{
    double value = -77.0, inside = -78.0;
    const size_t length = strlen(text);
    ck_assert_msg(number_read_f64(text, text + length, &value) == text + length, "not read whole: %s", text);
    const char *array = in_an_array(text);
    ck_assert_msg(number_read_f64(array, array + strlen(array), &inside) == array + length, "not read to: %s", array);
    ck_assert_msg(bits_f64(value) == bits_f64(inside), "float64 of %s", array);
    return value;
}

/* strtof and strtod of glibc round correctly in all cases. */
static void check_like_the_c_library(const char *text)
{
    ck_assert_msg(bits_f32(read_f32(text)) == bits_f32(strtof(text, NULL)), "float32 of %s", text);
    ck_assert_msg(bits_f64(read_f64(text)) == bits_f64(strtod(text, NULL)), "float64 of %s", text);
}

static const char *const NUMBERS[] = {
    "0",      "-0",      "1",    "-1",     "10",      "0.0",    "0.25",
    "-0.5",   "1e5",     "1E5",  "1e+5",   "1e-5",    "0e0",    "0e999",
    "1.5e3",  "123.456", "1e00", "1e-007", "1000000", "0.1e-1", "12345678901234567890",
    "-1.0E-2"};

START_TEST(what_json_calls_a_number_is_read_whole)
{
    check_like_the_c_library(NUMBERS[_i]);
}
END_TEST

static const char *const STRANGERS[] = {
    "",    "-",        "+1", ".5",  "-.5", "1.",  "1.e5", "1e",   "1e+", "1e-",  "01",       "-01", "00", "inf",
    "nan", "Infinity", "e5", "--1", " 1",  "-e1", "x",    "1.-5", "1.e", "1e.5", "\xC3\xA9", "-x",  "/",  ":"};

START_TEST(what_json_does_not_call_a_number_is_refused)
{
    float f32 = 5.0f;
    double f64 = 5.0;
    int64_t i64 = 5;
    const char *text = STRANGERS[_i], *end = text + strlen(text);
    ck_assert_ptr_null(number_read_f32(text, end, &f32));
    ck_assert_ptr_null(number_read_f64(text, end, &f64));
    ck_assert_ptr_null(number_read_i64(text, end, &i64));
    const char *array = in_an_array(text);
    ck_assert_ptr_null(number_read_f32(array, array + strlen(array), &f32));
    ck_assert_ptr_null(number_read_f64(array, array + strlen(array), &f64));
    ck_assert_int_eq((int)i64, 5);
    ck_assert(f32 == 5.0f && f64 == 5.0);
}
END_TEST

START_TEST(reading_stops_where_the_number_does)
{
    static const struct {
        const char *text;
        size_t length;
    } CASES[] = {{"1,2", 1}, {"0x10", 1}, {"1.5]", 3}, {"1e5e", 3}, {"-0-", 2}, {"1.2.3", 3}, {"0.123456789,0", 11}};
    for (size_t i = 0; i < COUNT(CASES); i++) {
        float value;
        const char *text = CASES[i].text;
        ck_assert_ptr_eq(number_read_f32(text, text + strlen(text), &value), text + CASES[i].length);
        text = in_an_array(text);
        ck_assert_ptr_eq(number_read_f32(text, text + strlen(text), &value), text + CASES[i].length);
    }
}
END_TEST

START_TEST(nothing_beyond_the_end_is_looked_at)
{
    static const char TEXT[] = "-123.45678901234567890123e-12";
    for (size_t length = 0; length < sizeof TEXT; length++) {
        char *exact = malloc(length == 0 ? 1 : length); /* so that a sanitizer sees one byte too many */
        memcpy(exact, TEXT, length);
        float f32;
        double f64;
        int64_t i64;
        const char *end = number_read_f32(exact, exact + length, &f32);
        ck_assert(end == NULL || end == exact + length);
        ck_assert_ptr_eq(number_read_f64(exact, exact + length, &f64), end);
        end = number_read_i64(exact, exact + length, &i64);
        ck_assert(end == NULL || end == exact + length);
        free(exact);
    }
}
END_TEST

static const struct {
    uint32_t bits;
    const char *text;
} HARD[] = {
    {0x400A8293, "2.1642194986343383789062500000000000000216"},
    {0x373B583F, "0.0000111666154225531499832868576049804687"},
    {0x3D2F4115, "0.0427866745740175247192382812500000000004"},
    {0x400D881F, "2.2114330530166625976562500000000000000221"},
    {0x3E228A2F, "0.1587302461266517639160156250000000000015"},
    {0x3EF90393, "0.4863553792238235473632812500000000000048"},
    {0x3DFD9635, "0.1238216497004032135009765625000000000012"},
    {0x3CF25CC7, "0.0295852543786168098449707031250000000002"},
    {0x497DC079, "1039367.5312500000000000000000000000000103936753"},
    {0x4AC7F783, "6552513.2500000000000000000000000000000655251325"},
    {0x49FF6957, "2092330.8125000000000000000000000000000209233081"},
    {0x49E24201, "1853504.0625000000000000000000000000000185350406"},
    {0x49DCEC53, "1809802.3125000000000000000000000000000180980231"},
    {0x4A532C95, "3459877.1250000000000000000000000000000345987712"},
    {0x3EC332DF, "0.3812474757432937622070312500000000000038"},
    {0x4A5A2169, "3573850.1250000000000000000000000000000357385012"},
    {0x404592FF, "3.0870968103408813476562500000000000000308"},
    {0x41351E83, "11.3199486732482910156250000000000000001131"},
    {0x3FCBF1B1, "1.5933132767677307128906250000000000000159"},
    {0x49023B75, "533431.2812500000000000000000000000000053343128"},
    {0x476B80C3, "60288.7597656250000000000000000000000006028875"},
    {0x469F35EB, "20378.9580078125000000000000000000000002037895"},
    {0x44F6B39D, "1973.6128540039062500000000000000000000197361"},
    {0x42C1FC5D, "96.9928932189941406250000000000000000009699"},
    {0x37312863, "0.0000105594258457131218165159225463867187"},
    {0x48A5CB69, "339547.2656250000000000000000000000000033954726"},
};

START_TEST(decimals_that_go_wrong_by_way_of_double_are_right)
{
    for (size_t i = 0; i < COUNT(HARD); i++)
        ck_assert_msg(bits_f32(read_f32(HARD[i].text)) == HARD[i].bits, "float32 of %s", HARD[i].text);
}
END_TEST

START_TEST(every_decimal_of_the_corpus_is_rounded_as_it_says)
{
    char path[SHARED_PATH_MAX];
    if (!shared_has(path, "corpora/float32_halfway.txt"))
        return;
    FILE *corpus = fopen(path, "r");
    ck_assert_ptr_nonnull(corpus);
    char line[2048], text[1024];
    unsigned f16, f32;
    unsigned long long f64;
    int lines = 0;
    while (fgets(line, sizeof line, corpus) != NULL) {
        ck_assert_int_eq(sscanf(line, "%x %x %llx %1023s", &f16, &f32, &f64, text), 4);
        ck_assert_msg(bits_f32(read_f32(text)) == f32, "float32 of %s", text);
        /* The corpus is one of float32; where it does not give the double it has 0. */
        uint64_t expected = f64 != 0 ? f64 : bits_f64(strtod(text, NULL));
        ck_assert_msg(bits_f64(read_f64(text)) == expected, "float64 of %s", text);
        lines++;
    }
    fclose(corpus);
    ck_assert_int_gt(lines, 2000);
}
END_TEST

START_TEST(powers_of_ten_and_their_neighbours_are_right)
{
    static const char *const MANTISSAS[] = {"1",
                                            "9",
                                            "99",
                                            "101",
                                            "999999999",
                                            "1000000001",
                                            "9007199254740993",
                                            "9999999999999999999",
                                            "18446744073709551615",
                                            "18446744073709551616"};
    char text[64];
    for (int exponent = -400; exponent <= 400; exponent++) {
        for (size_t i = 0; i < COUNT(MANTISSAS); i++) {
            snprintf(text, sizeof text, "%se%d", MANTISSAS[i], exponent);
            check_like_the_c_library(text);
        }
    }
}
END_TEST

START_TEST(random_numbers_are_read_as_the_c_library_reads_them)
{
    uint64_t random = 88172645463325252u;
    char text[64];
    for (int i = 0; i < 30000; i++) {
        snprintf(text, sizeof text, "%llue%d", (unsigned long long)(next_random(&random) >> (i % 64)),
                 (int)(next_random(&random) % 120) - 70);
        check_like_the_c_library(text);
        double value;
        uint64_t bits = next_random(&random);
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value))
            continue;
        snprintf(text, sizeof text, "%.*e", (int)(next_random(&random) % 24), value);
        check_like_the_c_library(text);
    }
}
END_TEST

/* Up to where the mantissa fits one word, and past it; each with both signs, a power, and zeros before its digits. */
START_TEST(every_number_of_places_is_read_as_the_c_library_reads_it)
{
    static const char *const POWERS[] = {"", "e5", "E-7", "e+30", "e-40"};
    uint64_t random = 7;
    char text[96];
    for (int i = 0; i < 2000; i++) {
        const int places = 1 + i % 40, zeros = (int)(next_random(&random) % 12);
        int length = sprintf(text, "%s%d.", i & 1 ? "-" : "", (int)(next_random(&random) % 3));
        for (int place = 0; place < places; place++)
            text[length++] = (char)(place < zeros ? '0' : '0' + next_random(&random) % 10);
        strcpy(text + length, POWERS[next_random(&random) % (COUNT(POWERS))]);
        check_like_the_c_library(text);
    }
}
END_TEST

START_TEST(every_float32_survives_nine_digits)
{
    uint64_t random = 1;
    char text[64];
    for (int i = 0; i < 50000; i++) {
        uint32_t bits = (uint32_t)next_random(&random);
        float value;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value))
            continue;
        snprintf(text, sizeof text, "%.9g", (double)value);
        ck_assert_msg(bits_f32(read_f32(text)) == bits, "float32 of %s", text);
    }
}
END_TEST

START_TEST(the_middle_of_two_floats_goes_to_even_and_one_digit_more_decides)
{
    uint64_t random = 3;
    char text[400];
    for (int i = 0; i < 20000; i++) {
        uint32_t bits = (uint32_t)next_random(&random) & 0x7FFFFFFF;
        float value;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value) || value == FLT_MAX)
            continue;
        double middle = ((double)value + (double)nextafterf(value, INFINITY)) / 2;
        snprintf(text, sizeof text, "%.160f", middle); /* exact: the last bit of a middle is worth 2^-150 */
        ck_assert_msg(bits_f32(read_f32(text)) == bits + (bits & 1), "float32 of %s", text);
        strcat(text, "00000000001");
        ck_assert_msg(bits_f32(read_f32(text)) == bits + 1, "float32 of %s", text);
    }
}
END_TEST

START_TEST(too_large_is_infinite_and_too_small_is_zero_of_the_same_sign)
{
    ck_assert(read_f32("3.4028235677973367e38") == INFINITY);
    ck_assert(read_f32("3.4028235677973366e38") == FLT_MAX);
    ck_assert(read_f32("-1e39") == -INFINITY);
    ck_assert(read_f64("1.7976931348623159e308") == (double)INFINITY);
    ck_assert(read_f64("-1e99999999999999999999") == (double)-INFINITY);
    ck_assert_uint_eq(bits_f32(read_f32("-1e-99999999999999999999")), 0x80000000u);
    ck_assert_uint_eq(bits_f32(read_f32("7.0064923216240853e-46")), 0);
    ck_assert_uint_eq(bits_f32(read_f32("7.0064923216240854e-46")), 1);
    ck_assert_uint_eq(bits_f64(read_f64("-2.4703282292062327e-324")), UINT64_C(1) << 63);
    ck_assert_uint_eq(bits_f64(read_f64("2.4703282292062328e-324")), 1);
    ck_assert_uint_eq(bits_f64(read_f64("0e99999999999999999999")), 0);
    ck_assert_uint_eq(bits_f32(read_f32("1.17549428e-38")), 0x007FFFFF); /* the largest subnormal */
    ck_assert_uint_eq(bits_f32(read_f32("1.17549429e-38")), 0x00800000);
}
END_TEST

START_TEST(very_long_numbers_are_right)
{
    enum { ZEROS = 5000 };
    char *text = malloc(2 * ZEROS + 64);
    char *at = text + sprintf(text, "0.");
    memset(at, '0', ZEROS);
    sprintf(at + ZEROS, "15e%d", ZEROS);
    ck_assert(read_f32(text) == 0.15f);
    memset(text, '1', ZEROS);
    sprintf(text + ZEROS, "e-%d", ZEROS - 1);
    ck_assert(read_f64(text) == 1.1111111111111112);
    /* 2^53 + 1 is the middle of two doubles; a digit far behind it is what makes the number larger. */
    at = text + sprintf(text, "9007199254740993.");
    memset(at, '0', ZEROS);
    at[ZEROS] = '\0';
    ck_assert(read_f64(text) == 9007199254740992.0);
    strcpy(at + ZEROS, "1");
    ck_assert(read_f64(text) == 9007199254740994.0);
    memset(at, '0', ZEROS);
    strcpy(at + ZEROS, "e-16");
    check_like_the_c_library(text);
    free(text);
}
END_TEST

struct integer_case {
    const char *text;
    int64_t value;
    bool is_read;
};

static const struct integer_case INTEGER_CASES[] = {
    {"0", 0, true},
    {"-0", 0, true},
    {"42", 42, true},
    {"-7", -7, true},
    {"9223372036854775807", INT64_MAX, true},
    {"-9223372036854775808", INT64_MIN, true},
    {"9223372036854775808", 0, false},
    {"-9223372036854775809", 0, false},
    {"18446744073709551617", 0, false},
    {"99999999999999999999999", 0, false},
    {"1.0", 1, true},
    {"-20e-1", -2, true},
    {"1E2", 100, true},
    {"9007199254740991.0", 9007199254740991, true},
    {"9007199254740992.0", 0, false},
    {"1e400", 0, false},
    {"1.5", 0, false},
    {"1.", 0, false},
};

START_TEST(integers_are_exact_or_refused)
{
    const struct integer_case *c = &INTEGER_CASES[_i];
    int64_t value = 0;
    const char *end = c->text + strlen(c->text);
    const char *stop = number_read_i64(c->text, end, &value);
    ck_assert_ptr_eq(stop, c->is_read ? end : NULL);
    ck_assert(value == c->value);
}
END_TEST

CHECK_MAIN("number_read")
{
    tcase_add_loop_test(tests, what_json_calls_a_number_is_read_whole, 0, COUNT(NUMBERS));
    tcase_add_loop_test(tests, what_json_does_not_call_a_number_is_refused, 0, COUNT(STRANGERS));
    tcase_add_test(tests, reading_stops_where_the_number_does);
    tcase_add_test(tests, nothing_beyond_the_end_is_looked_at);
    tcase_add_test(tests, decimals_that_go_wrong_by_way_of_double_are_right);
    tcase_add_test(tests, every_decimal_of_the_corpus_is_rounded_as_it_says);
    tcase_add_test(tests, powers_of_ten_and_their_neighbours_are_right);
    tcase_add_test(tests, random_numbers_are_read_as_the_c_library_reads_them);
    tcase_add_test(tests, every_number_of_places_is_read_as_the_c_library_reads_it);
    tcase_add_test(tests, every_float32_survives_nine_digits);
    tcase_add_test(tests, the_middle_of_two_floats_goes_to_even_and_one_digit_more_decides);
    tcase_add_test(tests, too_large_is_infinite_and_too_small_is_zero_of_the_same_sign);
    tcase_add_test(tests, very_long_numbers_are_right);
    tcase_add_loop_test(tests, integers_are_exact_or_refused, 0, COUNT(INTEGER_CASES));
}
