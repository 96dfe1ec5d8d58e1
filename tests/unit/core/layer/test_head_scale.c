/*
 * test_head_scale.c: tests core/src/layer/head_scale.c through attn_plan_run. test_layer.c and test_backward.c compare
 * it with the equations; here is what it must hold by itself.
 */
#include <math.h>
#include <string.h>

#include "attn/multihead.h"
#include "check_main.h"
#include "gradient_cases.h"
#include "scene.h"

static const scene_size size = {2, 4, 2, 5, 7, 3, 2};

static attn_tensor *factors(test_scene *scene, double value)
{
    attn_tensor *made = scene_tensor(scene, scene->type, SHAPE(4));
    for (size_t h = 0; h < 4; h++)
        tensor_set(made, h, value);
    return made;
}

/* With a gate, an output projection and a cache (kind 1), or attention of rank 4 (kind 0). */
static test_scene scene_of(int kind, attn_dtype type)
{
    test_scene scene = scene_create(type, 5);
    if (kind == 0)
        scene_attention(&scene, &size);
    else
        scene_layer(&scene, &size, 6);
    if (kind == 1)
        scene_turn(&scene, &size, 14);
    return scene;
}

START_TEST(factors_of_1_change_no_byte)
{
    for (int kind = 0; kind < 3; kind++) {
        test_scene scene = scene_of(kind, kind == 2 ? ATTN_F64 : ATTN_F32);
        const attn_steps every = scene_every_step(&scene.request);
        test_run without = run_kernel(&scene.request, NULL, every);
        scene.request.options.head_scale = factors(&scene, 1);
        test_run with = run_kernel(&scene.request, NULL, every);
        expect_same_steps(&without, &with, every, "factors of 1");
        run_release(&without);
        run_release(&with);
        scene_destroy(&scene);
    }
}
END_TEST

START_TEST(asking_for_context_or_concat_changes_no_byte)
{
    for (int kind = 0; kind < 3; kind++) {
        test_scene scene = scene_of(kind, ATTN_F32);
        scene_scale_heads(&scene, size.heads);
        test_run every = run_kernel(&scene.request, NULL, scene_every_step(&scene.request));
        const attn_steps wants[] = {WANT(OUTPUT), WANT(OUTPUT) | WANT(CONTEXT), WANT(OUTPUT) | WANT(CONCAT),
                                    WANT(CONTEXT) | WANT(CONCAT)};
        for (size_t w = 0; w < COUNT(wants); w++) {
            test_run some = run_kernel(&scene.request, NULL, wants[w]);
            expect_same_steps(&every, &some, wants[w], "some steps");
            run_release(&some);
        }
        run_release(&every);
        scene_destroy(&scene);
    }
}
END_TEST

START_TEST(context_is_before_the_factor_and_concat_behind_it)
{
    test_scene scene = scene_of(2, ATTN_F64);
    test_run plain = run_kernel(&scene.request, NULL, WANT(CONTEXT) | WANT(CONCAT));
    scene.request.options.head_scale = factors(&scene, -2);
    test_run run = run_kernel(&scene.request, NULL, WANT(CONTEXT) | WANT(CONCAT));
    expect_same_bytes(&plain.result.step[ATTN_STEP_CONTEXT], &run.result.step[ATTN_STEP_CONTEXT], "context");
    const attn_tensor *concat = &run.result.step[ATTN_STEP_CONCAT];
    for (size_t at = 0; at < attn_tensor_count(concat); at++)
        ck_assert_double_eq(tensor_get(concat, at), -2 * tensor_get(&plain.result.step[ATTN_STEP_CONCAT], at));
    run_release(&plain);
    run_release(&run);
    scene_destroy(&scene);
}
END_TEST

/* The value of head 1 is NaN throughout. */
START_TEST(a_factor_of_0_takes_a_head_out_whatever_it_holds)
{
    test_scene scene = scene_create(ATTN_F32, 5);
    scene_attention(&scene, &(scene_size){1, 2, 2, 3, 3, 4, 4});
    attn_tensor *value = scene_copy(&scene, scene.request.inputs.value),
                *scale = scene_tensor(&scene, ATTN_F32, SHAPE(2));
    for (size_t at = 12; at < 24; at++)
        tensor_set(value, at, (double)NAN);
    tensor_set(scale, 0, 1);
    scene.request.inputs.value = value;
    scene.request.options.head_scale = scale;
    test_run run = run_kernel(&scene.request, NULL, WANT(OUTPUT) | WANT(CONTEXT));
    for (size_t at = 0; at < 24; at++) {
        const double out = tensor_get(&run.result.step[ATTN_STEP_OUTPUT], at);
        const double context = tensor_get(&run.result.step[ATTN_STEP_CONTEXT], at);
        ck_assert(at < 12 ? out == context : out == 0 && isnan(context));
    }
    run_release(&run);
    scene_destroy(&scene);
}
END_TEST

/* Its factor still has the gradient that says what the head would add. */
START_TEST(a_head_that_is_taken_out_gets_no_gradient)
{
    test_scene scene = scene_of(2, ATTN_F64);
    scene.request.options.head_scale = factors(&scene, 0);
    attn_gradient_request wanted = gradient_ask(&scene);
    gradient_run run = gradient_run_serial(&wanted, NULL);
    for (size_t at = 0; at < attn_tensor_count(&run.result.gradient[ATTN_GRADIENT_QUERY]); at++)
        ck_assert_double_eq(tensor_get(&run.result.gradient[ATTN_GRADIENT_QUERY], at), 0);
    for (size_t h = 0; h < 4; h++)
        ck_assert(tensor_get(&run.result.gradient[ATTN_GRADIENT_HEAD_SCALE], h) != 0);
    gradient_run_release(&run);
    scene_destroy(&scene);
}
END_TEST

START_TEST(factors_are_refused_that_are_not_one_finite_number_for_each_head)
{
    test_scene scene = scene_of(0, ATTN_F32);
    attn_options *options = &scene.request.options;
    options->head_scale = scene_normal(&scene, 1, SHAPE(3));
    expect_refusal(&scene.request, ATTN_ERR_SHAPE, "options.head_scale", "[3]");
    options->head_scale = scene_tensor(&scene, ATTN_F64, SHAPE(4));
    expect_refusal(&scene.request, ATTN_ERR_FIELD, "options.head_scale", "float64");
    options->head_scale = factors(&scene, HUGE_VAL);
    expect_refusal(&scene.request, ATTN_ERR_VALUE, "options.head_scale", "not finite");
    scene_destroy(&scene);
}
END_TEST

CHECK_MAIN("head scale")
{
    tcase_add_test(tests, factors_of_1_change_no_byte);
    tcase_add_test(tests, asking_for_context_or_concat_changes_no_byte);
    tcase_add_test(tests, context_is_before_the_factor_and_concat_behind_it);
    tcase_add_test(tests, a_factor_of_0_takes_a_head_out_whatever_it_holds);
    tcase_add_test(tests, a_head_that_is_taken_out_gets_no_gradient);
    tcase_add_test(tests, factors_are_refused_that_are_not_one_finite_number_for_each_head);
}
