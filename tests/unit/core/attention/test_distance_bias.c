/*
 * test_distance_bias.c: tests core/src/attention/distance_bias.c, and how the kernels apply biases by distance and
 * sinks.
 */
#include "attention/attention.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "check_main.h"
#include "closeness.h"
#include "mask/resolved.h"
#include "mask_cases.h"
#include "naive_attention.h"
#include "scene.h"

/* Few queries and many, one split and several, one head of keys and more. */
static const scene_size sizes[] = {
    {1, 2, 1, 5, 1030, 8, 5}, {2, 3, 3, 50, 520, 5, 9}, {1, 4, 2, 97, 530, 3, 16},
    {2, 2, 2, 1, 2100, 4, 4}, {2, 2, 1, 70, 11, 4, 3},
};
enum { SIZES = sizeof sizes / sizeof *sizes };

static void try_biases(const scene_size *n, size_t mask, attn_dtype type, unsigned variant)
{
    const attn_kernel *kernel;
    char what[160];
    test_scene scene = scene_create(type, 100 * mask + variant);
    scene_attention(&scene, n);
    mask_case_at(mask)->apply(&scene, n);
    scene_biases(&scene, n, variant);
    if (variant % 3 == 0)
        scene.request.options.softcap = 3;
    naive_result naive = naive_attention(&scene.request, NULL);
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
        snprintf(what, sizeof what, "%s, biases %u, %zu x %zu, %s", mask_case_at(mask)->name, variant, n->q_len,
                 n->kv_len, attn_kernel_name(kernel));
        test_run run = run_kernel(&scene.request, kernel, scene_every_step(&scene.request));
        expect_close(&run, &naive, what);
        run_release(&run);
    }
    naive_release(&naive);
    scene_destroy(&scene);
}

START_TEST(every_bias_alone_meets_equation_1)
{
    for (size_t s = 0; s < SIZES; s++)
        for (size_t bit = s % one_in(3); bit < 7; bit += one_in(3))
            for (size_t type = ATTN_F32 + bit % one_in(2); type <= ATTN_F64; type += one_in(2))
                try_biases(&sizes[s], 0, (attn_dtype)type, 1u << bit);
}
END_TEST

START_TEST(biases_meet_equation_1_behind_every_mask)
{
    for (size_t c = 0; mask_case_at(c) != NULL; c += one_in(3))
        for (size_t type = ATTN_F32 + c % one_in(2); type <= ATTN_F64; type += one_in(2))
            try_biases(&sizes[c % SIZES], c, (attn_dtype)type, (unsigned)(7 * c + 17) % 128);
}
END_TEST

START_TEST(a_row_of_biases_is_what_the_reference_adds)
{
    const scene_size *n = &sizes[1];
    for (size_t c = 0; mask_case_at(c) != NULL; c++)
        for (int type = ATTN_F32; type <= ATTN_F64; type++) {
            test_scene scene = scene_create((attn_dtype)type, c);
            attn_plan plan;
            double row[600];
            scene_attention(&scene, n);
            mask_case_at(c)->apply(&scene, n);
            scene_biases(&scene, n, (unsigned)c % 16);
            scene.request.options.want = WANT(OUTPUT);
            ck_assert_int_eq(attn_plan_make(&scene.request, &plan, NULL), ATTN_OK);
            const attn_options *options = &scene.request.options;
            void *data = scene_memory(&scene, attn_distance_bias_count(options, attn_mask_of(&plan)) * sizeof(double));
            const attn_runtime serial = attn_runtime_serial(NULL);
            struct attn_distance_bias distance = attn_distance_bias_make(options, attn_mask_of(&plan), data, &serial);
            const attn_tensor *bias = scene.request.masks.bias;
            for (size_t i = 0; i < n->q_len; i += 7) {
                const size_t b = i % 2, h = i % 3;
                attn_bias_row(&distance, attn_mask_of(&plan), options->compute, b, h, i, 3, n->kv_len, row);
                for (size_t j = 3; j < n->kv_len; j++) {
                    double away = (double)j - (double)i - (double)attn_mask_offset(attn_mask_of(&plan), b);
                    double expected = naive_position_bias(options, away, n->heads, h) +
                                      (bias == NULL ? 0 : naive_read(bias, b, h, i, j));
                    if (isinf(expected))
                        ck_assert(row[j - 3] == expected);
                    else
                        ck_assert_double_le(fabs(row[j - 3] - expected),
                                            4 * unit_roundoff(options->compute) * (20 + fabs(away)));
                }
            }
            scene_destroy(&scene);
        }
}
END_TEST

/* Slopes of two heads are 1/16 and 1/256, so that every product is exact. */
START_TEST(alibi_is_the_bias_that_it_says)
{
    for (size_t s = 1; s < SIZES; s += 3)
        for (int type = ATTN_F32; type <= ATTN_F64; type++) {
            scene_size n = sizes[s];
            n.heads = n.kv_heads = 2;
            test_scene scene = scene_create((attn_dtype)type, s);
            scene_attention(&scene, &n);
            scene.request.options.alibi = true;
            const attn_steps steps = scene_every_step(&scene.request);
            test_run alibi = run_kernel(&scene.request, NULL, steps);
            attn_tensor *bias = scene_tensor(&scene, (attn_dtype)type, SHAPE(2, n.q_len, n.kv_len));
            for (size_t at = 0; at < attn_tensor_count(bias); at++) {
                const double j = (double)(at % n.kv_len), i = (double)(at / n.kv_len % n.q_len);
                const double p = i + (double)n.kv_len - (double)n.q_len;
                tensor_set(bias, at, -fabs(j - p) / (at / n.kv_len / n.q_len == 0 ? 16 : 256));
            }
            scene.request.options.alibi = false;
            scene.request.masks.bias = bias;
            test_run biased = run_kernel(&scene.request, NULL, steps);
            expect_same_steps(&alibi, &biased, steps, "ALiBi");
            ck_assert(alibi.result.max_abs_score == biased.result.max_abs_score);
            run_release(&alibi);
            run_release(&biased);
            scene_destroy(&scene);
        }
}
END_TEST

/* Documents and blocks skip what a plain mask looks at, and neither may change a byte. */
START_TEST(a_mask_that_skips_tiles_is_the_attend_mask_that_it_says)
{
    static const scene_size tiled[] = {{2, 2, 2, 130, 1100, 5, 4}, {1, 2, 1, 6, 1100, 8, 8}};
    for (size_t c = 0; mask_case_at(c) != NULL; c++)
        for (size_t s = c / 2 % one_in(2); s < 2; s += one_in(2)) {
            test_scene scene = scene_create(c % 2 == 0 ? ATTN_F32 : ATTN_F64, c);
            scene_attention(&scene, &tiled[s]);
            mask_case_at(c)->apply(&scene, &tiled[s]);
            if (scene.request.masks.documents_key == NULL && scene.request.masks.blocks.kind == ATTN_BLOCKS_NONE) {
                scene_destroy(&scene);
                continue;
            }
            const attn_steps steps = scene_every_step(&scene.request);
            test_run skipping = run_kernel(&scene.request, NULL, steps);
            const attn_tensor *bias = scene.request.masks.bias;
            scene.request.masks = (attn_masks){.attend = &skipping.result.step[ATTN_STEP_MASK], .bias = bias};
            test_run plain = run_kernel(&scene.request, NULL, steps);
            expect_same_steps(&skipping, &plain, steps, mask_case_at(c)->name);
            run_release(&skipping);
            run_release(&plain);
            scene_destroy(&scene);
        }
}
END_TEST

START_TEST(weights_and_the_sink_sum_to_one)
{
    for (size_t s = 0; s < SIZES; s++)
        for (int type = ATTN_F32; type <= ATTN_F64; type++) {
            const scene_size *n = &sizes[s];
            test_scene scene = scene_create((attn_dtype)type, s);
            scene_attention(&scene, n);
            scene_biases(&scene, n, 16);
            test_run run = run_kernel(&scene.request, NULL, WANT(ATTENTION) | WANT(SINK) | WANT(LSE) | WANT(LSE_KEYS));
            for (size_t row = 0; row < n->batch * n->heads * n->q_len; row++) {
                double sum = tensor_get(&run.result.step[ATTN_STEP_SINK], row);
                for (size_t j = 0; j < n->kv_len; j++)
                    sum += tensor_get(&run.result.step[ATTN_STEP_ATTENTION], row * n->kv_len + j);
                /* as for the sum of a row without a sink */
                ck_assert_double_le(fabs(sum - 1), 8 * unit_roundoff((attn_dtype)type) * (double)n->kv_len);
                double keys = tensor_get(&run.result.step[ATTN_STEP_LSE_KEYS], row);
                double logit = tensor_get(scene.request.options.sinks, row / n->q_len % n->heads);
                double lse = tensor_get(&run.result.step[ATTN_STEP_LSE], row), m = fmax(keys, logit);
                ck_assert_double_le(fabs(lse - m - log(exp(keys - m) + exp(logit - m))),
                                    8 * unit_roundoff((attn_dtype)type) * (1 + fabs(lse)));
            }
            run_release(&run);
            scene_destroy(&scene);
        }
}
END_TEST

/* e^-1e30 is 0, and adding 0 changes nothing. */
START_TEST(a_sink_far_below_changes_no_byte)
{
    for (size_t s = 0; s < SIZES; s++) {
        test_scene scene = scene_create(ATTN_F32, s);
        scene_attention(&scene, &sizes[s]);
        scene.request.masks.causal = true;
        const attn_steps steps = scene_every_step(&scene.request) & ~(WANT(SINK));
        test_run without = run_kernel(&scene.request, NULL, steps);
        attn_tensor *sinks = scene_tensor(&scene, ATTN_F32, SHAPE(sizes[s].heads));
        for (size_t h = 0; h < sizes[s].heads; h++)
            tensor_set(sinks, h, -1e30);
        scene.request.options.sinks = sinks;
        test_run with = run_kernel(&scene.request, NULL, steps);
        if (without.result.rows_without_keys == 0)
            expect_same_steps(&without, &with, steps, "far sink");
        else
            expect_same_steps(&without, &with, steps & ~WANT(LSE), "far sink");
        run_release(&without);
        run_release(&with);
        scene_destroy(&scene);
    }
}
END_TEST

START_TEST(a_row_without_keys_is_all_sink)
{
    for (size_t s = 0; s < SIZES; s++) {
        const scene_size *n = &sizes[s];
        test_scene scene = scene_create(ATTN_F64, s);
        scene_attention(&scene, n);
        scene.request.masks.attend = scene_coins(&scene, 0, 0, NULL);
        scene_biases(&scene, n, 17);
        test_run run = run_kernel(&scene.request, NULL, scene_every_step(&scene.request));
        const attn_tensor *step = run.result.step;
        ck_assert_uint_eq(run.result.rows_without_keys, n->batch * n->heads * n->q_len);
        for (size_t row = 0; row < n->batch * n->heads * n->q_len; row++) {
            double logit = tensor_get(scene.request.options.sinks, row / n->q_len % n->heads);
            ck_assert(tensor_get(&step[ATTN_STEP_SINK], row) == 1);
            ck_assert(tensor_get(&step[ATTN_STEP_LSE], row) == logit);
            ck_assert(tensor_get(&step[ATTN_STEP_LSE_KEYS], row) == -HUGE_VAL);
            ck_assert(tensor_get(&step[ATTN_STEP_ENTROPY], row) == 0);
            for (size_t j = 0; j < n->kv_len; j++)
                ck_assert(tensor_get(&step[ATTN_STEP_ATTENTION], row * n->kv_len + j) == 0);
            for (size_t d = 0; d < n->d_v; d++)
                ck_assert(tensor_get(&step[ATTN_STEP_CONTEXT], row * n->d_v + d) == 0);
        }
        run_release(&run);
        scene_destroy(&scene);
    }
}
END_TEST

/* ---- refusals ---- */

static test_scene small(void)
{
    test_scene scene = scene_create(ATTN_F32, 1);
    scene_attention(&scene, &(scene_size){1, 2, 2, 3, 5, 4, 4});
    scene.request.options.want = WANT(OUTPUT);
    return scene;
}

START_TEST(numbers_that_are_not_one_for_each_head_are_refused)
{
    test_scene scene = small();
    attn_options *o = &scene.request.options;
    o->alibi_slopes = scene_normal(&scene, 1, SHAPE(3));
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "options.alibi_slopes", "[2]");
    o->alibi_slopes = scene_tensor(&scene, ATTN_F64, SHAPE(2));
    expect_refusal(&scene.request, ATTN_ERR_FIELD, "options.alibi_slopes", "float64");
    o->alibi_slopes = NULL;
    o->sinks = scene_normal(&scene, 1, SHAPE(2, 1));
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "options.sinks", "[2,1]");
    scene_destroy(&scene);
}
END_TEST

START_TEST(slopes_sinks_and_tables_that_are_not_finite_are_refused)
{
    const double not_finite[] = {(double)NAN, HUGE_VAL, -HUGE_VAL};
    for (size_t n = 0; n < 3; n++) {
        test_scene scene = small();
        attn_options *o = &scene.request.options;
        attn_tensor *numbers = scene_normal(&scene, 1, SHAPE(2)), *table = scene_normal(&scene, 1, SHAPE(8, 2));
        tensor_set(numbers, 1, not_finite[n]);
        tensor_set(table, 15, not_finite[n]);
        o->alibi_slopes = numbers;
        expect_refusal(&scene.request, ATTN_ERR_VALUE, "options.alibi_slopes", "not finite");
        o->alibi_slopes = NULL;
        o->sinks = numbers;
        expect_refusal(&scene.request, ATTN_ERR_VALUE, "options.sinks", "not finite");
        o->sinks = NULL;
        o->relative_bias = (attn_relative_bias){.table = table, .max_distance = 128};
        expect_refusal(&scene.request, ATTN_ERR_VALUE, "options.relative_bias.table", "not finite");
        scene_destroy(&scene);
    }
}
END_TEST

START_TEST(a_slope_whose_bias_leaves_the_range_is_refused)
{
    const int64_t far_off = INT64_C(1) << 40;
    test_scene scene = small();
    attn_options *o = &scene.request.options;
    attn_tensor *slopes = scene_normal(&scene, 1, SHAPE(2));
    tensor_set(slopes, 0, -1e37);
    o->alibi_slopes = slopes;
    attn_plan plan;
    ck_assert_int_eq(attn_plan_make(&scene.request, &plan, NULL), ATTN_OK);
    scene.request.masks.offset = scene_integers(&scene, &far_off, 0, NULL);
    expect_refusal(&scene.request, ATTN_ERR_VALUE, "options.alibi_slopes", "range of compute float32");
    scene_destroy(&scene);
}
END_TEST

START_TEST(a_table_without_buckets_for_what_it_should_tell_apart_is_refused)
{
    static const char *const field = "options.relative_bias.table";
    test_scene scene = small();
    attn_relative_bias *relative = &scene.request.options.relative_bias;
    *relative = (attn_relative_bias){.table = scene_normal(&scene, 1, SHAPE(8, 3)), .max_distance = 128};
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, field, "[8,3]");
    relative->table = scene_normal(&scene, 1, SHAPE(8));
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, field, "a column for each head");
    relative->table = scene_normal(&scene, 1, SHAPE(1, 2));
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, field, "at least 2");
    relative->table = scene_normal(&scene, 1, SHAPE(3, 2));
    relative->bidirectional = true;
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, field, "at least 4");
    relative->table = scene_normal(&scene, 1, SHAPE(32, 2));
    relative->max_distance = 8;
    expect_refusal(&scene.request, ATTN_ERR_VALUE, "options.relative_bias.max_distance", "above the 8");
    scene_destroy(&scene);
}
END_TEST

CHECK_MAIN("score_bias")
{
    tcase_add_test(tests, every_bias_alone_meets_equation_1);
    tcase_add_test(tests, biases_meet_equation_1_behind_every_mask);
    tcase_add_test(tests, a_row_of_biases_is_what_the_reference_adds);
    tcase_add_test(tests, alibi_is_the_bias_that_it_says);
    tcase_add_test(tests, a_mask_that_skips_tiles_is_the_attend_mask_that_it_says);
    tcase_add_test(tests, weights_and_the_sink_sum_to_one);
    tcase_add_test(tests, a_sink_far_below_changes_no_byte);
    tcase_add_test(tests, a_row_without_keys_is_all_sink);
    tcase_add_test(tests, numbers_that_are_not_one_for_each_head_are_refused);
    tcase_add_test(tests, slopes_sinks_and_tables_that_are_not_finite_are_refused);
    tcase_add_test(tests, a_slope_whose_bias_leaves_the_range_is_refused);
    tcase_add_test(tests, a_table_without_buckets_for_what_it_should_tell_apart_is_refused);
}
