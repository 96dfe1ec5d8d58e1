/*
 * test_memory.c: the memory of a run: never more than the plan computes, and a clean refusal with less.
 */
#include <string.h>

#include "attn/multihead.h"
#include "check_main.h"
#include "mask_cases.h"
#include "scene.h"

enum { VARIANTS = 24 };

static test_scene varied_scene(size_t variant)
{
    static const scene_size sizes[] = {{2, 4, 2, 9, 30, 8, 5}, {1, 1, 1, 1, 1, 1, 1}, {1, 2, 1, 60, 600, 4, 4}};
    const scene_size *n = &sizes[variant % 3];
    test_scene scene = scene_create(variant % 2 ? ATTN_F64 : ATTN_F32, variant);
    attn_options *options = &scene.request.options;
    if (variant % 4 < 2) {
        scene_attention(&scene, n);
    } else {
        scene_layer(&scene, n, 12);
        options->residual = variant % 8 < 6;
        options->norm = (attn_norm_type)(variant % 3);
        options->norm_position = variant % 5 < 2 ? ATTN_NORM_PRE : ATTN_NORM_POST;
        options->norm_eps = 1e-5;
    }
    if (variant % 7 == 0) {
        options->dropout = 0.5;
        options->dropout_attention = true;
        options->dropout_residual = scene.request.is_layer;
    }
    if (variant % 2 == 1)
        scene_turn(&scene, n, variant / 2);
    mask_case_at(variant)->apply(&scene, n);
    scene_biases(&scene, n, (unsigned)(5 * variant) % 128);
    attn_steps every = scene_every_step(&scene.request);
    const attn_steps wants[] = {every, WANT(OUTPUT), WANT(OUTPUT) | WANT(ATTENTION_MEAN), every & ~WANT(ATTENTION)};
    options->want = wants[variant / 3 % 4];
    return scene;
}

/* Runs with an arena of limit bytes. With success, *run is to be released. */
static attn_status run_within(const attn_request *request, const attn_runtime *runtime, size_t limit, test_run *run,
                              attn_error *err)
{
    *run = (test_run){0};
    ck_assert_int_eq(attn_plan_make(request, &run->plan, NULL), ATTN_OK);
    run->arena = attn_arena_create(limit);
    if (run->arena == NULL)
        return attn_fail(err, ATTN_ERR_NO_MEMORY, NULL, "no arena");
    attn_status status = attn_plan_run(&run->plan, NULL, runtime, run->arena, &run->result, err);
    ck_assert_uint_le(attn_arena_peak_bytes(run->arena), limit);
    if (status != ATTN_OK)
        run_release(run);
    return status;
}

static bool fits(const attn_request *request, const attn_runtime *runtime, size_t limit)
{
    test_run run;
    attn_error err = {0};
    attn_status status = run_within(request, runtime, limit, &run, &err);
    if (status == ATTN_OK) {
        run_release(&run);
        return true;
    }
    ck_assert_msg(status == ATTN_ERR_NO_MEMORY && err.status == status, "%zu bytes: %s", limit, err.message);
    ck_assert_msg(err.message[0] != '\0', "%zu bytes: a refusal has a message", limit);
    return false;
}

/* Coarse steps up to a success, then 64 bytes at a time over the last of them: every try before is a clean refusal. */
static size_t smallest_arena(const attn_request *request, const attn_runtime *runtime, size_t enough)
{
    size_t coarse = enough / 100 / 64 * 64 + 64, limit = 0;
    while (!fits(request, runtime, limit)) {
        limit += coarse;
        ck_assert_msg(limit < enough + 2 * coarse, "no success with what the plan asks for");
    }
    size_t from = limit < coarse ? 0 : limit - coarse;
    size_t step = coarse / 64 / 100 * 64 + 64; /* at most a hundred tries */
    while (!fits(request, runtime, from))
        from += step;
    for (limit = from < step ? 0 : from - step; !fits(request, runtime, limit);)
        limit += 64;
    return limit;
}

START_TEST(an_arena_too_small_by_any_amount_is_a_clean_refusal)
{
    for (size_t variant = 0; variant < VARIANTS; variant++) {
        test_scene scene = varied_scene(variant);
        attn_runtime runtime = attn_runtime_serial(NULL);
        attn_plan plan;
        ck_assert_int_eq(attn_plan_make(&scene.request, &plan, NULL), ATTN_OK);
        size_t least = smallest_arena(&scene.request, &runtime, attn_plan_bytes(&plan, 1));
        ck_assert_msg(least <= attn_plan_bytes(&plan, 1), "variant %zu needs %zu, the plan says %zu", variant, least,
                      attn_plan_bytes(&plan, 1));
        scene_destroy(&scene);
    }
}
END_TEST

START_TEST(the_result_does_not_depend_on_the_room_it_had)
{
    for (size_t variant = 0; variant < VARIANTS; variant += 5) {
        test_scene scene = varied_scene(variant);
        attn_runtime runtime = attn_runtime_serial(NULL);
        test_run roomy, tight;
        ck_assert_int_eq(run_within(&scene.request, &runtime, (size_t)1 << 30, &roomy, NULL), ATTN_OK);
        size_t least = smallest_arena(&scene.request, &runtime, attn_plan_bytes(&roomy.plan, 1));
        ck_assert_int_eq(run_within(&scene.request, &runtime, least, &tight, NULL), ATTN_OK);
        expect_same_steps(&roomy, &tight, scene.request.options.want, "least memory");
        run_release(&roomy);
        run_release(&tight);
        scene_destroy(&scene);
    }
}
END_TEST

/* A runtime that claims many threads takes scratch for all of them. */
START_TEST(what_the_plan_says_is_enough_for_any_threads_and_kernel)
{
    const size_t threads[] = {1, 2, 3, 8, 64};
    const attn_kernel *kernel;
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++)
        for (size_t t = 0; t < sizeof threads / sizeof *threads; t++)
            for (size_t variant = 0; variant < VARIANTS; variant++) {
                test_scene scene = varied_scene(variant);
                attn_runtime runtime = attn_runtime_serial(kernel);
                runtime.threads = threads[t];
                test_run run = run_request(&scene.request, &runtime); /* fails the test when it is not */
                run_release(&run);
                scene_destroy(&scene);
            }
}
END_TEST

START_TEST(a_plan_does_not_ask_for_much_more_than_it_takes)
{
    test_scene scene = scene_create(ATTN_F32, 1);
    scene_attention(&scene, &(scene_size){1, 4, 4, 600, 600, 64, 64});
    scene.request.options.want = WANT(OUTPUT) | WANT(ATTENTION);
    attn_runtime runtime = attn_runtime_serial(NULL);
    test_run run = run_request(&scene.request, &runtime);
    size_t said = attn_plan_bytes(&run.plan, 1), took = attn_arena_peak_bytes(run.arena);
    ck_assert_msg(said < 2 * took, "the plan asks for %zu, the run takes %zu", said, took);
    run_release(&run);
    scene_destroy(&scene);
}
END_TEST

CHECK_MAIN("memory")
{
    tcase_add_test(tests, an_arena_too_small_by_any_amount_is_a_clean_refusal);
    tcase_add_test(tests, the_result_does_not_depend_on_the_room_it_had);
    tcase_add_test(tests, what_the_plan_says_is_enough_for_any_threads_and_kernel);
    tcase_add_test(tests, a_plan_does_not_ask_for_much_more_than_it_takes);
}
