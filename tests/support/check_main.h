/*
 * check_main.h: the main of a test program of the core.
 *
 *     int main(void) { return check_main("mask", mask_tests, sizeof mask_tests / sizeof *mask_tests); }
 */
#ifndef TESTS_CHECK_MAIN_H
#define TESTS_CHECK_MAIN_H

#include <check.h>
#include <stdlib.h>

#include "attn/runtime.h"

/* One test case of all tests, prepared as the library asks; EXIT_SUCCESS when none failed. */
static inline int check_main(const char *name, const TTest *const *tests, size_t count)
{
    attn_blas_prepare();
    Suite *suite = suite_create(name);
    TCase *tcase = tcase_create(name);
    tcase_set_timeout(tcase, 60); /* instrumented builds are slow */
    for (size_t i = 0; i < count; i++)
        tcase_add_test(tcase, tests[i]);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
