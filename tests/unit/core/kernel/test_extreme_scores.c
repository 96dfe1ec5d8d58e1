/*
 * test_extreme_scores.c: finite inputs whose scores leave the range of float: weights and entropy stay numbers.
 */
#include <check.h>
#include <math.h>

#include "attn/multihead.h"
#include "check_main.h"

enum { KEYS = 600, TILE = 512, QUERIES_MAX = 9 };

typedef struct {
    float query[QUERIES_MAX], key[KEYS], value[KEYS];
    attn_arena *arena;
    attn_result result;
} extreme;

/* One feature, values of 1, all kernels' business: weights, entropy and output. */
static void run_extreme(extreme *x, size_t queries, const attn_kernel *kernel)
{
    attn_tensor query = attn_tensor_view(x->query, ATTN_F32, 2, (size_t[]){queries, 1});
    attn_tensor key = attn_tensor_view(x->key, ATTN_F32, 2, (size_t[]){KEYS, 1});
    attn_tensor value = attn_tensor_view(x->value, ATTN_F32, 2, (size_t[]){KEYS, 1});
    attn_request request = {.inputs = {.query = &query, .key = &key, .value = &value}};
    request.options.want =
        ATTN_STEP_BIT(ATTN_STEP_OUTPUT) | ATTN_STEP_BIT(ATTN_STEP_ATTENTION) | ATTN_STEP_BIT(ATTN_STEP_ENTROPY);
    attn_plan plan;
    attn_runtime runtime = attn_runtime_serial(kernel);
    x->arena = attn_arena_create((size_t)1 << 26);
    ck_assert_int_eq(attn_plan_make(&request, &plan, NULL), ATTN_OK);
    ck_assert_int_eq(attn_plan_run(&plan, NULL, &runtime, x->arena, &x->result, NULL), ATTN_OK);
}

static const float *step(const extreme *x, attn_step which)
{
    return x->result.step[which].data;
}

static void fill(float *numbers, size_t from, size_t to, float number)
{
    for (size_t i = from; i < to; i++)
        numbers[i] = number;
}

START_TEST(a_tile_of_scores_that_overflow_has_weight_zero)
{
    const attn_kernel *kernel;
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++)
        for (size_t queries = 1; queries <= QUERIES_MAX; queries += QUERIES_MAX - 1) {
            extreme x;
            fill(x.query, 0, QUERIES_MAX, 1e20f);
            fill(x.key, 0, TILE, -1e20f);
            fill(x.key, TILE, KEYS, -2e-18f);
            fill(x.value, 0, KEYS, 1);
            run_extreme(&x, queries, kernel);
            for (size_t i = 0; i < queries; i++) {
                ck_assert_float_eq_tol(step(&x, ATTN_STEP_OUTPUT)[i], 1, 1e-6f);
                for (size_t j = 0; j < KEYS; j++)
                    ck_assert_float_eq_tol(step(&x, ATTN_STEP_ATTENTION)[i * KEYS + j],
                                           j < TILE ? 0 : 1.0f / (KEYS - TILE), 1e-6f);
            }
            attn_arena_destroy(x.arena);
        }
}
END_TEST

START_TEST(entropy_survives_scores_further_apart_than_the_largest_float)
{
    const attn_kernel *kernel;
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++)
        for (size_t queries = 1; queries <= QUERIES_MAX; queries += QUERIES_MAX - 1) {
            extreme x;
            fill(x.query, 0, QUERIES_MAX, 1);
            fill(x.key, 0, KEYS, -3e38f);
            fill(x.key, 7, 8, 3e38f);
            fill(x.value, 0, KEYS, 1);
            run_extreme(&x, queries, kernel);
            for (size_t i = 0; i < queries; i++)
                ck_assert_float_eq(step(&x, ATTN_STEP_ENTROPY)[i], 0);
            attn_arena_destroy(x.arena);
        }
}
END_TEST

CHECK_MAIN("extreme scores")
{
    tcase_add_test(tests, a_tile_of_scores_that_overflow_has_weight_zero);
    tcase_add_test(tests, entropy_survives_scores_further_apart_than_the_largest_float);
}
