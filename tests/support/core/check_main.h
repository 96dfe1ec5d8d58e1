/*
 * check_main.h: the main of a test program, which adds its tests to one case:
 *
 *     CHECK_MAIN("guard")
 *     {
 *         tcase_add_checked_fixture(tests, prepare, release);
 *         tcase_add_test(tests, a_claim);
 *         tcase_add_loop_test(tests, each_row_is_refused, 0, COUNT(rows));
 *     }
 */
#ifndef TESTS_CHECK_MAIN_H
#define TESTS_CHECK_MAIN_H

#include <check.h>
#include <stdlib.h>

#include "attn/runtime.h"

/* libcheck notes the place of each assertion that holds in a file, which takes a microsecond, and several with a sanitizer. */
#define _mark_point(file, line) ((void)0)

/* How many elements an array has. */
#define COUNT(items) (sizeof(items) / sizeof(items)[0])

/* The body that follows adds the tests of the program to the case `tests`. */
#define CHECK_MAIN(name)                                                                                               \
    static void add_tests(TCase *tests);                                                                               \
    int main(void)                                                                                                     \
    {                                                                                                                  \
        return check_run(name, add_tests);                                                                             \
    }                                                                                                                  \
    static void add_tests(TCase *tests)

/* The step of a loop over many places that are alike: one in so many is tried, and each of them with ATTN_LONG=1. */
static inline size_t one_in(size_t places)
{
    return getenv("ATTN_LONG") != NULL ? 1 : places;
}

/* Place `i` of a loop over one in so many of them. */
static inline size_t one_of(int i, size_t places)
{
    return (size_t)i * places + (size_t)i % places;
}

static Suite *check_suite;

/* Adds an empty case to the program's suite. A program needs a second one for tests with another fixture. */
static inline TCase *check_case(const char *name)
{
    TCase *tests = tcase_create(name);
    tcase_set_timeout(tests, 60); /* instrumented builds are slow */
    suite_add_tcase(check_suite, tests);
    return tests;
}

/* Sets up the BLAS and runs the tests; EXIT_SUCCESS when no test failed. */
static inline int check_run(const char *name, void (*add_tests)(TCase *tests))
{
    attn_blas_use_one_thread();
    check_suite = suite_create(name);
    add_tests(check_case(name));
    SRunner *runner = srunner_create(check_suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
