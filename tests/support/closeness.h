/*
 * closeness.h: whether a run of the core is as near to equation 1 as its arithmetic allows.
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
 * Compares all steps that run has, of a request without a layer, with naive; also the rows without keys and the largest
 * score. No selections. Fails the test, naming what, the step and the element.
 */
void expect_close(const test_run *run, const naive_result *naive, const char *what);

/*
 * Compares a layer that was run for every step, one link of the chain after the other: q, k and v with the projections,
 * the maps and the context with equation 1 on the q, k and v of the run itself, projected with W^O on its concat, and
 * so on. Errors do not pile up along the chain, so each link is held to its own tolerance. Then the output is compared
 * end to end, loosely. No selections, no dropout.
 */
void expect_layer_close(const test_run *run, const attn_request *request, const char *what);

/*
 * A request without a layer that was run for every step: queries and keys with their norm, rotation and cache, then the
 * rest with equation 1 on what the run made of them.
 */
void expect_turned_close(const test_run *run, const attn_request *request, const char *what);

#endif
