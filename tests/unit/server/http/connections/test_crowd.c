/*
 * test_crowd.c: tests of server/http/connections/crowd.c: lists of connections by state, and a walk over all
 * connections.
 */
#include <string.h>

#include "check_main.h"
#include "http/connections/server.h"

enum { MANY = 10000 };

static struct crowd crowd;
static struct crowd_member many[MANY];

static void add_many(void)
{
    crowd = (struct crowd){.count = 0};
    for (size_t i = 0; i < MANY; i++)
        ck_assert(crowd_add(&crowd, &many[i], LINE_IDLE));
}

static size_t walk_round(void)
{
    static bool is_seen[MANY];
    size_t seen = 0;
    memset(is_seen, 0, sizeof is_seen);
    for (size_t left = crowd.count; left > 0; left--) {
        const size_t at = (size_t)(crowd_next(&crowd) - many);
        seen += !is_seen[at];
        is_seen[at] = true;
    }
    return seen;
}

START_TEST(the_first_of_a_line_is_the_one_that_has_been_in_it_for_longest)
{
    add_many();
    ck_assert_ptr_eq(crowd.lines[LINE_IDLE].first, &many[0]);
    crowd_move(&crowd, &many[0], LINE_REPLY);
    ck_assert_ptr_eq(crowd.lines[LINE_IDLE].first, &many[1]);
    crowd_move(&crowd, &many[1], LINE_IDLE);
    ck_assert_ptr_eq(crowd.lines[LINE_IDLE].first, &many[2]);
    ck_assert_ptr_eq(crowd.lines[LINE_IDLE].last, &many[1]);
    crowd_remove(&crowd, &many[2]);
    crowd_remove(&crowd, &many[1]);
    ck_assert_ptr_eq(crowd.lines[LINE_IDLE].first, &many[3]);
    ck_assert_ptr_eq(crowd.lines[LINE_IDLE].last, &many[MANY - 1]);
    ck_assert_ptr_eq(crowd.lines[LINE_REPLY].first, &many[0]);
    ck_assert_uint_eq(crowd.lines[LINE_REPLY].count, 1);
    crowd_remove(&crowd, &many[0]);
    ck_assert_ptr_null(crowd.lines[LINE_REPLY].first);
    ck_assert_ptr_null(crowd.lines[LINE_REPLY].last);
    crowd_free(&crowd);
}
END_TEST

START_TEST(a_walk_comes_to_each_of_them_once_in_a_round)
{
    add_many();
    ck_assert_uint_eq(walk_round(), MANY);
    for (size_t i = 0; i < MANY; i += 3)
        crowd_remove(&crowd, &many[i]);
    ck_assert_uint_eq(walk_round(), crowd.count);
    while (crowd.count > 0)
        crowd_remove(&crowd, crowd.all[crowd.count / 2]);
    ck_assert_ptr_null(crowd_next(&crowd));
    for (enum crowd_line line = 0; line < CROWD_LINES; line++)
        ck_assert_uint_eq(crowd.lines[line].count, 0);
    crowd_free(&crowd);
}
END_TEST

CHECK_MAIN("crowd")
{
    tcase_add_test(tests, the_first_of_a_line_is_the_one_that_has_been_in_it_for_longest);
    tcase_add_test(tests, a_walk_comes_to_each_of_them_once_in_a_round);
}
