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

/*
 * Compares the run of a layer that has every step, stage by stage. Each stage is computed from the run's own input of
 * that stage: q, k and v from the inputs, the maps and the context from the run's q, k and v, projected from the run's
 * concat, and so on. So errors do not accumulate, and each stage has its own tolerance. Then the output is compared end
 * to end, with a wide tolerance. No selections, no dropout.
 */
void expect_layer_close(const test_run *run, const attn_request *request, const char *what);

/*
 * Compares a request without a layer that has every step: queries and keys with their norm, rotation and cache, then
 * the rest with equation 1 on the run's queries and keys.
 */
void expect_turned_close(const test_run *run, const attn_request *request, const char *what);

#endif
