/* test_philox.c: the generator behind dropout against the known answers of its authors (Random123, kat_vectors). */
#include <check.h>

#include "check_main.h"
#include "formulas/philox.h"

START_TEST(philox_gives_the_known_answers)
{
    static const struct {
        uint64_t seed, stream, counter;
        uint32_t expected[4];
    } known[] = {
        {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {UINT64_MAX, UINT64_MAX, UINT64_MAX, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88, {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        uint32_t block[4];
        attn_philox(known[k].seed, known[k].stream, known[k].counter, block);
        for (int word = 0; word < 4; word++)
            ck_assert_uint_eq(block[word], known[k].expected[word]);
    }
}
END_TEST

START_TEST(any_part_of_a_stream_is_the_same_as_in_the_whole)
{
    uint8_t whole[100], part[100];
    attn_dropout_keep(7, DROPOUT_ATTENTION, 0.5, 1000, 100, whole);
    for (size_t from = 0; from < 100; from++) {
        attn_dropout_keep(7, DROPOUT_ATTENTION, 0.5, 1000 + from, 100 - from, part);
        for (size_t n = 0; n < 100 - from; n++)
            ck_assert_uint_eq(part[n], whole[from + n]);
    }
}
END_TEST

START_TEST(p_of_zero_keeps_all_and_of_one_keeps_none)
{
    uint8_t keep[1000];
    attn_dropout_keep(1, DROPOUT_RESIDUAL, 0, 0, 1000, keep);
    for (int n = 0; n < 1000; n++)
        ck_assert(keep[n]);
    attn_dropout_keep(1, DROPOUT_RESIDUAL, 1, 0, 1000, keep);
    for (int n = 0; n < 1000; n++)
        ck_assert(!keep[n]);
}
END_TEST

CHECK_MAIN("philox")
{
    tcase_add_test(tests, philox_gives_the_known_answers);
    tcase_add_test(tests, any_part_of_a_stream_is_the_same_as_in_the_whole);
    tcase_add_test(tests, p_of_zero_keeps_all_and_of_one_keeps_none);
}
