/*
 * test_nearest.c: edit distance, and the choice of the nearest name.
 */
#include <stdbool.h>

#include "base/text.h"
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

START_TEST(the_name_that_was_meant_is_the_nearest)
{
    static const struct {
        const char *name, *candidate;
        bool is_near;
    } names[] = {
        {"scale", "scale", true},
        {"scal", "scale", true},
        {"sclae", "scale", true},
        {"xcale", "scale", true},
        {"softcap", "scale", false},
        {"a_name_that_is_longer_than_any_member_of_a_request_would_ever_be_by_far", "scale", false},
        {"scale", "a_name_that_is_longer_than_any_member_of_a_request_would_ever_be_by_far", false},
    };
    for (size_t i = 0; i < COUNT(names); i++) {
        const char *nearest = NULL;
        size_t distance = NEAREST_MAX + 1;
        nearest_consider(names[i].name, names[i].candidate, &nearest, &distance);
        ck_assert_msg((nearest != NULL) == names[i].is_near, "%s and %s", names[i].name, names[i].candidate);
    }
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

CHECK_MAIN("nearest")
{
    tcase_add_test(tests, distance_counts_edits);
    tcase_add_test(tests, swapped_neighbours_are_one_edit);
    tcase_add_test(tests, nearest_is_the_candidate_with_fewest_edits);
    tcase_add_test(tests, the_name_that_was_meant_is_the_nearest);
    tcase_add_test(tests, short_names_are_not_near_each_other);
}
