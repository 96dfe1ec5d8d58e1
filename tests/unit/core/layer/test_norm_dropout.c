/*
 * test_norm_dropout.c: tests norms and dropout through attn_plan_run. That norms stand in the right place is shown by
 * test_layer.c; here is what they and dropout must hold by themselves.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attn/multihead.h"
#include "check_main.h"
#include "closeness.h"
#include "mask_cases.h"
#include "naive_attention.h"
#include "scene.h"

/* ---- norm ---- */

/* A layer whose output is the norm of its residual; the numbers of query are large where offset is. */
static test_scene normed_layer(attn_dtype type, attn_norm_type norm, double offset)
{
    test_scene scene = scene_create(type, 1);
    scene_layer(&scene, &(scene_size){2, 2, 2, 7, 7, 4, 4}, 40);
    attn_tensor *query = scene_normal(&scene, 1, SHAPE(2, 7, 40));
    for (size_t at = 0; at < attn_tensor_count(query); at++)
        tensor_set(query, at, tensor_get(query, at) + offset);
    scene.request.inputs = (attn_inputs){.query = query};
    scene.request.options.residual = true;
    scene.request.options.norm = norm;
    scene.request.options.norm_eps = 1e-6;
    return scene;
}

START_TEST(layer_norm_gives_mean_0_and_variance_1)
{
    for (int type = ATTN_F32; type <= ATTN_F64; type++) {
        test_scene scene = normed_layer((attn_dtype)type, ATTN_NORM_LAYER, 3);
        test_run run = run_kernel(&scene.request, NULL, WANT(OUTPUT));
        for (size_t row = 0; row < 14; row++) {
            double mean = 0, square = 0;
            for (size_t d = 0; d < 40; d++) {
                double x = tensor_get(&run.result.step[ATTN_STEP_OUTPUT], row * 40 + d);
                mean += x / 40;
                square += x * x / 40;
            }
            /* each of 40 numbers near 1 is rounded once from inputs near 3; eps takes 1e-6 from the variance */
            ck_assert_double_le(fabs(mean), 16 * unit_roundoff(scene.type));
            ck_assert_double_le(fabs(square - 1), 16 * unit_roundoff(scene.type) + 2e-6);
        }
        run_release(&run);
        scene_destroy(&scene);
    }
}
END_TEST

START_TEST(rms_norm_gives_mean_square_1)
{
    for (int type = ATTN_F32; type <= ATTN_F64; type++) {
        test_scene scene = normed_layer((attn_dtype)type, ATTN_NORM_RMS, 3);
        test_run run = run_kernel(&scene.request, NULL, WANT(OUTPUT));
        for (size_t row = 0; row < 14; row++) {
            double square = 0;
            for (size_t d = 0; d < 40; d++)
                square += pow(tensor_get(&run.result.step[ATTN_STEP_OUTPUT], row * 40 + d), 2) / 40;
            ck_assert_double_le(fabs(square - 1), 16 * unit_roundoff(scene.type) + 2e-6);
        }
        run_release(&run);
        scene_destroy(&scene);
    }
}
END_TEST

/* A mean a thousand times the deviation: the variance as mean of squares less square of mean would be lost. */
START_TEST(layer_norm_survives_a_large_mean)
{
    test_scene scene = normed_layer(ATTN_F32, ATTN_NORM_LAYER, 1000);
    scene.request.weights.value.bias = NULL;
    test_run run = run_kernel(&scene.request, NULL, WANT(OUTPUT) | WANT(RESIDUAL));
    double row[40], expected[40];
    for (size_t i = 0; i < 14; i++) {
        for (size_t d = 0; d < 40; d++)
            row[d] = tensor_get(&run.result.step[ATTN_STEP_RESIDUAL], i * 40 + d);
        naive_norm(ATTN_NORM_LAYER, 1e-6, &(attn_affine){0}, 40, row, expected, NULL);
        /* inputs near 1000, known to u 1000, and divided by a deviation that is not far from 1 */
        for (size_t d = 0; d < 40; d++)
            ck_assert_double_eq_tol(tensor_get(&run.result.step[ATTN_STEP_OUTPUT], i * 40 + d), expected[d],
                                    8 * unit_roundoff(ATTN_F32) * 1000);
    }
    run_release(&run);
    scene_destroy(&scene);
}
END_TEST

START_TEST(the_norm_of_equal_numbers_is_its_shift)
{
    for (int type = ATTN_F32; type <= ATTN_F64; type++) {
        test_scene scene = normed_layer((attn_dtype)type, ATTN_NORM_LAYER, 0);
        attn_tensor *query = scene_tensor(&scene, scene.type, SHAPE(1, 3, 40));
        for (size_t at = 0; at < 3 * 40; at++)
            tensor_set(query, at, 5);
        scene.request.inputs.query = query;
        scene.request.weights.output =
            (attn_affine){.weight = scene_tensor(&scene, scene.type, SHAPE(8, 40))}; /* adds nothing */
        attn_tensor *shift = scene_normal(&scene, 1, SHAPE(40));
        scene.request.weights.norm = (attn_affine){.weight = scene_normal(&scene, 1, SHAPE(40)), .bias = shift};
        test_run run = run_kernel(&scene.request, NULL, WANT(OUTPUT));
        for (size_t at = 0; at < 3 * 40; at++)
            ck_assert(tensor_get(&run.result.step[ATTN_STEP_OUTPUT], at) == tensor_get(shift, at % 40));
        run_release(&run);
        scene_destroy(&scene);
    }
}
END_TEST

/* ---- dropout ---- */

static const scene_size wide = {2, 3, 3, 49, 517, 8, 5};

static test_scene dropping(double p, uint64_t seed)
{
    test_scene scene = scene_create(seed % 2 ? ATTN_F64 : ATTN_F32, 3);
    scene_attention(&scene, &wide);
    scene.request.options.dropout = p;
    scene.request.options.dropout_attention = true;
    scene.request.options.dropout_seed = seed;
    return scene;
}

/* Of the weights of a run, those that dropout kept; checks that each is 0 or attention / (1 - p). */
static uint8_t *kept_weights(test_scene *scene, const test_run *run, double p)
{
    const attn_tensor *attention = &run->result.step[ATTN_STEP_ATTENTION],
                      *dropped = &run->result.step[ATTN_STEP_DROPPED];
    size_t count = attn_tensor_count(attention);
    uint8_t *keep = scene_memory(scene, count);
    for (size_t at = 0; at < count; at++) {
        double weight = tensor_get(attention, at), left = tensor_get(dropped, at), full = weight / (1 - p);
        keep[at] = left != 0;
        /* 1 / (1 - p) is rounded, and so is the product */
        if (!(left == 0 || fabs(left - full) <= 4 * unit_roundoff(scene->type) * full))
            ck_abort_msg("weight %zu: %.9g became %.9g", at, weight, left);
    }
    return keep;
}

START_TEST(dropout_leaves_a_weight_scaled_or_zero)
{
    const double chances[] = {0.1, 0.5, 0.9};
    for (size_t c = 0; c < 3; c++)
        for (uint64_t seed = 0; seed < 2; seed++) {
            test_scene scene = dropping(chances[c], seed);
            test_run run = run_kernel(&scene.request, NULL, WANT(ATTENTION) | WANT(DROPPED));
            const uint8_t *keep = kept_weights(&scene, &run, chances[c]);
            size_t count = wide.batch * wide.heads * wide.q_len * wide.kv_len, kept = 0;
            for (size_t at = 0; at < count; at++)
                kept += keep[at];
            /* the count is binomial: five deviations are passed once in two million seeds, and these are fixed */
            double deviation = sqrt((double)count * chances[c] * (1 - chances[c]));
            ck_assert_double_le(fabs((double)kept - (double)count * (1 - chances[c])), 5 * deviation);
            run_release(&run);
            scene_destroy(&scene);
        }
}
END_TEST

START_TEST(the_context_is_of_the_weights_that_dropout_left)
{
    const attn_kernel *kernel;
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++)
        for (uint64_t seed = 0; seed < 4; seed++) {
            test_scene scene = dropping(0.4, seed);
            if (seed >= 2)
                mask_case_composed()->apply(&scene, &wide);
            test_run run = run_kernel(&scene.request, kernel, scene_every_step(&scene.request));
            naive_result naive = naive_attention(&scene.request, kept_weights(&scene, &run, 0.4));
            expect_close(&run, &naive, "dropout");
            naive_release(&naive);
            run_release(&run);
            scene_destroy(&scene);
        }
}
END_TEST

START_TEST(dropout_changes_nothing_before_it)
{
    test_scene scene = dropping(0.4, 0);
    attn_steps before =
        WANT(SCORES) | WANT(MASKED) | WANT(ATTENTION) | WANT(LSE) | WANT(ENTROPY) | WANT(ATTENTION_MEAN);
    test_run with = run_kernel(&scene.request, NULL, before);
    scene.request.options.dropout = 0;
    test_run without = run_kernel(&scene.request, NULL, before);
    expect_same_steps(&with, &without, before, "before dropout");
    run_release(&with);
    run_release(&without);
    scene_destroy(&scene);
}
END_TEST

START_TEST(the_seed_decides_and_the_threads_do_not)
{
    const size_t threads[] = {1, 2, 3, 8};
    test_scene scene = dropping(0.3, 6);
    scene.request.options.want = WANT(OUTPUT) | WANT(DROPPED);
    test_run one = run_kernel(&scene.request, NULL, scene.request.options.want);
    for (size_t t = 0; t < 4; t++) {
        attn_pool *pool = attn_pool_create(&(attn_pool_options){.threads = threads[t]}, NULL);
        attn_runtime runtime = attn_pool_runtime(pool, NULL);
        test_run again = run_request(&scene.request, &runtime);
        expect_same_steps(&one, &again, scene.request.options.want, "same seed");
        run_release(&again);
        attn_pool_destroy(pool);
    }
    scene.request.options.dropout_seed = 8;
    test_run other = run_kernel(&scene.request, NULL, scene.request.options.want);
    size_t count = attn_tensor_count(&one.result.step[ATTN_STEP_DROPPED]), differ = 0;
    for (size_t at = 0; at < count; at++)
        differ += tensor_get(&one.result.step[ATTN_STEP_DROPPED], at) !=
                  tensor_get(&other.result.step[ATTN_STEP_DROPPED], at);
    /* independent choices differ with probability 2 p (1 - p) = 0.42 */
    ck_assert_double_eq_tol((double)differ / (double)count, 0.42, 0.02);
    run_release(&one);
    run_release(&other);
    scene_destroy(&scene);
}
END_TEST

/* The same seed drops the same weights by every kernel and in either type: the generator knows positions alone. */
START_TEST(every_kernel_drops_the_same_weights)
{
    test_scene scene = dropping(0.3, 6);
    test_run first = run_kernel(&scene.request, attn_kernel_at(0), WANT(DROPPED));
    const attn_kernel *kernel;
    for (size_t k = 1; (kernel = attn_kernel_at(k)) != NULL; k++) {
        test_run run = run_kernel(&scene.request, kernel, WANT(DROPPED));
        for (size_t at = 0; at < attn_tensor_count(&run.result.step[ATTN_STEP_DROPPED]); at++)
            ck_assert_int_eq(tensor_get(&run.result.step[ATTN_STEP_DROPPED], at) != 0,
                             tensor_get(&first.result.step[ATTN_STEP_DROPPED], at) != 0);
        run_release(&run);
    }
    run_release(&first);
    scene_destroy(&scene);
}
END_TEST

/* Each output is unbiased: over many seeds the mean nears the output without dropout. */
START_TEST(dropout_keeps_the_expected_output)
{
    enum { SEEDS = 400, NUMBERS = 3 * 4 };
    const scene_size n = {1, 1, 1, 3, 64, 4, 4};
    test_scene scene = scene_create(ATTN_F64, 3);
    scene_attention(&scene, &n);
    test_run without = run_kernel(&scene.request, NULL, WANT(OUTPUT));
    scene.request.options.dropout = 0.5;
    scene.request.options.dropout_attention = true;
    double sum[NUMBERS] = {0}, squares[NUMBERS] = {0};
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        scene.request.options.dropout_seed = seed;
        test_run run = run_kernel(&scene.request, NULL, WANT(OUTPUT));
        for (size_t at = 0; at < NUMBERS; at++) {
            double x = tensor_get(&run.result.step[ATTN_STEP_OUTPUT], at);
            sum[at] += x;
            squares[at] += x * x;
        }
        run_release(&run);
    }
    for (size_t at = 0; at < NUMBERS; at++) {
        double mean = sum[at] / SEEDS, error = sqrt((squares[at] / SEEDS - mean * mean) / SEEDS);
        /* five standard errors, by fixed seeds */
        ck_assert_double_le(fabs(mean - tensor_get(&without.result.step[ATTN_STEP_OUTPUT], at)), 5 * error);
    }
    run_release(&without);
    scene_destroy(&scene);
}
END_TEST

START_TEST(dropping_everything_gives_zeros)
{
    for (uint64_t seed = 0; seed < 2; seed++) {
        test_scene scene = dropping(1, seed);
        test_run run = run_kernel(&scene.request, NULL, WANT(OUTPUT) | WANT(DROPPED));
        for (size_t at = 0; at < attn_tensor_count(&run.result.step[ATTN_STEP_OUTPUT]); at++)
            ck_assert(tensor_get(&run.result.step[ATTN_STEP_OUTPUT], at) == 0);
        for (size_t at = 0; at < attn_tensor_count(&run.result.step[ATTN_STEP_DROPPED]); at++)
            ck_assert(tensor_get(&run.result.step[ATTN_STEP_DROPPED], at) == 0);
        run_release(&run);
        scene_destroy(&scene);
    }
}
END_TEST

START_TEST(dropout_of_probability_0_is_none)
{
    test_scene scene = dropping(0.3, 0);
    scene.request.options.dropout = 0;
    test_run zero = run_kernel(&scene.request, NULL, WANT(OUTPUT));
    scene.request.options.dropout_attention = false;
    test_run none = run_kernel(&scene.request, NULL, WANT(OUTPUT));
    expect_same_steps(&zero, &none, WANT(OUTPUT), "p = 0");
    run_release(&zero);
    run_release(&none);
    scene_destroy(&scene);
}
END_TEST

/* residual = query + (0 or projected / (1 - p)) */
START_TEST(dropout_on_the_residual_strikes_before_the_query_is_added)
{
    const double p = 0.25;
    for (int type = ATTN_F32; type <= ATTN_F64; type++) {
        test_scene scene = scene_create((attn_dtype)type, 9);
        scene_layer(&scene, &(scene_size){2, 2, 2, 70, 5, 4, 4}, 40);
        scene.request.options.residual = true;
        scene.request.options.dropout = p;
        scene.request.options.dropout_residual = true;
        test_run run = run_kernel(&scene.request, NULL, WANT(PROJECTED) | WANT(RESIDUAL) | WANT(OUTPUT));
        size_t count = attn_tensor_count(scene.request.inputs.query), kept = 0;
        for (size_t at = 0; at < count; at++) {
            double query = tensor_get(scene.request.inputs.query, at);
            double full = tensor_get(&run.result.step[ATTN_STEP_PROJECTED], at) / (1 - p);
            double sum = tensor_get(&run.result.step[ATTN_STEP_RESIDUAL], at);
            bool is_kept = sum != query;
            kept += is_kept;
            ck_assert(!is_kept ||
                      fabs(sum - query - full) <= 4 * unit_roundoff(scene.type) * (fabs(query) + fabs(full)));
        }
        /* 5600 numbers: a deviation of 0.0058 */
        ck_assert_double_eq_tol((double)kept / (double)count, 1 - p, 0.03);
        run_release(&run);
        scene_destroy(&scene);
    }
}
END_TEST

CHECK_MAIN("norm and dropout")
{
    tcase_add_test(tests, layer_norm_gives_mean_0_and_variance_1);
    tcase_add_test(tests, rms_norm_gives_mean_square_1);
    tcase_add_test(tests, layer_norm_survives_a_large_mean);
    tcase_add_test(tests, the_norm_of_equal_numbers_is_its_shift);
    tcase_add_test(tests, dropout_leaves_a_weight_scaled_or_zero);
    tcase_add_test(tests, the_context_is_of_the_weights_that_dropout_left);
    tcase_add_test(tests, dropout_changes_nothing_before_it);
    tcase_add_test(tests, the_seed_decides_and_the_threads_do_not);
    tcase_add_test(tests, every_kernel_drops_the_same_weights);
    tcase_add_test(tests, dropout_keeps_the_expected_output);
    tcase_add_test(tests, dropping_everything_gives_zeros);
    tcase_add_test(tests, dropout_of_probability_0_is_none);
    tcase_add_test(tests, dropout_on_the_residual_strikes_before_the_query_is_added);
}
