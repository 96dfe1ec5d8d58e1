/*
 * test_nearest.c: edit distance, and which name counts as the one that was meant.
 */
#include "base/nearest.h"

#include "check_main.h"

START_TEST(distance_counts_edits)
{
    ck_assert_uint_eq(nearest_distance("", ""), 0);
    ck_assert_uint_eq(nearest_distance("", "abc"), 3);
    ck_assert_uint_eq(nearest_distance("kitten", "sitting"), 3);
    ck_assert_uint_eq(nearest_distance("quert", "query"), 1);
}
END_TEST

START_TEST(swapped_neighbours_are_one_edit)
{
    ck_assert_uint_eq(nearest_distance("qeury", "query"), 1);
    ck_assert_uint_eq(nearest_distance("ab", "ba"), 1);
}
END_TEST

START_TEST(nearest_is_the_candidate_with_fewest_edits)
{
    const char *nearest = NULL;
    size_t distance = NEAREST_MAX + 1;
    nearest_consider("quer", "value", &nearest, &distance);
    ck_assert_ptr_null(nearest);
    nearest_consider("quer", "queue", &nearest, &distance);
    ck_assert_str_eq(nearest, "queue");
    nearest_consider("quer", "query", &nearest, &distance);
    ck_assert_str_eq(nearest, "query");
    ck_assert_uint_eq(distance, 1);
}
END_TEST

START_TEST(short_names_are_not_near_each_other)
{
    const char *nearest = NULL;
    size_t distance = NEAREST_MAX + 1;
    nearest_consider("q", "k", &nearest, &distance);
    nearest_consider("ab", "ba", &nearest, &distance);
    ck_assert_ptr_null(nearest);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {
        distance_counts_edits,
        swapped_neighbours_are_one_edit,
        nearest_is_the_candidate_with_fewest_edits,
        short_names_are_not_near_each_other,
    };
    return check_main("nearest", tests, COUNT(tests));
}
