/*
 * test_philox.c: the generator behind dropout against the known answers of its authors (Random123, kat_vectors), and the
 * decisions of every kernel against the generator.
 */
#include <check.h>

#include "check_main.h"
#include "formulas/formulas.h"
#include "kernel/entries.h"

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

/* ---- the decisions of the kernels ---- */

enum { DRAWS = 400 };

/* Positions around a multiple of 2^32 blocks, where the upper half of the counter changes. */
static const uint64_t far = ((uint64_t)1 << 34) - 200;

START_TEST(a_decision_compares_a_word_with_p)
{
    const attn_kernel *kernel;
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++)
        for (int type = ATTN_F32; type <= ATTN_F64; type++) {
            uint8_t keep[DRAWS];
            attn_kernel_of(kernel, (attn_dtype)type)->dropout_keep(far, UINT64_MAX - 3, 0.3, far, DRAWS, keep);
            for (uint64_t n = 0; n < DRAWS; n++) {
                uint32_t block[4];
                attn_philox(far, UINT64_MAX - 3, (far + n) / 4, block);
                ck_assert_uint_eq(keep[n], block[(far + n) % 4] >= (uint32_t)(0.3 * 4294967296.0));
            }
        }
}
END_TEST

START_TEST(any_part_of_a_stream_is_the_same_as_in_the_whole)
{
    const attn_kernel *kernel;
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
        uint8_t whole[DRAWS], part[DRAWS + 1];
        kernel->f32->dropout_keep(7, DROPOUT_ATTENTION, 0.5, 1000, DRAWS, whole);
        for (size_t from = 0; from < DRAWS; from++) {
            const size_t count = (DRAWS - from) % 90;
            part[count] = 77;
            kernel->f32->dropout_keep(7, DROPOUT_ATTENTION, 0.5, 1000 + from, count, part);
            ck_assert_mem_eq(part, whole + from, count);
            ck_assert_uint_eq(part[count], 77);
        }
    }
}
END_TEST

START_TEST(p_of_zero_keeps_all_and_of_one_keeps_none)
{
    const attn_kernel *kernel;
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
        uint8_t keep[DRAWS];
        kernel->f32->dropout_keep(1, DROPOUT_RESIDUAL, 0, 0, DRAWS, keep);
        for (int n = 0; n < DRAWS; n++)
            ck_assert_uint_eq(keep[n], 1);
        kernel->f32->dropout_keep(1, DROPOUT_RESIDUAL, 1, 0, DRAWS, keep);
        for (int n = 0; n < DRAWS; n++)
            ck_assert_uint_eq(keep[n], 0);
    }
}
END_TEST

CHECK_MAIN("philox")
{
    tcase_add_test(tests, philox_gives_the_known_answers);
    tcase_add_test(tests, a_decision_compares_a_word_with_p);
    tcase_add_test(tests, any_part_of_a_stream_is_the_same_as_in_the_whole);
    tcase_add_test(tests, p_of_zero_keeps_all_and_of_one_keeps_none);
}
