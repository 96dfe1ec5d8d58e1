/*
 * check_main.h: the main of a test program. If all tests run once, without a fixture:
 *
 *     int main(void) { return check_main("mask", mask_tests, COUNT(mask_tests)); }
 *
 * otherwise:
 *
 *     TCase *tests = check_case("guard");
 *     tcase_add_checked_fixture(tests, prepare, release);
 *     tcase_add_loop_test(tests, each_row_is_refused, 0, COUNT(rows));
 *     return check_run("guard", tests);
 */
#ifndef TESTS_CHECK_MAIN_H
#define TESTS_CHECK_MAIN_H

#include <check.h>
#include <stdlib.h>

#include "attn/runtime.h"

/* How many elements an array has. */
#define COUNT(items) (sizeof(items) / sizeof(items)[0])

/* Creates the only test case of a program, empty, with the time-out and the BLAS set up. */
static inline TCase *check_case(const char *name)
{
    attn_blas_prepare();
    TCase *tests = tcase_create(name);
    tcase_set_timeout(tests, 60); /* instrumented builds are slow */
    return tests;
}

/* Runs the test case; EXIT_SUCCESS when no test failed. */
static inline int check_run(const char *name, TCase *tests)
{
    Suite *suite = suite_create(name);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Runs each test once, between set_up and tear_down, which may be NULL. */
static inline int check_staged(const char *name, SFun set_up, SFun tear_down, const TTest *const *tests, size_t count)
{
    TCase *all = check_case(name);
    tcase_add_checked_fixture(all, set_up, tear_down);
    for (size_t i = 0; i < count; i++)
        tcase_add_test(all, tests[i]);
    return check_run(name, all);
}

static inline int check_main(const char *name, const TTest *const *tests, size_t count)
{
    return check_staged(name, NULL, NULL, tests, count);
}

#endif
