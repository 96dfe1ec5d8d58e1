/*
 * test_layer.c: tests core/src/layer/run.c and the kernels below it, through attn_plan_run, against equation 1.
 * test_vectors.c compares whole layers with the reference in Python.
 */
#include "attn/multihead.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "check_main.h"
#include "closeness.h"
#include "mask_cases.h"
#include "naive_attention.h"
#include "scene.h"

static const char *describe(const scene_size *n, attn_dtype type, const char *mask, const char *kernel)
{
    static char text[200];
    snprintf(text, sizeof text, "(%zu, %zu/%zu, %zu, %zu, %zu, %zu) %s, %s, %s", n->batch, n->heads, n->kv_heads,
             n->q_len, n->kv_len, n->d_k, n->d_v, attn_dtype_name(type), mask, kernel);
    return text;
}

/* Every step of the request, by every kernel of this machine, against the naive result. */
static void expect_all_kernels_close(const test_scene *scene, const scene_size *n, const char *mask)
{
    naive_result naive = naive_attention(&scene->request, NULL);
    const attn_kernel *kernel;
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
        test_run run = run_kernel(&scene->request, kernel, scene_every_step(&scene->request));
        expect_close(&run, &naive, describe(n, scene->type, mask, attn_kernel_name(kernel)));
        run_release(&run);
    }
    naive_release(&naive);
}

static void try_mask(const scene_size *n, const mask_case *mask, attn_dtype type, uint64_t seed)
{
    test_scene scene = scene_create(type, seed);
    scene_attention(&scene, n);
    mask->apply(&scene, n);
    expect_all_kernels_close(&scene, n, mask->name);
    scene_destroy(&scene);
}

/* Sizes 1, odd, prime, unequal; lengths around 512 keys and 48 queries, where kernels cut; more keys than queries. */
static const scene_size shapes[] = {
    {1, 1, 1, 1, 1, 1, 1},     {1, 1, 1, 1, 1, 64, 64},     {1, 1, 1, 1, 2, 3, 1},      {2, 3, 3, 5, 7, 3, 7},
    {1, 2, 2, 9, 13, 7, 16},   {2, 2, 1, 8, 8, 16, 17},     {3, 6, 2, 4, 31, 17, 3},    {1, 1, 1, 47, 47, 65, 80},
    {1, 2, 2, 48, 48, 64, 64}, {1, 1, 1, 49, 97, 80, 65},   {1, 4, 2, 97, 49, 16, 128}, {2, 1, 1, 3, 511, 64, 64},
    {1, 2, 1, 6, 512, 65, 7},  {1, 1, 1, 7, 513, 128, 128}, {1, 1, 1, 2, 1030, 80, 64}, {1, 3, 3, 1, 1030, 17, 65},
    {1, 1, 1, 97, 1030, 3, 1}, {5, 1, 1, 1, 3, 64, 16},     {1, 8, 1, 2, 15, 32, 33},   {1, 1, 1, 50, 600, 1, 3},
};

/* The work of one shape, so that big ones get fewer masks and either type in turn: the table has to take seconds. */
static size_t pairs(const scene_size *n)
{
    return n->batch * n->heads * n->q_len * n->kv_len;
}

START_TEST(every_shape_meets_equation_1)
{
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int type = ATTN_F32; type <= ATTN_F64; type++)
            try_mask(&shapes[s], mask_case_at(0), (attn_dtype)type, s);
}
END_TEST

START_TEST(every_mask_meets_equation_1_on_small_shapes)
{
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (size_t c = 1 + s % one_in(7); mask_case_at(c) != NULL && pairs(&shapes[s]) <= 4000; c += one_in(7))
            for (int type = ATTN_F32; type <= ATTN_F64; type++)
                if (pairs(&shapes[s]) <= 1000 || (int)((c + s) % 2) == type)
                    try_mask(&shapes[s], mask_case_at(c), (attn_dtype)type, 100 * c + s);
}
END_TEST

/* Lengths of several tiles: each mask on one of these. */
START_TEST(every_mask_meets_equation_1_across_tiles)
{
    static const scene_size tiled[] = {{1, 2, 1, 5, 1030, 8, 5}, {2, 1, 1, 50, 520, 5, 9}, {1, 1, 1, 97, 530, 3, 16}};
    for (size_t c = 0; mask_case_at(c) != NULL; c++)
        for (size_t type = ATTN_F32 + c % one_in(2); type <= ATTN_F64; type += one_in(2))
            try_mask(&tiled[c % 3], mask_case_at(c), (attn_dtype)type, 1000 + c);
}
END_TEST

START_TEST(composed_masks_meet_equation_1_with_many_seeds)
{
    static const scene_size many[] = {{2, 4, 2, 11, 37, 4, 3}, {3, 1, 1, 50, 70, 2, 2}};
    for (uint64_t seed = 0; seed < 60; seed++)
        try_mask(&many[seed % 2], mask_case_composed(), seed % 3 == 0 ? ATTN_F64 : ATTN_F32, seed);
}
END_TEST

START_TEST(no_keys_at_all_give_empty_rows)
{
    const scene_size n = {2, 2, 2, 3, 0, 4, 5};
    for (int type = ATTN_F32; type <= ATTN_F64; type++)
        try_mask(&n, mask_case_at(0), (attn_dtype)type, 3);
}
END_TEST

START_TEST(no_queries_give_empty_outputs)
{
    const scene_size n = {2, 2, 2, 0, 3, 4, 5};
    try_mask(&n, mask_case_at(0), ATTN_F32, 3);
}
END_TEST

START_TEST(an_empty_batch_gives_empty_outputs)
{
    const scene_size n = {0, 2, 2, 2, 3, 4, 5};
    try_mask(&n, mask_case_at(0), ATTN_F32, 3);
}
END_TEST

/* ---- options ---- */

static const scene_size plain = {2, 2, 1, 50, 70, 16, 8};

START_TEST(scale_may_be_any_finite_number)
{
    const double scales[] = {0, 1, -1, 0.3, 1e-30, -2.5, 20};
    for (size_t s = 0; s < sizeof scales / sizeof *scales; s++)
        for (int type = ATTN_F32; type <= ATTN_F64; type++) {
            test_scene scene = scene_create((attn_dtype)type, s);
            scene_attention(&scene, &plain);
            scene.request.options.has_scale = true;
            scene.request.options.scale = scales[s];
            mask_case_composed()->apply(&scene, &plain);
            expect_all_kernels_close(&scene, &plain, "scale");
            scene_destroy(&scene);
        }
}
END_TEST

START_TEST(softcap_bends_the_scaled_scores)
{
    const double caps[] = {0.5, 2, 30, 1e6};
    for (size_t c = 0; c < sizeof caps / sizeof *caps; c++)
        for (int type = ATTN_F32; type <= ATTN_F64; type++) {
            test_scene scene = scene_create((attn_dtype)type, c);
            scene_attention(&scene, &plain);
            scene.request.options.softcap = caps[c];
            scene.request.masks.causal = true;
            scene.request.masks.bias = scene_normal(&scene, 1, SHAPE(plain.q_len, plain.kv_len));
            naive_result naive = naive_attention(&scene.request, NULL);
            const attn_kernel *kernel;
            for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
                test_run run = run_kernel(&scene.request, kernel, scene_every_step(&scene.request));
                /* With c of 1e6, tanh as 1 - 2 / (e^2x + 1) would be off by 0.06: a good softcap is not. */
                naive.softcap = fmin(caps[c], 8);
                expect_close(&run, &naive, "softcap");
                run_release(&run);
            }
            naive_release(&naive);
            scene_destroy(&scene);
        }
}
END_TEST

/* Scores of hundreds: without the maximum subtracted, exp would overflow; with it, most weights underflow. */
START_TEST(softmax_survives_scores_far_from_zero)
{
    for (int type = ATTN_F32; type <= ATTN_F64; type++) {
        test_scene scene = scene_create((attn_dtype)type, 5);
        scene_attention(&scene, &plain);
        scene.request.options.has_scale = true;
        scene.request.options.scale = 400;
        expect_all_kernels_close(&scene, &plain, "huge scores");
        scene.request.masks.bias = scene_normal(&scene, 0, SHAPE(plain.kv_len));
        for (size_t j = 0; j < plain.kv_len; j++)
            tensor_set((attn_tensor *)(uintptr_t)scene.request.masks.bias, j, -10000);
        scene.request.options.scale = 0.25;
        expect_all_kernels_close(&scene, &plain, "scores far below zero");
        scene_destroy(&scene);
    }
}
END_TEST

/* Some callers hide keys with the lowest finite number. If it hides all keys of a row, they share the weight evenly. */
START_TEST(the_lowest_finite_bias_on_every_key_gives_even_weights)
{
    const scene_size n = {1, 1, 1, 3, 600, 4, 4};
    for (int type = ATTN_F32; type <= ATTN_F64; type++) {
        test_scene scene = scene_create((attn_dtype)type, 6);
        scene_attention(&scene, &n);
        attn_tensor *bias = scene_tensor(&scene, scene.type, SHAPE(1));
        tensor_set(bias, 0, type == ATTN_F32 ? (double)-FLT_MAX : -DBL_MAX);
        scene.request.masks.bias = bias;
        const attn_kernel *kernel;
        for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
            test_run run = run_kernel(&scene.request, kernel, scene_every_step(&scene.request));
            for (size_t at = 0; at < n.q_len * n.kv_len; at++)
                ck_assert_double_eq_tol(tensor_get(&run.result.step[ATTN_STEP_ATTENTION], at), 1 / 600.0, 1e-9);
            ck_assert_uint_eq(run.result.rows_without_keys, 0);
            run_release(&run);
        }
        scene_destroy(&scene);
    }
}
END_TEST

START_TEST(rows_without_keys_are_listed_in_order)
{
    const scene_size n = {2, 2, 2, 3, 4, 4, 4};
    test_scene scene = scene_create(ATTN_F32, 7);
    scene_attention(&scene, &n);
    scene.request.masks.query_lengths = scene_integers(&scene, (const int64_t[]){3, 1}, SHAPE(2));
    test_run run = run_kernel(&scene.request, NULL, ATTN_STEP_BIT(ATTN_STEP_OUTPUT));
    const attn_row expected[] = {{1, 0, 1}, {1, 0, 2}, {1, 1, 1}, {1, 1, 2}};
    ck_assert_uint_eq(run.result.rows_without_keys, 4);
    ck_assert_uint_eq(run.result.empty_rows_listed, 4);
    for (size_t row = 0; row < 4; row++) {
        ck_assert_uint_eq(run.result.empty_rows[row].b, expected[row].b);
        ck_assert_uint_eq(run.result.empty_rows[row].h, expected[row].h);
        ck_assert_uint_eq(run.result.empty_rows[row].i, expected[row].i);
    }
    run_release(&run);
    scene_destroy(&scene);
}
END_TEST

START_TEST(no_more_than_the_first_4096_empty_rows_are_listed)
{
    const scene_size n = {1, 2, 2, 2500, 1, 1, 1};
    test_scene scene = scene_create(ATTN_F32, 7);
    scene_attention(&scene, &n);
    scene.request.masks.attend = scene_coins(&scene, 0, SHAPE(1));
    test_run run = run_kernel(&scene.request, NULL, ATTN_STEP_BIT(ATTN_STEP_OUTPUT));
    ck_assert_uint_eq(run.result.rows_without_keys, 5000);
    ck_assert_uint_eq(run.result.empty_rows_listed, ATTN_EMPTY_ROWS_LISTED);
    ck_assert_uint_eq(run.result.empty_rows[4095].h, 1);
    ck_assert_uint_eq(run.result.empty_rows[4095].i, 1595);
    run_release(&run);
    scene_destroy(&scene);
}
END_TEST

/* ---- ranks and inputs that are left out ---- */

START_TEST(rank_2_is_one_sequence_without_the_batch_axis)
{
    test_scene scene = scene_create(ATTN_F32, 2);
    scene_layer(&scene, &(scene_size){1, 2, 2, 5, 7, 4, 4}, 8);
    test_run with_batch =
        run_kernel(&scene.request, NULL, ATTN_STEP_BIT(ATTN_STEP_OUTPUT) | ATTN_STEP_BIT(ATTN_STEP_ATTENTION));
    attn_tensor query = attn_tensor_view(scene.request.inputs.query->data, ATTN_F32, SHAPE(5, 8));
    attn_tensor key = attn_tensor_view(scene.request.inputs.key->data, ATTN_F32, SHAPE(7, 8));
    scene.request.inputs = (attn_inputs){.query = &query, .key = &key};
    test_run run =
        run_kernel(&scene.request, NULL, ATTN_STEP_BIT(ATTN_STEP_OUTPUT) | ATTN_STEP_BIT(ATTN_STEP_ATTENTION));
    ck_assert_int_eq(run.result.step[ATTN_STEP_OUTPUT].rank, 2);
    ck_assert_uint_eq(run.result.step[ATTN_STEP_OUTPUT].shape[0], 5);
    ck_assert_int_eq(run.result.step[ATTN_STEP_ATTENTION].rank, 4);
    for (size_t at = 0; at < 5 * 8; at++)
        ck_assert(tensor_get(&run.result.step[ATTN_STEP_OUTPUT], at) ==
                  tensor_get(&with_batch.result.step[ATTN_STEP_OUTPUT], at));
    run_release(&with_batch);
    run_release(&run);
    scene_destroy(&scene);
}
END_TEST

/* Rank 3 and 2 without a layer: num_heads cuts the features. */
START_TEST(attention_of_rank_3_and_2_splits_features_into_heads)
{
    for (int rank = 2; rank <= 3; rank++)
        for (int type = ATTN_F32; type <= ATTN_F64; type++) {
            test_scene scene = scene_create((attn_dtype)type, 3);
            const size_t skip = rank == 2, batch = rank == 2 ? 1 : 2;
            const size_t q[] = {batch, 50, 4 * 8}, k[] = {batch, 70, 2 * 8}, v[] = {batch, 70, 2 * 5};
            scene.request.inputs = (attn_inputs){.query = scene_normal(&scene, 1, rank, q + skip),
                                                 .key = scene_normal(&scene, 1, rank, k + skip),
                                                 .value = scene_normal(&scene, 1, rank, v + skip)};
            scene.request.options.num_heads = 4;
            scene.request.options.kv_num_heads = 2;
            const scene_size n = {batch, 4, 2, 50, 70, 8, 5};
            mask_case_composed()->apply(&scene, &n);
            expect_all_kernels_close(&scene, &n, "split features");
            scene_destroy(&scene);
        }
}
END_TEST

START_TEST(a_missing_key_is_the_query_and_a_missing_value_the_key)
{
    const scene_size n = {2, 3, 3, 6, 6, 5, 5};
    test_scene scene = scene_create(ATTN_F32, 3);
    scene_attention(&scene, &n);
    scene.request.inputs.value = NULL;
    expect_all_kernels_close(&scene, &n, "value from key");
    scene.request.inputs.key = NULL;
    expect_all_kernels_close(&scene, &n, "self-attention");
    scene_destroy(&scene);
}
END_TEST

/* ---- two layers as they are used ---- */

START_TEST(padded_batch_of_two_sentences)
{
    const scene_size n = {2, 8, 8, 5, 5, 8, 8};
    test_scene scene = scene_create(ATTN_F32, 11);
    scene_layer(&scene, &n, 64);
    scene.request.inputs.key = NULL;
    attn_tensor *padding = scene_coins(&scene, 1, SHAPE(2, 5));
    tensor_set(padding, 3, 0);
    tensor_set(padding, 4, 0);
    tensor_set(padding, 9, 0);
    scene.request.masks.padding = padding;
    test_run run = run_kernel(&scene.request, NULL, ATTN_STEP_BIT(ATTN_STEP_ATTENTION));
    const attn_tensor *map = &run.result.step[ATTN_STEP_ATTENTION];
    ck_assert_int_eq(map->rank, 4);
    ck_assert(map->shape[0] == 2 && map->shape[1] == 8 && map->shape[2] == 5 && map->shape[3] == 5);
    for (size_t row = 0; row < 2 * 8 * 5; row++) {
        double sum = 0;
        for (size_t j = 0; j < 5; j++)
            sum += tensor_get(map, row * 5 + j);
        ck_assert_double_eq_tol(sum, 1, 20 * 0x1p-23);
        ck_assert(tensor_get(map, row * 5 + 4) == 0);
    }
    run_release(&run);
    scene_destroy(&scene);
}
END_TEST

START_TEST(decoder_layer_of_the_paper)
{
    const scene_size n = {2, 8, 8, 10, 10, 64, 64};
    test_scene scene = scene_create(ATTN_F32, 12);
    scene_layer(&scene, &n, 512);
    scene.request.inputs.key = NULL;
    scene.request.masks.causal = true;
    scene.request.options.residual = true;
    test_run run = run_kernel(&scene.request, NULL, scene_every_step(&scene.request));
    const attn_tensor *map = &run.result.step[ATTN_STEP_ATTENTION];
    for (size_t row = 0; row < 2 * 8 * 10; row++)
        for (size_t j = row % 10 + 1; j < 10; j++)
            ck_assert(tensor_get(map, row * 10 + j) == 0);
    run_release(&run);
    scene_destroy(&scene);
}
END_TEST

/* ---- latents ---- */

static attn_tensor *flat(test_scene *scene, size_t in, size_t out)
{
    return scene_normal(scene, 1, SHAPE(in, out));
}

static test_scene scene_of_latents(attn_dtype type, const scene_size *n, size_t parts)
{
    test_scene scene = scene_create(type, 40 + parts);
    scene_layer(&scene, n, 6);
    scene_latents(&scene, n, 6, parts);
    return scene;
}

/* Many tokens and few, so that tasks of tokens end within an item and behind it. */
START_TEST(latents_have_the_same_bytes_on_threads_and_alone)
{
    static const scene_size sizes[] = {{2, 4, 2, 5, 7, 4, 2}, {3, 2, 2, 70, 71, 3, 5}};
    attn_pool *pool = attn_pool_create(&(attn_pool_options){.threads = 3}, NULL);
    ck_assert_ptr_nonnull(pool);
    attn_runtime shared = attn_pool_runtime(pool, NULL);
    for (size_t s = 0; s < COUNT(sizes); s++) {
        test_scene scene = scene_of_latents(s == 0 ? ATTN_F64 : ATTN_F32, &sizes[s], (size_t)_i);
        const attn_steps every = scene_every_step(&scene.request), alone = WANT(OUTPUT) | (every & WANT(KEY_LATENT));
        test_run serial = run_kernel(&scene.request, NULL, every), less = run_kernel(&scene.request, NULL, alone);
        scene.request.options.want = every;
        test_run spread = run_request(&scene.request, &shared);
        expect_same_steps(&serial, &spread, every, "threads");
        expect_same_steps(&serial, &less, alone, "fewer steps");
        run_release(&spread);
        run_release(&less);
        run_release(&serial);
        scene_destroy(&scene);
    }
    attn_pool_destroy(pool);
}
END_TEST

/* Every head has the same last features, those of the token, which alone are turned. */
START_TEST(shared_features_stand_behind_those_of_each_head)
{
    const scene_size n = {1, 2, 2, 3, 3, 4, 2};
    test_scene scene = scene_of_latents(ATTN_F64, &n, 7);
    test_run run = run_kernel(&scene.request, NULL, WANT(K) | WANT(K_ROTATED));
    const attn_tensor *k = &run.result.step[ATTN_STEP_K], *turned = &run.result.step[ATTN_STEP_K_ROTATED];
    for (size_t at = 0; at < 12; at++) {
        const bool is_own = at % 4 == 0, is_turned = (at % 4 == 1 || at % 4 == 2) && at >= 4; /* position 0 stays */
        ck_assert((tensor_get(k, at) == tensor_get(k, 12 + at)) == !is_own);
        ck_assert((tensor_get(k, at) == tensor_get(turned, at)) == !is_turned);
    }
    run_release(&run);
    scene_destroy(&scene);
}
END_TEST

START_TEST(latents_that_do_not_fit_are_refused)
{
    const scene_size n = {1, 2, 2, 3, 3, 4, 2};
    test_scene scene = scene_of_latents(ATTN_F64, &n, 7);
    attn_request *request = &scene.request, whole = scene.request;
    request->weights.query_latent.weight = flat(&scene, 5, 5);
    expect_refusal(request, ATTN_ERR_SHAPE, "weights.query_latent.weight", "inputs.query has 6 features");
    *request = whole;
    request->weights.query.weight = flat(&scene, 6, 8);
    expect_refusal(request, ATTN_ERR_SHAPE, "weights.query.weight", "weights.query_latent has 5 features");
    *request = whole;
    request->weights.key_latent_norm.weight = scene_normal(&scene, 1, SHAPE(2));
    expect_refusal(request, ATTN_ERR_SHAPE, "weights.key_latent_norm.weight", "3");
    *request = whole;
    request->options.latent_norm = ATTN_NORM_NONE;
    expect_refusal(request, ATTN_ERR_FIELD, "weights.query_latent_norm.weight", "options.latent_norm");
    *request = whole;
    request->options.latent_norm_eps = -1;
    expect_refusal(request, ATTN_ERR_VALUE, "options.latent_norm_eps", "0 or more");
    *request = whole;
    request->weights.key_shared.weight = flat(&scene, 6, 2);
    expect_refusal(request, ATTN_ERR_SHAPE, "weights.key.weight", "together expected 4 as query gives");
    *request = whole;
    request->options.rope.dim = 4;
    expect_refusal(request, ATTN_ERR_VALUE, "options.rope.dim", "weights.key_shared gives 3 features");
    *request = whole;
    request->options.want = WANT(KEY_LATENT);
    request->weights.key_latent = request->weights.key_latent_norm = (attn_affine){NULL, NULL};
    request->weights.key.weight = flat(&scene, 6, 2);
    request->weights.value.weight = flat(&scene, 6, 4);
    expect_refusal(request, ATTN_ERR_FIELD, "options.want", "needs weights.key_latent");
    scene_destroy(&scene);
}
END_TEST

CHECK_MAIN("multihead")
{
    tcase_add_test(tests, every_shape_meets_equation_1);
    tcase_add_test(tests, every_mask_meets_equation_1_on_small_shapes);
    tcase_add_test(tests, every_mask_meets_equation_1_across_tiles);
    tcase_add_test(tests, composed_masks_meet_equation_1_with_many_seeds);
    tcase_add_test(tests, no_keys_at_all_give_empty_rows);
    tcase_add_test(tests, no_queries_give_empty_outputs);
    tcase_add_test(tests, an_empty_batch_gives_empty_outputs);
    tcase_add_test(tests, scale_may_be_any_finite_number);
    tcase_add_test(tests, softcap_bends_the_scaled_scores);
    tcase_add_test(tests, softmax_survives_scores_far_from_zero);
    tcase_add_test(tests, the_lowest_finite_bias_on_every_key_gives_even_weights);
    tcase_add_test(tests, rows_without_keys_are_listed_in_order);
    tcase_add_test(tests, no_more_than_the_first_4096_empty_rows_are_listed);
    tcase_add_test(tests, rank_2_is_one_sequence_without_the_batch_axis);
    tcase_add_test(tests, attention_of_rank_3_and_2_splits_features_into_heads);
    tcase_add_test(tests, a_missing_key_is_the_query_and_a_missing_value_the_key);
    tcase_add_test(tests, padded_batch_of_two_sentences);
    tcase_add_test(tests, decoder_layer_of_the_paper);
    tcase_add_loop_test(tests, latents_have_the_same_bytes_on_threads_and_alone, 1, 8);
    tcase_add_test(tests, shared_features_stand_behind_those_of_each_head);
    tcase_add_test(tests, latents_that_do_not_fit_are_refused);
}
