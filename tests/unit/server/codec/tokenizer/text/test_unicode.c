/* test_unicode.c: tests of server/codec/tokenizer/text/unicode.c: which characters have a property, and what they become. */
#include "codec/tokenizer/text/unicode.h"

#include "check_main.h"

enum { CHARACTERS = 0x110000 };

/*
 * Sets that stay those of Unicode 8 or 9, whichever version utf8proc has: how many characters they have, and the sum of
 * their squares. The categories had so many: White_Space 25; P* 717, and 9 symbols of ASCII; Cc 65, Co 137468, Cf 150;
 * M* 2097, Mn 1567.
 */
static const struct {
    bool (*has)(uint32_t c);
    unsigned count;
    uint64_t squares;
} sets[] = {
    {unicode_is_space, 25, UINT64_C(1195420084)},
    {unicode_is_punctuation, 717 + 9, UINT64_C(1218302299725)},
    {unicode_is_control, 65 + 137468 + 150, UINT64_C(144403359392897848)},
    {unicode_is_mark, 2097, UINT64_C(207872739091817)},
    {unicode_is_nonspacing, 1567, UINT64_C(205841117509586)},
};

START_TEST(sets_have_the_characters_of_their_version)
{
    unsigned count = 0;
    uint64_t squares = 0;
    for (uint32_t c = 0; c < CHARACTERS; c++) {
        const bool is_in = sets[_i].has(c);
        count += is_in;
        squares += is_in ? (uint64_t)c * c : 0;
    }
    ck_assert_uint_eq(count, sets[_i].count);
    ck_assert_uint_eq(squares, sets[_i].squares);
}
END_TEST

/* Sets that grow with Unicode: characters at the ends of their ranges and categories. */
static const struct {
    bool (*has)(uint32_t c);
    bool is_in;
    uint32_t characters[32];
} ends[] = {
    {unicode_is_word, true, {'0',     '9',     'A',     'Z',     '_',     'a',    'z',    0xAA,
                             0xC0,    0x300,   0x2160,  0x203F,  0x200C,  0x200D, 0x24B6, 0x24E9,
                             0x1F130, 0x1F149, 0x1F150, 0x1F169, 0x1F170, 0x1F189}},
    {unicode_is_word, false, {'/',     ':',     '@',     '[',     '^',     '`',     '{',
                              0x80,    0xB2,    0x200B,  0x200E,  0x2010,  0x24B5,  0x24EA,
                              0x1F12F, 0x1F14A, 0x1F14F, 0x1F16A, 0x1F16F, 0x1F18A, 0x10FFFF}},
    {unicode_is_numeric, true, {'0', '9', 0xB2, 0x660, 0x2160}},
    {unicode_is_numeric, false, {'_', 'a', 0x300, 0x20DD, 0x4E00, 0x203F}},
};

START_TEST(sets_end_where_they_should)
{
    for (const uint32_t *c = ends[_i].characters; *c != 0; c++)
        ck_assert_msg(ends[_i].has(*c) == ends[_i].is_in, "U+%04X", (unsigned)*c);
}
END_TEST

START_TEST(letters_are_lowered)
{
    static const uint32_t pairs[][2] = {{'@', '@'},   {'A', 'a'},   {'Z', 'z'},     {'[', '['},
                                        {0x7F, 0x7F}, {0xC4, 0xE4}, {0x3A3, 0x3C3}, {0x131, 0x131}};
    uint32_t to[UNICODE_LOWER_MAX];
    for (size_t i = 0; i < COUNT(pairs); i++) {
        ck_assert_uint_eq(unicode_lower(pairs[i][0], to), 1);
        ck_assert_uint_eq(to[0], pairs[i][1]);
    }
    ck_assert_uint_eq(unicode_lower(0x130, to), 2);
    ck_assert(to[0] == 'i' && to[1] == 0x307);
}
END_TEST

/* Characters with a decomposition that came with Unicode 12 to 15 have none here. */
static const struct {
    uint32_t c;
    bool is_compatible;
    size_t count;
    uint32_t parts[4];
} decompositions[] = {
    {'a', true, 1, {'a'}},
    {0x7F, true, 1, {0x7F}},
    {0xC4, false, 2, {'A', 0x308}},
    {0x1E69, false, 3, {'s', 0x323, 0x307}},
    {0xAC01, false, 3, {0x1100, 0x1161, 0x11A8}},
    {0x2460, true, 1, {'1'}},
    {0x2460, false, 1, {0x2460}},
    {0x32FE, true, 1, {0x30F2}},
    {0x32FF, true, 1, {0x32FF}},
    {0xAB69, true, 1, {0xAB69}},
    {0x11938, false, 1, {0x11938}},
    {0x1FBF0, true, 1, {0x1FBF0}},
    {0x1FBF9, true, 1, {0x1FBF9}},
    {0x4E00, true, 1, {0x4E00}},
};

START_TEST(characters_have_the_parts_of_unicode_9)
{
    uint32_t parts[UNICODE_PARTS_MAX];
    ck_assert_uint_eq(unicode_decompose(decompositions[_i].c, decompositions[_i].is_compatible, parts),
                      decompositions[_i].count);
    for (size_t i = 0; i < decompositions[_i].count; i++)
        ck_assert_uint_eq(parts[i], decompositions[_i].parts[i]);
}
END_TEST

START_TEST(pairs_are_composed)
{
    static const uint32_t pairs[][3] = {{'a', 0x300, 0xE0}, {'a', 0x308, 0xE4}, {0x1100, 0x1161, 0xAC00}};
    uint32_t composed = 0;
    for (size_t i = 0; i < COUNT(pairs); i++) {
        ck_assert(unicode_compose(pairs[i][0], pairs[i][1], &composed));
        ck_assert_uint_eq(composed, pairs[i][2]);
    }
    composed = 7;
    ck_assert(!unicode_compose('a', 'b', &composed) && !unicode_compose('x', 0x327, &composed));
    ck_assert_uint_eq(composed, 7);
}
END_TEST

START_TEST(marks_have_classes)
{
    ck_assert_uint_eq(unicode_combining_class('a'), 0);
    ck_assert_uint_eq(unicode_combining_class(0x2FF), 0);
    ck_assert_uint_eq(unicode_combining_class(0x300), 230);
    ck_assert_uint_eq(unicode_combining_class(0x345), 240);
}
END_TEST

/* Bytes that can be seen stand for themselves; the others are, in order, the characters from U+0100 on. */
START_TEST(each_byte_has_its_character)
{
    uint32_t next = 0x100, bytes = 0;
    for (int byte = 0; byte < 256; byte++) {
        const bool is_visible = (byte > ' ' && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
        const uint32_t c = unicode_of_byte((unsigned char)byte);
        ck_assert_uint_eq(c, is_visible ? (uint32_t)byte : next++);
        ck_assert_int_eq(unicode_to_byte(c), byte);
    }
    for (uint32_t c = 0; c < 0x300; c++)
        bytes += unicode_to_byte(c) >= 0;
    ck_assert_uint_eq(bytes, 256);
}
END_TEST

CHECK_MAIN("unicode")
{
    tcase_add_loop_test(tests, sets_have_the_characters_of_their_version, 0, COUNT(sets));
    tcase_add_loop_test(tests, sets_end_where_they_should, 0, COUNT(ends));
    tcase_add_test(tests, letters_are_lowered);
    tcase_add_loop_test(tests, characters_have_the_parts_of_unicode_9, 0, COUNT(decompositions));
    tcase_add_test(tests, pairs_are_composed);
    tcase_add_test(tests, marks_have_classes);
    tcase_add_test(tests, each_byte_has_its_character);
}
