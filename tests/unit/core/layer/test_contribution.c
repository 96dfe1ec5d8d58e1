/*
 * test_contribution.c: tests core/src/layer/contribution.c through attn_plan_run. test_vectors.c compares the step with
 * its equation; here is what it must hold by itself.
 */
#include <math.h>

#include "attn/multihead.h"
#include "check_main.h"
#include "scene.h"

static const scene_size size = {2, 4, 2, 5, 7, 3, 2};

static test_scene layer(attn_dtype type)
{
    test_scene scene = scene_create(type, 9);
    scene_layer(&scene, &size, 6);
    return scene;
}

START_TEST(asking_for_it_changes_no_other_byte_and_the_other_way_round)
{
    for (int mechanism = ATTN_SOFTMAX; mechanism <= ATTN_PERFORMER; mechanism++) {
        test_scene scene = layer(ATTN_F32);
        scene.request.options.mechanism = (attn_mechanism){.type = (attn_mechanism_type)mechanism, .features = 4};
        const attn_steps every = scene_every_step(&scene.request), alone = WANT(CONTRIBUTION);
        test_run all = run_kernel(&scene.request, NULL, every), none = run_kernel(&scene.request, NULL, every & ~alone);
        test_run one = run_kernel(&scene.request, NULL, alone);
        test_run mean = run_kernel(&scene.request, NULL, alone | WANT(ATTENTION_MEAN));
        expect_same_steps(&all, &none, every & ~alone, "without");
        expect_same_steps(&all, &one, alone, "alone");
        expect_same_steps(&all, &mean, alone | WANT(ATTENTION_MEAN), "with the mean");
        run_release(&all);
        run_release(&none);
        run_release(&one);
        run_release(&mean);
        scene_destroy(&scene);
    }
}
END_TEST

START_TEST(a_selection_is_a_part_of_the_whole_map)
{
    static const size_t heads[] = {3, 1}, queries[] = {0, 4}, keys[] = {6, 2, 3};
    test_scene scene = layer(ATTN_F64);
    test_run whole = run_kernel(&scene.request, NULL, WANT(CONTRIBUTION));
    scene.request.options.heads = (attn_selection){.items = heads, .count = 2};
    scene.request.options.queries = (attn_selection){.items = queries, .count = 2};
    scene.request.options.keys = (attn_selection){.items = keys, .count = 3};
    test_run part = run_kernel(&scene.request, NULL, WANT(CONTRIBUTION));
    for (size_t at = 0; at < 2 * 2 * 2 * 3; at++) {
        const size_t b = at / 12, h = heads[at / 6 % 2], i = queries[at / 3 % 2], j = keys[at % 3];
        ck_assert_double_eq(tensor_get(&part.result.step[ATTN_STEP_CONTRIBUTION], at),
                            tensor_get(&whole.result.step[ATTN_STEP_CONTRIBUTION], ((b * 4 + h) * 5 + i) * 7 + j));
    }
    run_release(&whole);
    run_release(&part);
    scene_destroy(&scene);
}
END_TEST

/* Key 2 of item 0 is NaN, and hidden from all. */
START_TEST(hidden_keys_and_heads_that_are_taken_out_contribute_0)
{
    test_scene scene = layer(ATTN_F32);
    attn_tensor *padding = scene_coins(&scene, 1, SHAPE(2, 7)), *key = scene_copy(&scene, scene.request.inputs.key);
    ((uint8_t *)padding->data)[2] = 0;
    for (size_t d = 0; d < 6; d++)
        tensor_set(key, 2 * 6 + d, (double)NAN);
    scene.request.inputs.key = key;
    scene.request.masks.padding = padding;
    scene_scale_heads(&scene, 4);
    test_run run = run_kernel(&scene.request, NULL, WANT(CONTRIBUTION));
    for (size_t at = 0; at < 2 * 4 * 5 * 7; at++) {
        const double got = tensor_get(&run.result.step[ATTN_STEP_CONTRIBUTION], at);
        const bool is_hidden = at / 140 == 0 && at % 7 == 2, is_out = at / 35 % 4 == 3;
        ck_assert_msg(is_hidden || is_out ? got == 0 : got > 0, "%zu: %g", at, got);
    }
    run_release(&run);
    scene_destroy(&scene);
}
END_TEST

START_TEST(it_needs_an_output_projection_and_no_gate)
{
    test_scene scene = layer(ATTN_F32);
    scene.request.options.want = WANT(CONTRIBUTION);
    scene.request.weights.gate.weight = scene_normal(&scene, 1, SHAPE(6, 4));
    expect_refusal(&scene.request, ATTN_ERR_FIELD, "options.want", "weights.gate");
    scene.request.weights.gate.weight = NULL;
    scene.request.weights.output = (attn_affine){NULL, NULL};
    expect_refusal(&scene.request, ATTN_ERR_FIELD, "options.want", "needs weights.output");
    scene_destroy(&scene);
}
END_TEST

CHECK_MAIN("contribution")
{
    tcase_add_test(tests, asking_for_it_changes_no_other_byte_and_the_other_way_round);
    tcase_add_test(tests, a_selection_is_a_part_of_the_whole_map);
    tcase_add_test(tests, hidden_keys_and_heads_that_are_taken_out_contribute_0);
    tcase_add_test(tests, it_needs_an_output_projection_and_no_gate);
}
