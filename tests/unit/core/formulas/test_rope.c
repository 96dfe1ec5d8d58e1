/*
 * test_rope.c: tests core/src/formulas/rope.c, and queries_keys.c and run.c of core/src/layer: rotation, norms of queries
 * and keys, caches, the output gate.
 */
#include "attn/rope.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "check_main.h"
#include "mask_cases.h"
#include "scene.h"

static const attn_steps ROTATED = WANT(Q_ROTATED) | WANT(K_ROTATED);

/* ---- frequencies ---- */

static const double shorts[8] = {1, 1, 1.5, 1.5, 2, 2, 2.5, 2.5}, longs[8] = {1, 2, 3, 4, 5, 6, 7, 8};

START_TEST(linear_divides_every_frequency)
{
    double plain[8], scaled[8];
    attn_rope rope = {.layout = ATTN_ROPE_HALF};
    ck_assert_double_eq(attn_rope_frequencies(&rope, 16, 5, plain), 1);
    rope.scaling = (attn_rope_scaling){.type = ATTN_ROPE_LINEAR, .factor = 4};
    ck_assert_double_eq(attn_rope_frequencies(&rope, 16, 5, scaled), 1);
    for (size_t i = 0; i < 8; i++) {
        ck_assert_double_eq_tol(plain[i], pow(10, -(double)i / 2), 1e-15);
        ck_assert_double_eq(scaled[i], plain[i] / 4);
    }
}
END_TEST

START_TEST(dynamic_grows_theta_beyond_the_trained_length_alone)
{
    double plain[8], within[8], beyond[8];
    attn_rope rope = {.layout = ATTN_ROPE_HALF};
    attn_rope_frequencies(&rope, 16, 64, plain);
    rope.scaling = (attn_rope_scaling){.type = ATTN_ROPE_DYNAMIC, .factor = 2, .max_position_embeddings = 64};
    attn_rope_frequencies(&rope, 16, 64, within);
    attn_rope_frequencies(&rope, 16, 128, beyond);
    for (size_t i = 0; i < 8; i++)
        ck_assert_double_eq(within[i], plain[i]);
    /* theta (2 * 2 - 1)^(16 / 14): pair 7 turns 3 times as slowly, by the choice of the exponent */
    ck_assert_double_eq_tol(beyond[7], plain[7] / 3, 1e-15);
    ck_assert_double_eq(beyond[0], 1);
}
END_TEST

START_TEST(yarn_keeps_fast_pairs_and_divides_slow_ones)
{
    double w[32];
    attn_rope rope = {.layout = ATTN_ROPE_HALF};
    rope.scaling = (attn_rope_scaling){.type = ATTN_ROPE_YARN, .factor = 4, .original_max_position_embeddings = 4096};
    double gain = attn_rope_frequencies(&rope, 64, 5, w);
    ck_assert_double_eq_tol(gain, 0.1 * log(4) + 1, 1e-15);
    /* 32 turns in 4096 positions: pair 32 ln(4096 / 64 pi) / ln 10000 = 10.47; one turn: 22.51 */
    for (size_t i = 0; i < 32; i++) {
        double plain = pow(10000, -(double)i / 32), ramp = fmin(fmax(((double)i - 10) / 13, 0), 1);
        ck_assert_double_eq_tol(w[i], plain * (1 - ramp) + plain / 4 * ramp, 1e-15);
    }
    rope.scaling.mscale = 1;
    rope.scaling.mscale_all_dim = 0.5;
    ck_assert_double_eq_tol(attn_rope_frequencies(&rope, 64, 5, w), (0.1 * log(4) + 1) / (0.05 * log(4) + 1), 1e-15);
    rope.scaling.attention_factor = 1.25;
    ck_assert_double_eq(attn_rope_frequencies(&rope, 64, 5, w), 1.25);
}
END_TEST

START_TEST(longrope_has_two_lists)
{
    double w[8];
    test_scene scene = scene_create(ATTN_F64, 1);
    attn_tensor *few = scene_tensor(&scene, ATTN_F64, SHAPE(8)), *many = scene_tensor(&scene, ATTN_F64, SHAPE(8));
    memcpy(few->data, shorts, sizeof shorts);
    memcpy(many->data, longs, sizeof longs);
    attn_rope rope = {.layout = ATTN_ROPE_HALF};
    rope.scaling = (attn_rope_scaling){.type = ATTN_ROPE_LONGROPE,
                                       .original_max_position_embeddings = 16,
                                       .max_position_embeddings = 64,
                                       .short_factor = few,
                                       .long_factor = many};
    ck_assert_double_eq_tol(attn_rope_frequencies(&rope, 16, 16, w), sqrt(1.5), 1e-15); /* ln 4 / ln 16 = 1 / 2 */
    ck_assert_double_eq_tol(w[4], 0.01 / 2, 1e-17);
    attn_rope_frequencies(&rope, 16, 17, w);
    ck_assert_double_eq_tol(w[4], 0.01 / 5, 1e-17);
    scene_destroy(&scene);
}
END_TEST

START_TEST(llama3_mixes_between_two_wavelengths)
{
    double w[32];
    attn_rope rope = {.layout = ATTN_ROPE_HALF, .theta = 500000};
    rope.scaling = (attn_rope_scaling){.type = ATTN_ROPE_LLAMA3,
                                       .factor = 8,
                                       .low_freq_factor = 1,
                                       .high_freq_factor = 4,
                                       .original_max_position_embeddings = 8192};
    ck_assert_double_eq(attn_rope_frequencies(&rope, 64, 5, w), 1);
    for (size_t i = 0; i < 32; i++) {
        double plain = pow(500000, -(double)i / 32), turns = 8192 * plain / (2 * M_PI);
        double wanted = turns > 4 ? plain : turns < 1 ? plain / 8 : plain / 8 + (plain - plain / 8) * (turns - 1) / 3;
        ck_assert_double_eq_tol(w[i], wanted, 1e-15);
    }
}
END_TEST

START_TEST(proportional_leaves_the_last_pairs)
{
    double w[8];
    attn_rope rope = {.layout = ATTN_ROPE_HALF};
    rope.scaling =
        (attn_rope_scaling){.type = ATTN_ROPE_PROPORTIONAL, .partial_rotary_factor = 0.4, .factor = 2}; /* 3.2 pairs */
    attn_rope_frequencies(&rope, 16, 5, w);
    ck_assert_double_eq_tol(w[2], 0.1 / 2, 1e-17);
    for (size_t i = 3; i < 8; i++)
        ck_assert_double_eq(w[i], 0);
}
END_TEST

/* ---- the turn ---- */

START_TEST(scores_depend_on_distances_alone)
{
    test_scene scene = scene_create(ATTN_F64, 3);
    attn_rope *rope = &scene.request.options.rope;
    scene_attention(&scene, &(scene_size){1, 2, 2, 5, 5, 8, 4});
    rope->layout = ATTN_ROPE_INTERLEAVED;
    test_run here = run_kernel(&scene.request, NULL, WANT(SCORES));
    rope->query.positions = rope->key.positions =
        scene_integers(&scene, (const int64_t[]){100, 101, 102, 103, 104}, SHAPE(5));
    test_run there = run_kernel(&scene.request, NULL, WANT(SCORES));
    for (size_t at = 0; at < 2 * 5 * 5; at++) /* angles near 100 are rounded to 1e-14 */
        ck_assert_double_eq_tol(tensor_get(&there.result.step[ATTN_STEP_SCORES], at),
                                tensor_get(&here.result.step[ATTN_STEP_SCORES], at), 1e-12);
    run_release(&here);
    run_release(&there);
    scene_destroy(&scene);
}
END_TEST

/* ---- norms, caches, gates ---- */

/* Token by token with the cache of the step before, against all tokens at once. */
START_TEST(decoding_step_by_step_is_one_causal_pass)
{
    const size_t len = 9;
    test_scene scene = scene_create(ATTN_F64, 6);
    scene_layer(&scene, &(scene_size){2, 4, 2, len, len, 6, 5}, 12);
    scene.request.inputs.key = NULL;
    scene.request.options.rope.layout = ATTN_ROPE_HALF;
    scene.request.options.qk_norm = ATTN_NORM_RMS;
    scene.request.options.qk_norm_eps = 1e-6;
    scene.request.masks.causal = true;
    const attn_tensor *tokens = scene.request.inputs.query;
    test_run whole = run_kernel(&scene.request, NULL, WANT(OUTPUT));
    const attn_tensor *past_key = NULL, *past_value = NULL;
    for (size_t i = 0; i < len; i++) {
        attn_tensor *token = scene_tensor(&scene, ATTN_F64, SHAPE(2, 1, 12));
        for (size_t at = 0; at < 24; at++)
            tensor_set(token, at, tensor_get(tokens, (at / 12 * len + i) * 12 + at % 12));
        scene.request.inputs = (attn_inputs){.query = token, .past_key = past_key, .past_value = past_value};
        test_run step = run_kernel(&scene.request, NULL, WANT(OUTPUT) | WANT(PRESENT_KEY) | WANT(PRESENT_VALUE));
        for (size_t at = 0; at < 24; at++) /* the BLAS may sum a single row in another order */
            ck_assert_double_eq_tol(
                tensor_get(&step.result.step[ATTN_STEP_OUTPUT], at),
                tensor_get(&whole.result.step[ATTN_STEP_OUTPUT], (at / 12 * len + i) * 12 + at % 12), 1e-12);
        past_key = scene_copy(&scene, &step.result.step[ATTN_STEP_PRESENT_KEY]);
        past_value = scene_copy(&scene, &step.result.step[ATTN_STEP_PRESENT_VALUE]);
        run_release(&step);
    }
    run_release(&whole);
    scene_destroy(&scene);
}
END_TEST

START_TEST(the_past_is_copied_and_never_changed)
{
    const scene_size n = {2, 2, 1, 3, 200, 8, 5};
    test_scene scene = scene_create(ATTN_F32, 7);
    scene_attention(&scene, &n);
    scene_past(&scene, &n, 130);
    scene.request.options.rope.layout = ATTN_ROPE_HALF;
    test_run run = run_kernel(&scene.request, NULL, scene_every_step(&scene.request));
    for (size_t at = 0; at < 2 * 130 * 8; at++)
        ck_assert_double_eq(
            tensor_get(&run.result.step[ATTN_STEP_PRESENT_KEY], (at / 8 / 130 * 200 + at / 8 % 130) * 8 + at % 8),
            tensor_get(scene.request.inputs.past_key, at));
    run_release(&run);
    scene_destroy(&scene);
}
END_TEST

/* ---- refusals ---- */

static test_scene rope_scene(void)
{
    test_scene scene = scene_create(ATTN_F32, 1);
    scene_attention(&scene, &(scene_size){2, 4, 2, 3, 5, 8, 4});
    scene.request.options.rope.layout = ATTN_ROPE_HALF;
    scene.request.options.want = ROTATED;
    return scene;
}

START_TEST(numbers_of_rope_are_checked)
{
    test_scene scene = rope_scene();
    attn_request *request = &scene.request;
    attn_rope *rope = &request->options.rope;
    attn_rope_scaling *s = &rope->scaling;
    rope->dim = 5;
    expect_refusal(request, ATTN_ERR_VALUE, "options.rope.dim", "even");
    rope->dim = 10;
    expect_refusal(request, ATTN_ERR_VALUE, "options.rope.dim", "a head has 8 features");
    rope->dim = 0;
    rope->theta = 1;
    expect_refusal(request, ATTN_ERR_VALUE, "options.rope.theta", "above 1");
    rope->theta = 0;
    *s = (attn_rope_scaling){.type = ATTN_ROPE_LINEAR};
    expect_refusal(request, ATTN_ERR_FIELD, "options.rope.scaling.factor", "linear needs factor");
    s->factor = HUGE_VAL;
    expect_refusal(request, ATTN_ERR_VALUE, "options.rope.scaling.factor", "1e-30 to 1e30");
    s->factor = 1e-320; /* frequencies divided by it would be infinite */
    expect_refusal(request, ATTN_ERR_VALUE, "options.rope.scaling.factor", "1e-30 to 1e30");
    *s = (attn_rope_scaling){
        .type = ATTN_ROPE_YARN, .factor = 2, .original_max_position_embeddings = 8, .beta_slow = 1e300};
    expect_refusal(request, ATTN_ERR_VALUE, "options.rope.scaling.beta_slow", "1e-30 to 1e30");
    *s = (attn_rope_scaling){.type = ATTN_ROPE_LINEAR, .factor = 2, .beta_fast = 32};
    expect_refusal(request, ATTN_ERR_FIELD, "options.rope.scaling.beta_fast", "no meaning for scaling linear");
    *s = (attn_rope_scaling){.type = ATTN_ROPE_YARN, .factor = 2};
    expect_refusal(request, ATTN_ERR_FIELD, "options.rope.scaling.original_max_position_embeddings", "needs");
    *s = (attn_rope_scaling){.type = ATTN_ROPE_DYNAMIC, .factor = 2, .max_position_embeddings = 8};
    rope->dim = 2;
    expect_refusal(request, ATTN_ERR_VALUE, "options.rope.scaling.type", "more than 2");
    rope->dim = 0;
    *s = (attn_rope_scaling){.type = ATTN_ROPE_LLAMA3, .factor = 8, .original_max_position_embeddings = 8};
    expect_refusal(request, ATTN_ERR_FIELD, "options.rope.scaling.low_freq_factor", "needs low_freq_factor");
    s->low_freq_factor = s->high_freq_factor = 4;
    expect_refusal(request, ATTN_ERR_VALUE, "options.rope.scaling.high_freq_factor", "above low_freq_factor");
    *s = (attn_rope_scaling){.type = ATTN_ROPE_LONGROPE, .factor = 8, .original_max_position_embeddings = 8};
    expect_refusal(request, ATTN_ERR_FIELD, "options.rope.scaling.short_factor", "needs short_factor");
    s->short_factor = s->long_factor = scene_tensor(&scene, ATTN_F64, SHAPE(3));
    expect_refusal(request, ATTN_ERR_SHAPE, "options.rope.scaling.short_factor", "each of the 4 pairs");
    s->short_factor = s->long_factor = scene_tensor(&scene, ATTN_F64, SHAPE(4));
    expect_refusal(request, ATTN_ERR_VALUE, "options.rope.scaling.short_factor", "1e-30 to 1e30");
    *s = (attn_rope_scaling){.partial_rotary_factor = 1.5};
    expect_refusal(request, ATTN_ERR_VALUE, "options.rope.scaling.partial_rotary_factor", "at most 1");
    scene_destroy(&scene);
}
END_TEST

START_TEST(positions_and_tables_are_checked)
{
    test_scene scene = rope_scene();
    attn_request *request = &scene.request;
    attn_rope *rope = &request->options.rope;
    rope->query.positions = scene_integers(&scene, NULL, SHAPE(4));
    expect_refusal(request, ATTN_ERR_SHAPE, "options.rope.query.positions", "[4]");
    rope->query.positions = scene_integers(&scene, (const int64_t[]){INT64_MAX, 0, 0}, SHAPE(3));
    expect_refusal(request, ATTN_ERR_VALUE, "options.rope.query.positions", "2^53");
    rope->query.positions = NULL;
    rope->query.cos = scene_normal(&scene, 1, SHAPE(3, 4));
    expect_refusal(request, ATTN_ERR_FIELD, "options.rope.query.sin", "go together");
    rope->query.sin = scene_normal(&scene, 1, SHAPE(4, 4));
    expect_refusal(request, ATTN_ERR_SHAPE, "options.rope.query.sin", "[4,4]");
    rope->query.sin = scene_normal(&scene, 1, SHAPE(3, 4));
    rope->query.positions = scene_integers(&scene, (const int64_t[]){0, 3, 1}, SHAPE(3));
    expect_refusal(request, ATTN_ERR_VALUE, "options.rope.query.positions", "not among the 3 rows");
    rope->query.positions = NULL;
    rope->key.cos = rope->key.sin = scene_normal(&scene, 1, SHAPE(5, 4));
    rope->theta = 500;
    expect_refusal(request, ATTN_ERR_FIELD, "options.rope.theta", "nothing for theta");
    scene_destroy(&scene);
}
END_TEST

START_TEST(caches_norms_and_gates_are_checked)
{
    test_scene scene = rope_scene();
    attn_request *request = &scene.request;
    request->inputs.past_key = scene_normal(&scene, 1, SHAPE(2, 2, 7, 8));
    expect_refusal(request, ATTN_ERR_FIELD, "inputs.past_value", "go together");
    request->inputs.past_value = scene_normal(&scene, 1, SHAPE(2, 2, 6, 4));
    expect_refusal(request, ATTN_ERR_SHAPE, "inputs.past_value", "(batch, kv_heads, past_len, d)");
    request->inputs.past_value = scene_normal(&scene, 1, SHAPE(2, 2, 7, 4));
    request->inputs.past_key = scene_normal(&scene, 1, SHAPE(2, 4, 7, 8));
    expect_refusal(request, ATTN_ERR_SHAPE, "inputs.past_key", "2, 2, 7, 8");
    request->inputs.past_key = request->inputs.past_value = NULL;
    request->options.rope.layout = ATTN_ROPE_NONE;
    expect_refusal(request, ATTN_ERR_FIELD, "options.want", "need options.rope or qk_norm");
    request->options.qk_norm = ATTN_NORM_RMS;
    request->options.qk_norm_eps = -1;
    expect_refusal(request, ATTN_ERR_VALUE, "options.qk_norm_eps", "0 or more");
    request->options.qk_norm_eps = 0;
    request->weights.query_norm.weight = scene_normal(&scene, 1, SHAPE(8));
    expect_refusal(request, ATTN_ERR_FIELD, "weights", "multi-head attention");
    scene_destroy(&scene);
    scene = scene_create(ATTN_F32, 1);
    request = &scene.request;
    scene_layer(&scene, &(scene_size){2, 4, 2, 3, 5, 8, 4}, 12);
    request->options.want = WANT(GATED);
    expect_refusal(request, ATTN_ERR_FIELD, "options.want", "needs weights.gate");
    request->weights.gate.weight = scene_normal(&scene, 1, SHAPE(12, 8));
    expect_refusal(request, ATTN_ERR_SHAPE, "weights.gate.weight", "expected 4 (d_v), or 1");
    request->weights.gate.weight = scene_normal(&scene, 1, SHAPE(12, 4));
    request->weights.key_norm.weight = scene_normal(&scene, 1, SHAPE(8));
    expect_refusal(request, ATTN_ERR_FIELD, "weights.key_norm.weight", "needs options.qk_norm");
    request->options.qk_norm = ATTN_NORM_RMS;
    request->weights.key_norm.weight = scene_normal(&scene, 1, SHAPE(9));
    expect_refusal(request, ATTN_ERR_SHAPE, "weights.key_norm.weight", "[9]");
    scene_destroy(&scene);
}
END_TEST

CHECK_MAIN("rope")
{
    tcase_add_test(tests, linear_divides_every_frequency);
    tcase_add_test(tests, dynamic_grows_theta_beyond_the_trained_length_alone);
    tcase_add_test(tests, yarn_keeps_fast_pairs_and_divides_slow_ones);
    tcase_add_test(tests, longrope_has_two_lists);
    tcase_add_test(tests, llama3_mixes_between_two_wavelengths);
    tcase_add_test(tests, proportional_leaves_the_last_pairs);
    tcase_add_test(tests, scores_depend_on_distances_alone);
    tcase_add_test(tests, decoding_step_by_step_is_one_causal_pass);
    tcase_add_test(tests, the_past_is_copied_and_never_changed);
    tcase_add_test(tests, numbers_of_rope_are_checked);
    tcase_add_test(tests, positions_and_tables_are_checked);
    tcase_add_test(tests, caches_norms_and_gates_are_checked);
}
