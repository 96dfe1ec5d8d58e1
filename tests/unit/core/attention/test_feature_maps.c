/*
 * test_feature_maps.c: tests core/src/attention/feature_maps.c and core/src/formulas/features.c: attention by feature
 * maps against sums over all pairs.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attn/mechanism.h"
#include "check_main.h"
#include "closeness.h"
#include "mask_cases.h"
#include "naive_attention.h"
#include "scene.h"

static void give_mechanism(test_scene *scene, const scene_size *n, size_t variant)
{
    attn_mechanism *m = &scene->request.options.mechanism;
    *m = (attn_mechanism){.type = variant % 2 == 0 ? ATTN_LINEAR : ATTN_PERFORMER, .eps = variant % 3 == 0 ? 1e-4 : 0};
    if (m->type == ATTN_PERFORMER)
        m->projection = scene_normal(scene, 1, SHAPE(12, n->d_k));
    else if (variant % 8 == 4) {
        m->is_identity = m->is_unnormalised = true;
        m->eps = 0;
    }
}

/*
 * docs/accuracy.md derives 195 roundings. Features of performer are e^x with x = P s - |s|^2 / 2 - c: sums of d_k + 3
 * roundings of numbers whose sizes add up to 20, in a query and a key. many is for the reference, whose plain sums are in
 * double.
 */
static void expect_of_kernel(const test_scene *scene, const scene_size *n, const naive_result *naive,
                             const attn_kernel *kernel, const char *what)
{
    const attn_request *request = &scene->request;
    test_run run = run_kernel(request, kernel, WANT(ATTENTION) | WANT(OUTPUT) | WANT(ATTENTION_MEAN));
    const double roundings = request->options.mechanism.type == ATTN_LINEAR ? 195 : 195 + 40 * (double)(n->d_k + 3);
    const double u = unit_roundoff(scene->type), many = 16 * (double)(n->kv_len + n->d_k) * 0x1p-53;
    const attn_step steps[] = {ATTN_STEP_ATTENTION, ATTN_STEP_OUTPUT, ATTN_STEP_ATTENTION_MEAN};
    for (size_t s = 0; s < 3; s++)
        for (size_t at = 0; at < attn_tensor_count(&run.result.step[steps[s]]); at++) {
            const double wanted = naive->step[steps[s]][at], got = tensor_get(&run.result.step[steps[s]], at);
            double size = fabs(wanted);
            if (steps[s] == ATTN_STEP_OUTPUT)
                size = naive->terms[ATTN_STEP_CONTEXT][at] + 1;
            else if (request->options.mechanism.is_identity) /* weights are sums of either sign */
                size += 8;
            if (!(fabs(got - wanted) <= (roundings * u + many) * (size + 1e-3)))
                ck_abort_msg("%s, %s: %s[%zu] is %.17g, not %.17g", what, attn_kernel_name(kernel),
                             attn_step_name(steps[s]), at, got, wanted);
        }
    ck_assert_uint_eq(run.result.rows_without_keys, naive->rows_without_keys);
    test_run by_heads = run_kernel(request, kernel, WANT(OUTPUT)); /* without maps, tile of keys by tile */
    expect_same_steps(&by_heads, &run, WANT(OUTPUT), what);
    run_release(&by_heads);
    run_release(&run);
}

static void expect_feature_attention(const test_scene *scene, const scene_size *n, const char *what)
{
    naive_result naive = naive_attention(&scene->request, NULL);
    const attn_kernel *kernel;
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++)
        expect_of_kernel(scene, n, &naive, kernel, what);
    naive_release(&naive);
}

START_TEST(every_mask_is_as_the_sums_over_pairs)
{
    const scene_size sizes[] = {{2, 4, 2, 9, 13, 6, 5}, {1, 2, 1, 1, 600, 4, 3}, {1, 2, 2, 140, 300, 3, 7}};
    for (size_t mask = 0; mask_case_at(mask) != NULL; mask++)
        for (size_t variant = mask % one_in(5); variant < 6; variant += one_in(5)) {
            const scene_size *n = &sizes[(variant + mask / 3) % 3];
            char what[96];
            snprintf(what, sizeof what, "%s, variant %zu", mask_case_at(mask)->name, variant);
            test_scene scene = scene_create(variant % 3 ? ATTN_F64 : ATTN_F32, mask);
            scene_attention(&scene, n);
            mask_case_at(mask)->apply(&scene, n);
            scene.request.masks.bias = NULL;
            give_mechanism(&scene, n, variant);
            expect_feature_attention(&scene, n, what);
            scene_destroy(&scene);
        }
}
END_TEST

/* More keys than a split of sums has, more features than a register tile, and a last panel that is half a panel. */
START_TEST(blocks_of_keys_are_joined)
{
    const scene_size sizes[] = {{1, 2, 1, 5, 2000, 40, 35}, {1, 1, 1, 530, 530, 70, 32}, {1, 1, 1, 3, 1000, 300, 3}};
    for (size_t variant = 0; variant < 12; variant += one_in(7)) {
        const scene_size *n = &sizes[variant % 3];
        test_scene scene = scene_create(variant % 2 ? ATTN_F64 : ATTN_F32, variant);
        scene_attention(&scene, n);
        scene.request.masks.causal = variant >= 6;
        give_mechanism(&scene, n, variant / 3);
        if (scene.request.options.mechanism.type == ATTN_PERFORMER) {
            scene.request.options.has_scale = true;
            scene.request.options.scale = variant < 6 ? -0.1 : 0.1;
        }
        expect_feature_attention(&scene, n, variant < 6 ? "no mask" : "causal");
        scene_destroy(&scene);
    }
}
END_TEST

static attn_tensor *output_of(test_run *run)
{
    return &run->result.step[ATTN_STEP_OUTPUT];
}

/* Key 100 has a value that is not finite. Only queries 100 and later may attend to it. */
START_TEST(values_that_are_not_finite_stay_in_the_rows_that_see_them)
{
    enum { KEY = 100 };
    const scene_size n = {1, 2, 1, 150, 150, 6, 5};
    for (size_t variant = 0; variant < 8; variant++) {
        test_scene scene = scene_create(variant % 2 ? ATTN_F64 : ATTN_F32, variant);
        scene_attention(&scene, &n);
        give_mechanism(&scene, &n, variant / 2 % 2);
        attn_tensor *attend = scene_tensor(&scene, ATTN_BOOL, SHAPE(n.q_len, n.kv_len));
        for (size_t i = 0; i < n.q_len; i++)
            for (size_t j = 0; j < n.kv_len; j++)
                tensor_set(attend, i * n.kv_len + j, j <= i);
        scene.request.masks.causal = variant < 4;
        scene.request.masks.attend = variant < 4 ? NULL : attend;
        test_run before = run_kernel(&scene.request, NULL, WANT(OUTPUT));
        attn_tensor *value = scene_copy(&scene, scene.request.inputs.value);
        tensor_set(value, KEY * n.d_v + 2, INFINITY);
        scene.request.inputs.value = value;
        test_run after = run_kernel(&scene.request, NULL, WANT(OUTPUT));
        for (size_t at = 0; at < attn_tensor_count(output_of(&after)); at++) {
            const double got = tensor_get(output_of(&after), at);
            const double wanted = tensor_get(output_of(&before), at);
            if (at / n.d_v % n.q_len < KEY)
                ck_assert_double_eq(got, wanted);
            else if (at % n.d_v == 2)
                ck_assert(!isfinite(got));
            else /* the value is added apart: another order of the sum; 195 u in float is 1.2e-5 */
                ck_assert_double_eq_tol(got, wanted, 1e-5);
        }
        run_release(&before);
        run_release(&after);
        scene_destroy(&scene);
    }
}
END_TEST

START_TEST(asking_for_weights_and_threads_changes_no_byte)
{
    const scene_size n = {2, 4, 2, 150, 530, 6, 5};
    for (size_t variant = 0; variant < 8; variant++) { /* three threads share a head, two take a head each */
        attn_pool *pool = attn_pool_create(&(attn_pool_options){.threads = variant < 4 ? 3 : 2}, NULL);
        test_scene scene = scene_create(ATTN_F32, variant);
        scene_attention(&scene, &n);
        scene.request.masks.causal = variant % 4 < 2;
        if (variant % 4 == 3)
            scene.request.masks.attend = scene_coins(&scene, 0.5, SHAPE(n.q_len, n.kv_len));
        give_mechanism(&scene, &n, variant);
        scene.request.options.want = WANT(OUTPUT);
        attn_runtime threads = attn_pool_runtime(pool, attn_kernel_best());
        test_run alone = run_request(&scene.request, &threads);
        test_run all = run_kernel(&scene.request, NULL, scene_every_step(&scene.request));
        expect_same_steps(&alone, &all, WANT(OUTPUT), "output alone, on threads");
        run_release(&alone);
        run_release(&all);
        scene_destroy(&scene);
        attn_pool_destroy(pool);
    }
}
END_TEST

START_TEST(hidden_keys_are_never_read)
{
    const scene_size n = {1, 2, 1, 5, 300, 4, 3};
    for (size_t variant = 0; variant < 4; variant++) {
        test_scene scene = scene_create(ATTN_F64, variant);
        scene_attention(&scene, &n);
        attn_tensor *attend = scene_tensor(&scene, ATTN_BOOL, SHAPE(n.kv_len));
        attn_tensor *key = scene_copy(&scene, scene.request.inputs.key),
                    *value = scene_copy(&scene, scene.request.inputs.value);
        for (size_t j = 0; j < n.kv_len; j++) {
            tensor_set(attend, j, j % 3 != 1);
            for (size_t f = 0; j % 3 == 1 && f < n.d_k; f++)
                tensor_set(key, j * n.d_k + f, NAN);
            for (size_t f = 0; j % 3 == 1 && f < n.d_v; f++)
                tensor_set(value, j * n.d_v + f, NAN);
        }
        scene.request.inputs.key = key;
        scene.request.inputs.value = value;
        if (variant < 2)
            scene.request.masks.padding = attend;
        else
            scene.request.masks.attend = attend;
        give_mechanism(&scene, &n, variant);
        test_run run = run_kernel(&scene.request, NULL, WANT(OUTPUT) | WANT(ATTENTION));
        for (size_t at = 0; at < attn_tensor_count(&run.result.step[ATTN_STEP_OUTPUT]); at++)
            ck_assert(isfinite(tensor_get(&run.result.step[ATTN_STEP_OUTPUT], at)));
        run_release(&run);
        scene_destroy(&scene);
    }
}
END_TEST

/* ---- the projection ---- */

START_TEST(directions_of_a_block_are_orthogonal)
{
    enum { D = 7, M = 17 };
    double work[D], p[M * D];
    attn_performer_projection(3, M, D, work, p);
    for (size_t a = 0; a < M; a++)
        for (size_t b = a / D * D; b < a; b++) {
            double product = 0;
            for (size_t f = 0; f < D; f++)
                product += p[a * D + f] * p[b * D + f];
            ck_assert_double_le(fabs(product), 1e-13); /* lengths near sqrt(7) */
        }
}
END_TEST

START_TEST(lengths_are_those_of_normal_vectors)
{
    enum { D = 16, M = 4000 };
    static double work[D], p[M * D];
    double mean = 0;
    attn_performer_projection(1, M, D, work, p);
    for (size_t at = 0; at < (size_t)M * D; at++)
        mean += p[at] * p[at] / M;
    /* the mean of 4000 chi squares of 16: deviation sqrt(2 * 16 / 4000) = 0.09; five of them */
    ck_assert_double_eq_tol(mean, D, 0.45);
}
END_TEST

static bool after_a_look(void *context)
{
    int *looks = context;
    return ++*looks > 1;
}

/* Rows of a block are made orthogonal to all before them: for many features that is most of the work. */
START_TEST(drawing_the_projection_is_weighed_and_can_be_stopped)
{
    test_scene scene = scene_create(ATTN_F32, 1);
    attn_request *request = &scene.request;
    attn_plan narrow, wide;
    attn_result result;
    attn_error err = {0};
    int looks = 0;
    attn_runtime runtime = attn_runtime_serial(NULL);
    runtime.is_cancelled = after_a_look;
    runtime.cancel_context = &looks;
    request->options.mechanism = (attn_mechanism){.type = ATTN_PERFORMER, .features = ATTN_PERFORMER_FEATURES_MAX};
    request->inputs.query = scene_normal(&scene, 1, SHAPE(1, 64));
    ck_assert_int_eq(attn_plan_make(request, &narrow, &err), ATTN_OK);
    request->inputs.query = scene_normal(&scene, 1, SHAPE(1, 4096));
    ck_assert_int_eq(attn_plan_make(request, &wide, &err), ATTN_OK);
    ck_assert_double_ge(wide.time_flops, 1000 * narrow.time_flops); /* twice as wide would be 4 times the work */
    attn_arena *arena = attn_arena_create((size_t)1 << 30);
    ck_assert_int_eq(attn_plan_run(&wide, NULL, &runtime, arena, &result, &err), ATTN_ERR_CANCELLED);
    ck_assert_int_le(looks, 10);
    attn_arena_destroy(arena);
    scene_destroy(&scene);
}
END_TEST

START_TEST(performer_comes_near_to_softmax)
{
    const scene_size n = {1, 1, 1, 20, 30, 8, 4};
    test_scene scene = scene_create(ATTN_F64, 2);
    scene_attention(&scene, &n);
    test_run exact = run_kernel(&scene.request, NULL, WANT(ATTENTION));
    double error[2];
    for (int m = 0; m < 2; m++) {
        scene.request.options.mechanism = (attn_mechanism){.type = ATTN_PERFORMER, .features = m == 0 ? 64 : 4096};
        test_run run = run_kernel(&scene.request, NULL, WANT(ATTENTION));
        error[m] = 0;
        for (size_t at = 0; at < 20 * 30; at++)
            error[m] += fabs(tensor_get(&run.result.step[ATTN_STEP_ATTENTION], at) -
                             tensor_get(&exact.result.step[ATTN_STEP_ATTENTION], at)) /
                        20;
        run_release(&run);
    }
    /* the error falls as one over the root of m, but cannot be above 2, so few features do better than that */
    ck_assert_double_lt(error[1], error[0] / 2);
    ck_assert_double_lt(error[1], 0.2);
    run_release(&exact);
    scene_destroy(&scene);
}
END_TEST

/* ---- refusals ---- */

START_TEST(what_belongs_to_softmax_is_refused)
{
    const scene_size n = {1, 2, 2, 3, 4, 6, 5};
    test_scene scene = scene_create(ATTN_F32, 1);
    attn_request *request = &scene.request;
    attn_options *options = &request->options;
    scene_attention(&scene, &n);
    options->mechanism.type = ATTN_LINEAR;
    options->want = WANT(LSE);
    expect_refusal(request, ATTN_ERR_FIELD, "options.want", "\"lse\" belongs to mechanism softmax");
    options->want = WANT(OUTPUT);
    options->softcap = 2;
    expect_refusal(request, ATTN_ERR_FIELD, "options.softcap", "softmax");
    options->softcap = 0;
    options->has_scale = true;
    options->scale = 2;
    expect_refusal(request, ATTN_ERR_FIELD, "options.scale", "no meaning");
    options->has_scale = false;
    options->dropout = 0.5;
    options->dropout_attention = true;
    expect_refusal(request, ATTN_ERR_FIELD, "options.dropout_attention", "softmax");
    options->dropout = 0;
    request->masks.bias = scene_normal(&scene, 1, SHAPE(3, 4));
    expect_refusal(request, ATTN_ERR_FIELD, "masks.bias", "softmax");
    request->masks.bias = NULL;
    options->mechanism = (attn_mechanism){.type = ATTN_PERFORMER, .features = ATTN_PERFORMER_FEATURES_MAX + 1};
    expect_refusal(request, ATTN_ERR_VALUE, "options.mechanism.features", "at most");
    options->mechanism.features = 0;
    options->mechanism.projection = scene_normal(&scene, 1, SHAPE(8, 5));
    expect_refusal(request, ATTN_ERR_SHAPE, "options.mechanism.projection", "[features,6]");
    options->mechanism.projection = NULL;
    options->mechanism.eps = -1;
    expect_refusal(request, ATTN_ERR_VALUE, "options.mechanism.eps", "0 or more");
    scene_destroy(&scene);
}
END_TEST

/* What one thread keeps of a key head is no matter of how many keys there are, or of how many threads. */
START_TEST(a_thread_keeps_little_of_a_long_head)
{
    static const scene_size n = {1, 2, 2, 4, 50000, 16, 8};
    enum { THREADS = 32 };
    for (size_t variant = 0; variant < 2; variant++) {
        test_scene scene = scene_create(ATTN_F32, variant);
        attn_plan plan;
        scene_attention(&scene, &n);
        give_mechanism(&scene, &n, variant);
        scene.request.masks.causal = true;
        ck_assert_int_eq(attn_plan_make(&scene.request, &plan, NULL), ATTN_OK);
        ck_assert_uint_le(attn_plan_bytes(&plan, 1 + THREADS) - attn_plan_bytes(&plan, 1), THREADS * (2 << 20));
        scene_destroy(&scene);
    }
}
END_TEST

CHECK_MAIN("linear")
{
    tcase_add_test(tests, a_thread_keeps_little_of_a_long_head);
    tcase_add_test(tests, every_mask_is_as_the_sums_over_pairs);
    tcase_add_test(tests, blocks_of_keys_are_joined);
    tcase_add_test(tests, values_that_are_not_finite_stay_in_the_rows_that_see_them);
    tcase_add_test(tests, asking_for_weights_and_threads_changes_no_byte);
    tcase_add_test(tests, hidden_keys_are_never_read);
    tcase_add_test(tests, directions_of_a_block_are_orthogonal);
    tcase_add_test(tests, lengths_are_those_of_normal_vectors);
    tcase_add_test(tests, performer_comes_near_to_softmax);
    tcase_add_test(tests, what_belongs_to_softmax_is_refused);
    tcase_add_test(tests, drawing_the_projection_is_weighed_and_can_be_stopped);
}
