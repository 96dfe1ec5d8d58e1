/*
 * closeness.h: checks that a run of the core is as close to equation 1 as its arithmetic allows.
 *
 * The tolerances are stated once, in closeness.c, each with its reason.
 */
#ifndef TESTS_CLOSENESS_H
#define TESTS_CLOSENESS_H

#include "naive_attention.h"
#include "scene.h"

/* Half the distance from 1 to the next number: the largest relative error of one rounding. */
double unit_roundoff(attn_dtype compute);

/*
 * Compares all steps of run with naive, for a request without a layer; also the rows without keys and the largest
 * score. No selections. On a difference it fails the test with a message that has what, the step and the element.
 */
void expect_close(const test_run *run, const naive_result *naive, const char *what);

#endif
