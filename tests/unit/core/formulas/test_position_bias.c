/*
 * test_position_bias.c: tests core/src/formulas/position_bias.c against published numbers.
 */
#include "attn/position_bias.h"

#include <math.h>

#include "check_main.h"

/* Press et al., section 3: for 8 heads 1/2, 1/4 … 1/256; for 16 the square roots stand between them. */
START_TEST(slopes_of_a_power_of_two_are_a_geometric_series)
{
    for (size_t h = 0; h < 8; h++)
        ck_assert_double_eq(attn_alibi_slope(8, h), pow(2, -1.0 - (double)h));
    for (size_t h = 0; h < 16; h++)
        ck_assert_double_eq_tol(attn_alibi_slope(16, h), pow(2, -0.5 - 0.5 * (double)h), 1e-15);
    ck_assert_double_eq(attn_alibi_slope(1, 0), 1.0 / 256);
}
END_TEST

START_TEST(slopes_of_other_counts_borrow_every_other_one_of_the_next_power)
{
    for (size_t h = 0; h < 8; h++)
        ck_assert_double_eq(attn_alibi_slope(12, h), attn_alibi_slope(8, h));
    for (size_t h = 8; h < 12; h++)
        ck_assert_double_eq(attn_alibi_slope(12, h), attn_alibi_slope(16, 2 * (h - 8)));
    ck_assert_double_eq(attn_alibi_slope(3, 2), attn_alibi_slope(4, 0));
    for (size_t h = 0; h < 15; h++)
        ck_assert_double_eq(attn_alibi_slope(15, h),
                            h < 8 ? attn_alibi_slope(8, h) : attn_alibi_slope(16, 2 * (h - 8)));
}
END_TEST

/* Where each of T5's 16 buckets of a direction begins, with 32 in all and distances up to 128. */
START_TEST(buckets_of_t5_begin_where_they_should)
{
    static const int64_t begins[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91};
    for (size_t bucket = 0; bucket < 16; bucket++) {
        const int64_t begin = begins[bucket], end = bucket < 15 ? begins[bucket + 1] : 5000;
        for (int64_t distance = begin; distance < end; distance++) {
            ck_assert_uint_eq(attn_relative_bucket(-distance, 32, true, 128), bucket);
            ck_assert_uint_eq(attn_relative_bucket(-distance, 16, false, 128), bucket);
            ck_assert_uint_eq(attn_relative_bucket(distance, 16, false, 128), 0);
            if (distance > 0)
                ck_assert_uint_eq(attn_relative_bucket(distance, 32, true, 128), 16 + bucket);
        }
    }
}
END_TEST

START_TEST(a_distance_beyond_all_reason_has_the_last_bucket)
{
    ck_assert_uint_eq(attn_relative_bucket((int64_t)1 << 41, 32, true, 128), 31);
    ck_assert_uint_eq(attn_relative_bucket(-((int64_t)1 << 41), 32, true, 128), 15);
    ck_assert_uint_eq(attn_relative_bucket(-((int64_t)1 << 41), 2, false, INT64_MAX), 1);
    ck_assert_uint_eq(attn_relative_bucket(-1, 4, true, 2), 1);
}
END_TEST

/* Where rows of DeBERTa v3 begin: its code gives these for 256 buckets and distances up to 512. */
START_TEST(rows_of_deberta_are_those_of_its_code)
{
    static const int64_t some[][2] = {{0, 256},   {1, 257},   {128, 384}, {129, 385}, {130, 386},
                                      {150, 399}, {200, 425}, {300, 463}, {400, 489}, {505, 510},
                                      {506, 511}, {511, 511}, {4000, 511}};
    for (size_t n = 0; n < sizeof some / sizeof *some; n++)
        ck_assert_int_eq((int64_t)attn_relative_row(-some[n][0], 512, 256, 512), some[n][1]);
    for (int64_t away = 1; away < 600; away++) {
        const size_t earlier = attn_relative_row(-away, 512, 256, 512), later = attn_relative_row(away, 512, 256, 512);
        ck_assert_uint_eq(later, away < 512 ? 512 - earlier : 0);
    }
    for (int64_t distance = -40; distance < 40; distance++)
        ck_assert_int_eq((int64_t)attn_relative_row(distance, 20, 0, 0), distance <= -10  ? 19
                                                                         : distance >= 10 ? 0
                                                                                          : 10 - distance);
}
END_TEST

START_TEST(a_distance_beyond_all_reason_has_the_last_row)
{
    ck_assert_uint_eq(attn_relative_row((int64_t)1 << 41, 512, 256, 512), 0);
    ck_assert_uint_eq(attn_relative_row(-((int64_t)1 << 41), 512, 256, 512), 511);
    ck_assert_uint_eq(attn_relative_row(-((int64_t)1 << 41), 4, 2, INT64_MAX), 3);
    ck_assert_uint_eq(attn_relative_row(-((int64_t)1 << 41), 2, 0, 0), 1);
}
END_TEST

CHECK_MAIN("position_bias")
{
    tcase_add_test(tests, rows_of_deberta_are_those_of_its_code);
    tcase_add_test(tests, a_distance_beyond_all_reason_has_the_last_row);
    tcase_add_test(tests, slopes_of_a_power_of_two_are_a_geometric_series);
    tcase_add_test(tests, slopes_of_other_counts_borrow_every_other_one_of_the_next_power);
    tcase_add_test(tests, buckets_of_t5_begin_where_they_should);
    tcase_add_test(tests, a_distance_beyond_all_reason_has_the_last_bucket);
}
