/*
 * test_base64.c: tests server/codec/bytes/base64.c.
 */
#include "codec/bytes/base64.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "check_main.h"

/* RFC 4648, section 10. */
static const char *const PAIRS[][2] = {{"", ""},
                                       {"f", "Zg=="},
                                       {"fo", "Zm8="},
                                       {"foo", "Zm9v"},
                                       {"foob", "Zm9vYg=="},
                                       {"fooba", "Zm9vYmE="},
                                       {"foobar", "Zm9vYmFy"}};

START_TEST(the_vectors_of_the_rfc_hold_both_ways)
{
    const char *plain = PAIRS[_i][0], *coded = PAIRS[_i][1];
    char text[16];
    uint8_t bytes[16];
    size_t length, bad;
    ck_assert_uint_eq(base64_encoded_length(strlen(plain)), strlen(coded));
    base64_encode(text, plain, strlen(plain));
    ck_assert_mem_eq(text, coded, strlen(coded));
    ck_assert(base64_decoded_length(coded, strlen(coded), &length));
    ck_assert_uint_eq(length, strlen(plain));
    ck_assert(base64_decode(bytes, coded, strlen(coded), &(struct pace){.bytes = 0}, &bad));
    ck_assert_mem_eq(bytes, plain, length);
}
END_TEST

START_TEST(every_byte_at_every_place_survives)
{
    uint8_t from[256 + 7], back[256 + 7];
    char text[400];
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (uint8_t)(i * 167 + 13);
    for (size_t count = 0; count <= sizeof from; count++) {
        size_t length = base64_encoded_length(count), bytes, bad;
        base64_encode(text, from, count);
        ck_assert(base64_decoded_length(text, length, &bytes));
        ck_assert_uint_eq(bytes, count);
        ck_assert(base64_decode(back, text, length, &(struct pace){.bytes = 0}, &bad));
        ck_assert_mem_eq(back, from, count);
    }
}
END_TEST

START_TEST(nothing_is_written_beyond_the_announced_length)
{
    for (size_t count = 0; count < 10; count++) {
        size_t length = base64_encoded_length(count), bytes, bad;
        char *text = malloc(length == 0 ? 1 : length); /* exact, so that a sanitizer sees one byte too many */
        base64_encode(text, "abcdefghijk", count);
        ck_assert(base64_decoded_length(text, length, &bytes));
        uint8_t *back = malloc(bytes == 0 ? 1 : bytes);
        ck_assert(base64_decode(back, text, length, &(struct pace){.bytes = 0}, &bad));
        free(back);
        free(text);
    }
}
END_TEST

struct bad_case {
    const char *text;
    size_t bad;
};

static const struct bad_case BAD_CASES[] = {
    {"Zg=", 2},         {"Z", 1},        {"=", 0},        {"====", 0},     {"Z===", 1},
    {"Zm9v\nZm9v", 4},  {"Zm 9", 2},     {"Zm9-", 3},     {"_m9v", 0},     {"Zg==Zg==", 2},
    {"Zm8=Zm9v", 3},    {"Zm9vZh==", 5}, {"Zm9vZm9=", 6}, {"Zm9vZ===", 5}, {"Zm9vZ%9vZm9v", 5},
    {"Zm9vZ\x80==", 5}, {"=m9v", 0},     {"Z=9v", 1},     {"Zm=v", 2},     {"Zm9vYmF", 7},
};

START_TEST(what_is_not_strict_base64_is_refused_with_the_place)
{
    const struct bad_case *c = &BAD_CASES[_i];
    uint8_t bytes[32];
    size_t bad = 99;
    ck_assert(!base64_decode(bytes, c->text, strlen(c->text), &(struct pace){.bytes = 0}, &bad));
    ck_assert_uint_eq(bad, c->bad);
}
END_TEST

START_TEST(a_wrong_length_or_padding_has_no_decoded_length)
{
    static const char *const TEXTS[] = {"Z", "Zg", "Zg=", "Z===", "====", "Zm9vZ"};
    size_t bytes;
    for (size_t i = 0; i < COUNT(TEXTS); i++)
        ck_assert(!base64_decoded_length(TEXTS[i], strlen(TEXTS[i]), &bytes));
}
END_TEST

CHECK_MAIN("base64")
{
    tcase_add_loop_test(tests, the_vectors_of_the_rfc_hold_both_ways, 0, COUNT(PAIRS));
    tcase_add_test(tests, every_byte_at_every_place_survives);
    tcase_add_test(tests, nothing_is_written_beyond_the_announced_length);
    tcase_add_loop_test(tests, what_is_not_strict_base64_is_refused_with_the_place, 0, COUNT(BAD_CASES));
    tcase_add_test(tests, a_wrong_length_or_padding_has_no_decoded_length);
}
