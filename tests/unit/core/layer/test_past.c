/*
 * test_past.c: keys and values in a cache (core/src/kernel/scratch.inc.h, core/src/layer/steps.c) give the same bytes
 * as the same keys given whole, wherever the cache ends and however it lies in memory.
 */
#include <math.h>
#include <string.h>

#include "attn/multihead.h"
#include "check_main.h"
#include "mask_cases.h"
#include "scene.h"

/* The rows from … to of every head, (batch, heads, len, d), in memory of their own. */
static attn_tensor *rows_between(test_scene *scene, const attn_tensor *all, size_t from, size_t to)
{
    const size_t *n = all->shape;
    attn_tensor *made = scene_tensor(scene, all->dtype, SHAPE(n[0], n[1], to - from, n[3]));
    for (size_t at = 0; at < attn_tensor_count(made); at++) {
        const size_t row = at / n[3] % (to - from), head = at / n[3] / (to - from);
        tensor_set(made, at, tensor_get(all, (head * n[2] + from + row) * n[3] + at % n[3]));
    }
    return made;
}

/* The same numbers with gaps behind features, rows and heads, as in an array with room for more keys. */
static attn_tensor *with_room(test_scene *scene, const attn_tensor *tensor)
{
    const size_t *n = tensor->shape;
    attn_tensor *made = scene_tensor(scene, tensor->dtype, SHAPE(n[0], n[1] + 1, n[2] + 5, n[3] + 3));
    memcpy(made->shape, n, 4 * sizeof *n);
    for (size_t at = 0; at < attn_tensor_count(tensor); at++)
        tensor_set(made, at, tensor_get(tensor, at));
    return made;
}

/* Moves the first rows of keys and values into a cache. */
static void cut(test_scene *scene, const attn_inputs *whole, size_t past_len, bool has_room)
{
    attn_inputs *in = &scene->request.inputs;
    const size_t kv_len = whole->key->shape[2];
    in->past_key = rows_between(scene, whole->key, 0, past_len);
    in->past_value = rows_between(scene, whole->value, 0, past_len);
    in->key = rows_between(scene, whole->key, past_len, kv_len);
    in->value = rows_between(scene, whole->value, past_len, kv_len);
    if (has_room) {
        in->past_key = with_room(scene, in->past_key);
        in->past_value = with_room(scene, in->past_value);
    }
}

/* k and v are the new keys alone, so that they differ. */
static attn_steps steps_of(const attn_request *request)
{
    return scene_every_step(request) & ~(WANT(K) | WANT(V));
}

static void expect_same_when_cut(test_scene *scene, const attn_kernel *kernel, size_t past_len, const char *what)
{
    const attn_inputs whole = scene->request.inputs;
    const attn_steps every = steps_of(&scene->request);
    test_run given = run_kernel(&scene->request, kernel, every);
    for (int has_room = 0; has_room < 2; has_room++) {
        cut(scene, &whole, past_len, has_room);
        test_run cached = run_kernel(&scene->request, kernel, every);
        expect_same_steps(&given, &cached, every, what);
        ck_assert(given.result.max_abs_score == cached.result.max_abs_score);
        run_release(&cached);
        test_run alone = run_kernel(&scene->request, kernel, WANT(OUTPUT));
        expect_same_steps(&given, &alone, WANT(OUTPUT), what);
        run_release(&alone);
    }
    run_release(&given);
    scene->request.inputs = whole;
}

START_TEST(a_cache_gives_the_bytes_of_the_keys_it_stands_for)
{
    const attn_kernel *kernel;
    for (size_t s = 0; s < SCENE_PATHS; s++) {
        const size_t kv_len = scene_paths[s].kv_len;
        const size_t borders[] = {1, 3, 16, 23, kv_len / 2, kv_len - 17, kv_len - 3, kv_len - 1, kv_len};
        for (size_t border = s % one_in(2); border < sizeof borders / sizeof *borders; border += one_in(2))
            for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
                test_scene scene = scene_create((s + border) % 2 ? ATTN_F64 : ATTN_F32, s);
                scene_attention(&scene, &scene_paths[s]);
                expect_same_when_cut(&scene, kernel, borders[border], "a cache");
                scene_destroy(&scene);
            }
    }
}
END_TEST

START_TEST(every_border_within_a_run_gives_the_same_bytes)
{
    const scene_size n = {1, 1, 1, 5, 70, 24, 40};
    for (size_t border = 0; border <= n.kv_len; border++) {
        test_scene scene = scene_create(ATTN_F32, border);
        scene_attention(&scene, &n);
        expect_same_when_cut(&scene, NULL, border, "a border");
        scene_destroy(&scene);
    }
}
END_TEST

START_TEST(masks_see_a_cache_as_the_keys_it_stands_for)
{
    for (size_t s = 0; s < SCENE_PATHS; s++)
        for (size_t c = s % one_in(5); mask_case_at(c) != NULL; c += one_in(5)) {
            test_scene scene = scene_create(c % 2 ? ATTN_F64 : ATTN_F32, c);
            scene_attention(&scene, &scene_paths[s]);
            mask_case_at(c)->apply(&scene, &scene_paths[s]);
            expect_same_when_cut(&scene, NULL, scene_paths[s].kv_len * 2 / 3, mask_case_at(c)->name);
            scene_destroy(&scene);
        }
}
END_TEST

START_TEST(other_mechanisms_read_a_cache)
{
    for (int type = ATTN_LINEAR; type <= ATTN_PERFORMER; type++) {
        test_scene scene = scene_create(type == ATTN_LINEAR ? ATTN_F64 : ATTN_F32, 3);
        scene_attention(&scene, &scene_paths[1]);
        scene.request.options.mechanism.type = (attn_mechanism_type)type;
        scene.request.options.mechanism.features = type == ATTN_PERFORMER ? 8 : 0;
        expect_same_when_cut(&scene, NULL, 20, "a mechanism");
        scene_destroy(&scene);
    }
}
END_TEST

/* A value that is not finite counts for the rows that see it, on either side of the border and in the run around it. */
START_TEST(values_that_are_not_finite_may_be_in_a_cache)
{
    const size_t places[] = {0, 40, 63, 64, 66, 69};
    const attn_kernel *kernel;
    for (size_t p = 0; p < sizeof places / sizeof *places; p++)
        for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++)
            for (size_t q_len = 3; q_len < 50; q_len += 30) {
                const scene_size n = {1, 2, 1, q_len, 70, 16, 24};
                test_scene scene = scene_create(ATTN_F32, p);
                scene_attention(&scene, &n);
                attn_tensor *value = scene_copy(&scene, scene.request.inputs.value);
                tensor_set(value, places[p] * n.d_v, (double)INFINITY);
                scene.request.inputs.value = value;
                scene.request.masks.causal = true;
                expect_same_when_cut(&scene, kernel, 66, "infinity");
                scene_destroy(&scene);
            }
}
END_TEST

START_TEST(sums_that_overflow_are_repaired_across_the_border)
{
    const scene_size n = {1, 1, 1, 40, 600, 16, 24};
    test_scene scene = scene_create(ATTN_F32, 1);
    scene_attention(&scene, &n);
    attn_tensor *value = scene_copy(&scene, scene.request.inputs.value);
    for (size_t at = 0; at < attn_tensor_count(value); at++)
        tensor_set(value, at, 3e38);
    scene.request.inputs.value = value;
    expect_same_when_cut(&scene, NULL, 530, "overflow");
    scene_destroy(&scene);
}
END_TEST

/* A run needs the bytes of its cache only for the steps that show it. */
START_TEST(a_plan_counts_no_copy_of_the_cache)
{
    const scene_size n = {1, 2, 2, 1, 4096, 64, 64};
    test_scene scene = scene_create(ATTN_F32, 1);
    scene_attention(&scene, &n);
    const attn_inputs whole = scene.request.inputs;
    test_run given = run_kernel(&scene.request, NULL, WANT(OUTPUT));
    cut(&scene, &whole, 4095, false);
    test_run cached = run_kernel(&scene.request, NULL, WANT(OUTPUT));
    ck_assert_uint_le(cached.plan.working_bytes, given.plan.working_bytes + 4096);
    ck_assert_uint_le(attn_plan_bytes(&cached.plan, 1), attn_plan_bytes(&given.plan, 1) + 32768);
    run_release(&given);
    run_release(&cached);
    scene_destroy(&scene);
}
END_TEST

/* The cache grows in its own memory: the rows of the past are not written, and the new rows follow them. */
START_TEST(present_may_begin_with_the_memory_of_the_past)
{
    const scene_size n = {2, 4, 2, 3, 40, 16, 24};
    test_scene scene = scene_create(ATTN_F32, 9);
    scene_attention(&scene, &n);
    const attn_inputs whole = scene.request.inputs;
    attn_inputs *in = &scene.request.inputs;
    cut(&scene, &whole, 37, true);
    scene.request.options.want = WANT(OUTPUT) | WANT(PRESENT_KEY) | WANT(PRESENT_VALUE);
    attn_runtime runtime = attn_runtime_serial(NULL);
    attn_arena *arena = attn_arena_create((size_t)1 << 30);
    attn_plan plan;
    attn_result result;
    ck_assert_int_eq(attn_plan_make(&scene.request, &plan, NULL), ATTN_OK);
    const attn_tensor *past[] = {in->past_key, in->past_value};
    for (int p = 0; p < 2; p++) {
        attn_tensor *present = &plan.step[p == 0 ? ATTN_STEP_PRESENT_KEY : ATTN_STEP_PRESENT_VALUE];
        present->data = past[p]->data;
        memcpy(present->stride, past[p]->stride, sizeof present->stride);
    }
    ck_assert_int_eq(attn_plan_run(&plan, NULL, &runtime, arena, &result, NULL), ATTN_OK);
    ck_assert_ptr_eq(result.step[ATTN_STEP_PRESENT_KEY].data, in->past_key->data);
    expect_same_bytes(whole.key, &result.step[ATTN_STEP_PRESENT_KEY], "keys");
    expect_same_bytes(whole.value, &result.step[ATTN_STEP_PRESENT_VALUE], "values");
    attn_arena_destroy(arena);
    scene_destroy(&scene);
}
END_TEST

CHECK_MAIN("past")
{
    tcase_add_test(tests, a_cache_gives_the_bytes_of_the_keys_it_stands_for);
    tcase_add_test(tests, every_border_within_a_run_gives_the_same_bytes);
    tcase_add_test(tests, masks_see_a_cache_as_the_keys_it_stands_for);
    tcase_add_test(tests, other_mechanisms_read_a_cache);
    tcase_add_test(tests, values_that_are_not_finite_may_be_in_a_cache);
    tcase_add_test(tests, sums_that_overflow_are_repaired_across_the_border);
    tcase_add_test(tests, a_plan_counts_no_copy_of_the_cache);
    tcase_add_test(tests, present_may_begin_with_the_memory_of_the_past);
}
