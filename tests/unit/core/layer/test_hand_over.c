/*
 * test_hand_over.c: tokens that lie anywhere, and results in the caller's memory (the operands of core/src/layer/run.c,
 * and attn_layer_hand_over of steps.c): neither changes a number.
 */
#include <string.h>

#include "attn/gradient.h"
#include "attn/multihead.h"
#include "check_main.h"
#include "gradient_cases.h"
#include "mask_cases.h"
#include "scene.h"

static const scene_size sizes[] = {{2, 4, 2, 3, 70, 8, 5}, {2, 2, 1, 49, 517, 16, 24}, {1, 1, 1, 1, 1, 1, 1}};

/* The same numbers, (batch, heads, len, d), stored as (batch, len, heads, d) with gaps behind heads and tokens. */
static attn_tensor *by_tokens(test_scene *scene, const attn_tensor *tensor)
{
    const size_t *n = tensor->shape;
    attn_tensor *made = scene_tensor(scene, tensor->dtype, SHAPE(n[0], n[2] + 1, n[1] + 1, n[3] + 3));
    const ptrdiff_t token = made->stride[1];
    memcpy(made->shape, n, 4 * sizeof *n);
    made->stride[1] = made->stride[2];
    made->stride[2] = token;
    for (size_t at = 0; at < attn_tensor_count(tensor); at++)
        tensor_set(made, at, tensor_get(tensor, at));
    return made;
}

static void spread_tokens(test_scene *scene)
{
    attn_inputs *inputs = &scene->request.inputs;
    inputs->query = by_tokens(scene, inputs->query);
    inputs->key = by_tokens(scene, inputs->key);
    inputs->value = by_tokens(scene, inputs->value);
}

static void expect_same_when_spread(test_scene *scene, const attn_kernel *kernel, const char *what)
{
    const attn_steps every = scene_every_step(&scene->request);
    test_run packed = run_kernel(&scene->request, kernel, every);
    spread_tokens(scene);
    test_run spread = run_kernel(&scene->request, kernel, every);
    expect_same_steps(&packed, &spread, every, what);
    run_release(&packed);
    run_release(&spread);
}

START_TEST(tokens_with_gaps_give_the_same_bytes)
{
    const attn_kernel *kernel;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t c = s % one_in(3); mask_case_at(c) != NULL; c += one_in(3))
            for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
                test_scene scene = scene_create(c % 2 ? ATTN_F64 : ATTN_F32, c);
                scene_attention(&scene, &sizes[s]);
                mask_case_at(c)->apply(&scene, &sizes[s]);
                expect_same_when_spread(&scene, kernel, mask_case_at(c)->name);
                scene_destroy(&scene);
            }
}
END_TEST

START_TEST(norms_rotations_and_caches_read_tokens_with_gaps)
{
    for (size_t variant = 0; variant < 24; variant++) {
        test_scene scene = scene_create(variant % 2 ? ATTN_F64 : ATTN_F32, variant);
        scene_attention(&scene, &sizes[variant % 2]);
        scene_turn(&scene, &sizes[variant % 2], variant);
        expect_same_when_spread(&scene, NULL, "turned");
        scene_destroy(&scene);
    }
}
END_TEST

START_TEST(feature_maps_read_tokens_with_gaps)
{
    for (int type = ATTN_F32; type <= ATTN_F64; type++) {
        test_scene scene = scene_create((attn_dtype)type, 3);
        scene_attention(&scene, &sizes[1]);
        scene.request.options.mechanism.type = ATTN_LINEAR;
        expect_same_when_spread(&scene, NULL, "linear");
        scene_destroy(&scene);
    }
}
END_TEST

START_TEST(gradients_of_tokens_with_gaps_are_the_same)
{
    for (size_t c = 0; mask_case_at(c) != NULL; c++) {
        const scene_size *n = &sizes[c % 2];
        test_scene scene = scene_create(c % 2 ? ATTN_F64 : ATTN_F32, c);
        scene_attention(&scene, n);
        mask_case_at(c)->apply(&scene, n);
        const attn_gradient_request asked = {.request = &scene.request,
                                             .grad_output =
                                                 scene_normal(&scene, 1, SHAPE(n->batch, n->heads, n->q_len, n->d_v))};
        gradient_run packed = gradient_run_serial(&asked, NULL);
        spread_tokens(&scene);
        gradient_run spread = gradient_run_serial(&asked, NULL);
        expect_same_gradients(&packed, &spread, mask_case_at(c)->name);
        gradient_run_release(&packed);
        gradient_run_release(&spread);
        scene_destroy(&scene);
    }
}
END_TEST

START_TEST(tokens_of_rank_3_may_have_gaps)
{
    test_scene scene = scene_create(ATTN_F32, 5);
    attn_inputs *inputs = &scene.request.inputs;
    scene.request.options.num_heads = 2;
    inputs->query = scene_normal(&scene, 1, SHAPE(2, 5, 8));
    const attn_steps every = scene_every_step(&scene.request);
    test_run packed = run_kernel(&scene.request, NULL, every);
    attn_tensor *wide = scene_tensor(&scene, ATTN_F32, SHAPE(2, 6, 11));
    wide->shape[1] = 5;
    wide->shape[2] = 8;
    for (size_t at = 0; at < attn_tensor_count(wide); at++)
        tensor_set(wide, at, tensor_get(inputs->query, at));
    inputs->query = wide;
    test_run spread = run_kernel(&scene.request, NULL, every);
    expect_same_steps(&packed, &spread, every, "rank 3");
    run_release(&packed);
    run_release(&spread);
    scene_destroy(&scene);
}
END_TEST

START_TEST(one_key_head_can_serve_a_whole_batch)
{
    test_scene scene = scene_create(ATTN_F32, 6);
    scene_attention(&scene, &sizes[0]);
    attn_tensor *shared = (attn_tensor *)(uintptr_t)scene.request.inputs.key;
    shared->stride[0] = 0;
    test_run viewed = run_kernel(&scene.request, NULL, WANT(OUTPUT));
    scene.request.inputs.key = scene_copy(&scene, shared);
    test_run copied = run_kernel(&scene.request, NULL, WANT(OUTPUT));
    expect_same_steps(&viewed, &copied, WANT(OUTPUT), "stride 0");
    run_release(&viewed);
    run_release(&copied);
    scene_destroy(&scene);
}
END_TEST

START_TEST(strides_that_no_kernel_reads_are_refused)
{
    test_scene scene = scene_create(ATTN_F32, 7);
    scene_attention(&scene, &sizes[0]);
    const attn_tensor *key = scene.request.inputs.key;
    scene.request.inputs.key = scene_strided(&scene, key);
    expect_refusal(&scene.request, ATTN_ERR_FIELD, "inputs.key", "side by side");
    attn_tensor *backwards = scene_copy(&scene, key);
    backwards->stride[2] = -backwards->stride[2];
    scene.request.inputs.key = backwards;
    expect_refusal(&scene.request, ATTN_ERR_FIELD, "inputs.key", "below 0");
    scene_destroy(&scene);
    scene = scene_create(ATTN_F32, 8);
    scene_layer(&scene, &sizes[0], 6);
    attn_tensor *gaps = scene_copy(&scene, scene.request.inputs.query);
    gaps->shape[1]--;
    scene.request.inputs.query = gaps;
    expect_refusal(&scene.request, ATTN_ERR_FIELD, "inputs.query", "without gaps");
    scene_destroy(&scene);
}
END_TEST

/* ---- results ---- */

/* Memory of the shape, all of it NaN. Behind every row is a gap, but maps have none. */
static attn_tensor place_for(test_scene *scene, const attn_tensor *shape, size_t gap)
{
    size_t wide[ATTN_MAX_RANK];
    memcpy(wide, shape->shape, sizeof wide);
    wide[shape->rank - 1] += gap;
    attn_tensor place = *scene_tensor(scene, shape->dtype, shape->rank, wide);
    memset(place.data, 0xff, attn_tensor_count(&place) * attn_dtype_bytes(place.dtype));
    memcpy(place.shape, shape->shape, sizeof wide);
    return place;
}

/* Behind the last number of each row the memory is as it was. */
static void expect_gaps_untouched(const attn_tensor *place, size_t gap)
{
    const size_t bytes = attn_dtype_bytes(place->dtype), width = place->shape[place->rank - 1];
    const size_t rows = width == 0 ? 0 : attn_tensor_count(place) / width;
    for (size_t row = 0; row < rows; row++)
        for (size_t at = width * bytes; at < (width + gap) * bytes; at++)
            ck_assert_uint_eq(((const uint8_t *)place->data)[row * (width + gap) * bytes + at], 0xff);
}

static size_t gap_of(int step)
{
    return attn_step_is_map((attn_step)step) ? 0 : 3;
}

static void expect_same_in_place(test_scene *scene, const attn_kernel *kernel, attn_steps steps)
{
    attn_request asked = scene->request;
    attn_plan plan;
    attn_result result;
    attn_error err = {0};
    const attn_runtime runtime = attn_runtime_serial(kernel);
    attn_arena *arena = attn_arena_create(SIZE_MAX);
    asked.options.want = steps;
    test_run expected = run_kernel(&asked, kernel, steps);
    ck_assert_msg(attn_plan_make(&asked, &plan, &err) == ATTN_OK, "%s", err.message);
    for (int step = 0; step < ATTN_STEP_COUNT; step++)
        if (steps >> step & 1)
            plan.step[step] = place_for(scene, &plan.step[step], gap_of(step));
    const attn_plan given = plan;
    ck_assert_msg(attn_plan_run(&plan, NULL, &runtime, arena, &result, &err) == ATTN_OK, "%s", err.message);
    for (int step = 0; step < ATTN_STEP_COUNT; step++)
        if (steps >> step & 1) {
            ck_assert_ptr_eq(result.step[step].data, given.step[step].data);
            expect_same_bytes(&result.step[step], &expected.result.step[step], attn_step_name((attn_step)step));
            expect_gaps_untouched(&given.step[step], gap_of(step));
        }
    run_release(&expected);
    attn_arena_destroy(arena);
}

START_TEST(maps_are_written_where_the_plan_says)
{
    const attn_steps maps = WANT(SCORES) | WANT(SCALED) | WANT(MASKED) | WANT(ATTENTION) | WANT(DROPPED);
    const attn_kernel *kernel;
    for (size_t s = 0; s < 2; s++)
        for (size_t c = s % one_in(3); mask_case_at(c) != NULL; c += one_in(3))
            for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
                test_scene scene = scene_create(c % 2 == 0 ? ATTN_F32 : ATTN_F64, c);
                scene_attention(&scene, &sizes[s]);
                mask_case_at(c)->apply(&scene, &sizes[s]);
                scene.request.options.dropout = 0.25;
                scene.request.options.dropout_attention = true;
                expect_same_in_place(&scene, kernel, maps);
                scene_destroy(&scene);
            }
}
END_TEST

START_TEST(steps_of_attention_are_where_the_plan_says)
{
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int scales = 0; scales < 2; scales++) {
            test_scene scene = scene_create(scales ? ATTN_F64 : ATTN_F32, s);
            scene_attention(&scene, &sizes[s]);
            scene_turn(&scene, &sizes[s], s);
            if (scales)
                scene_scale_heads(&scene, sizes[s].heads);
            expect_same_in_place(&scene, NULL, scene_every_step(&scene.request));
            expect_same_in_place(&scene, NULL, WANT(OUTPUT));
            expect_same_in_place(&scene, NULL, WANT(OUTPUT) | WANT(CONTEXT));
            expect_same_in_place(&scene, NULL, WANT(OUTPUT) | WANT(CONCAT));
            scene_destroy(&scene);
        }
}
END_TEST

START_TEST(steps_of_a_layer_are_where_the_plan_says)
{
    for (size_t variant = 0; variant < 8; variant++) {
        test_scene scene = scene_create(variant % 2 ? ATTN_F64 : ATTN_F32, variant);
        scene_layer(&scene, &sizes[0], 12);
        scene_turn(&scene, &sizes[0], variant);
        if (variant % 4 > 1)
            scene_feed_forward(&scene, 12, 20, ATTN_ACTIVATION_SILU, variant % 2);
        expect_same_in_place(&scene, NULL, scene_every_step(&scene.request));
        expect_same_in_place(&scene, NULL, WANT(OUTPUT));
        scene_destroy(&scene);
    }
}
END_TEST

CHECK_MAIN("hand over")
{
    tcase_add_test(tests, tokens_with_gaps_give_the_same_bytes);
    tcase_add_test(tests, norms_rotations_and_caches_read_tokens_with_gaps);
    tcase_add_test(tests, feature_maps_read_tokens_with_gaps);
    tcase_add_test(tests, gradients_of_tokens_with_gaps_are_the_same);
    tcase_add_test(tests, tokens_of_rank_3_may_have_gaps);
    tcase_add_test(tests, one_key_head_can_serve_a_whole_batch);
    tcase_add_test(tests, strides_that_no_kernel_reads_are_refused);
    tcase_add_test(tests, maps_are_written_where_the_plan_says);
    tcase_add_test(tests, steps_of_attention_are_where_the_plan_says);
    tcase_add_test(tests, steps_of_a_layer_are_where_the_plan_says);
}
