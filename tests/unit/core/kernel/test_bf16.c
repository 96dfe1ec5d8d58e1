/*
 * test_bf16.c: products of operands that are rounded to bfloat16: close to equation 1 of the rounded operands, the same
 * bits with and without the processor's instruction, and the same rules for masks and for numbers that are not finite.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attn/gradient.h"
#include "check_main.h"
#include "closeness.h"
#include "mask_cases.h"

static const scene_size sizes[] = {
    {1, 1, 1, 1, 1, 1, 1},    {1, 2, 1, 9, 37, 3, 2},      {2, 3, 1, 49, 517, 8, 5},   {1, 1, 1, 1, 1030, 16, 8},
    {1, 1, 1, 5, 70, 64, 64}, {1, 1, 1, 60, 640, 130, 96}, {1, 1, 1, 13, 530, 65, 33},
};

static test_scene bf16_scene(const scene_size *size, uint64_t seed)
{
    test_scene scene = scene_create(ATTN_F32, seed);
    scene_attention(&scene, size);
    scene.request.options.bf16_products = true;
    return scene;
}

static void fill(const attn_tensor *tensor, random_source *random, int exponent, int spread)
{
    float *numbers = tensor->data;
    for (size_t n = 0; n < attn_tensor_count(tensor); n++)
        numbers[n] = (float)ldexp(random_normal(random), exponent + (int)random_below(random, (size_t)spread));
}

static float rounded(float x)
{
    uint16_t half;
    if (attn_convert(&half, ATTN_BF16, &x, ATTN_F32, 1, NULL) != ATTN_OK ||
        attn_convert(&x, ATTN_F32, &half, ATTN_BF16, 1, NULL) != ATTN_OK)
        ck_abort_msg("%g does not fit", (double)x);
    return x;
}

static void round_all(const attn_tensor *tensor)
{
    float *numbers = tensor->data;
    for (size_t n = 0; n < attn_tensor_count(tensor); n++)
        numbers[n] = rounded(numbers[n]);
}

/* ---- equation 1 ---- */

/*
 * Against equation 1 on rounded operands. Rounding a weight to bfloat16 is off by 2^-8 of it at most. The other terms are
 * those of docs/accuracy.md, with sums of one level: d_k products of a score, and 512 keys of a tile.
 */
static double bound_of(const naive_result *naive, size_t row)
{
    const double u = 0x1p-24, tiles = ceil((double)naive->kv_len / 512);
    return 0x1p-8 + u * (2 * ((double)naive->d_k + 4) * naive->peak[row] + 512 + 60 + 7 * tiles);
}

static void expect_within_bound(const test_run *run, const naive_result *naive, const char *what)
{
    const float *output = run->result.step[ATTN_STEP_OUTPUT].data;
    for (size_t row = 0; row < naive->batch * naive->heads * naive->q_len; row++)
        for (size_t d = 0; d < naive->d_v; d++) {
            const size_t at = row * naive->d_v + d;
            const double exact = naive->step[ATTN_STEP_OUTPUT][at], size = naive->terms[ATTN_STEP_CONTEXT][at];
            if (!(fabs((double)output[at] - exact) <= bound_of(naive, row) * size))
                ck_abort_msg("%s: output %zu is %.9g, not %.9g", what, at, (double)output[at], exact);
        }
}

START_TEST(outputs_are_those_of_rounded_operands)
{
    const attn_kernel *kernel;
    const scene_size *size = &sizes[_i];
    for (size_t mask = (size_t)_i % one_in(5); mask_case_at(mask) != NULL; mask += one_in(5)) {
        test_scene scene = bf16_scene(size, 1 + mask);
        mask_case_at(mask)->apply(&scene, size);
        round_all(scene.request.inputs.query);
        round_all(scene.request.inputs.key);
        round_all(scene.request.inputs.value);
        scene.request.options.want = WANT(OUTPUT);
        naive_result naive = naive_attention(&scene.request, NULL);
        for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
            test_run run = run_kernel(&scene.request, kernel, WANT(OUTPUT));
            expect_within_bound(&run, &naive, mask_case_at(mask)->name);
            run_release(&run);
        }
        naive_release(&naive);
        scene_destroy(&scene);
    }
}
END_TEST

START_TEST(operands_are_rounded_and_nothing_else_is)
{
    for (size_t s = 0; s < COUNT(sizes); s++) {
        test_scene scene = bf16_scene(&sizes[s], s);
        const attn_steps every = scene_every_step(&scene.request) & ~(WANT(Q) | WANT(K) | WANT(V));
        test_run plain = run_kernel(&scene.request, NULL, every);
        round_all(scene.request.inputs.query);
        round_all(scene.request.inputs.key);
        round_all(scene.request.inputs.value);
        test_run before = run_kernel(&scene.request, NULL, every);
        expect_same_steps(&plain, &before, every, "rounded before");
        run_release(&plain);
        run_release(&before);
        scene_destroy(&scene);
    }
}
END_TEST

/* ---- the same bits everywhere ---- */

/*
 * Scores have no function whose bits depend on the kernel. Numbers of very different size make sums that cancel, that
 * round, and that are subnormal.
 */
START_TEST(scores_have_the_same_bits_in_all_kernels)
{
    const attn_kernel *kernel;
    static const struct {
        int exponent, spread;
    } ranges[] = {{0, 1}, {-8, 16}, {-70, 14}, {-66, 4}, {-130, 120}, {50, 8}};
    for (size_t n = 0; n < COUNT(ranges) * COUNT(sizes); n++) {
        test_scene scene = bf16_scene(&sizes[n % COUNT(sizes)], n);
        fill(scene.request.inputs.query, &scene.random, ranges[n / COUNT(sizes)].exponent,
             ranges[n / COUNT(sizes)].spread);
        fill(scene.request.inputs.key, &scene.random, ranges[n / COUNT(sizes)].exponent,
             ranges[n / COUNT(sizes)].spread);
        test_run first = run_kernel(&scene.request, attn_kernel_at(0), WANT(SCORES) | WANT(SCALED));
        for (size_t k = 1; (kernel = attn_kernel_at(k)) != NULL; k++) {
            test_run run = run_kernel(&scene.request, kernel, WANT(SCORES) | WANT(SCALED));
            expect_same_steps(&first, &run, WANT(SCORES) | WANT(SCALED), attn_kernel_name(kernel));
            run_release(&run);
        }
        run_release(&first);
        scene_destroy(&scene);
    }
}
END_TEST

/* With queries of 0 every weight is 1, and so is exactly the same in all kernels. */
START_TEST(sums_of_values_have_the_same_bits_in_all_kernels)
{
    const attn_kernel *kernel;
    for (size_t n = 0; n < 4 * COUNT(sizes); n++) {
        test_scene scene = bf16_scene(&sizes[n % COUNT(sizes)], n);
        const attn_tensor *query = scene.request.inputs.query;
        memset(query->data, 0, attn_tensor_count(query) * sizeof(float));
        fill(scene.request.inputs.value, &scene.random, (int[]){0, -8, -127, 90}[n / COUNT(sizes)],
             (int[]){1, 16, 6, 20}[n / COUNT(sizes)]);
        test_run first = run_kernel(&scene.request, attn_kernel_at(0), WANT(OUTPUT));
        for (size_t k = 1; (kernel = attn_kernel_at(k)) != NULL; k++) {
            test_run run = run_kernel(&scene.request, kernel, WANT(OUTPUT));
            expect_same_steps(&first, &run, WANT(OUTPUT), attn_kernel_name(kernel));
            run_release(&run);
        }
        run_release(&first);
        scene_destroy(&scene);
    }
}
END_TEST

START_TEST(the_instruction_changes_no_bit)
{
    const attn_kernel *with = attn_kernel_by_name("avx512_bf16"), *without = attn_kernel_by_name("avx512");
    for (size_t mask = 0; with != NULL && mask_case_at(mask) != NULL; mask++) {
        const scene_size *size = &sizes[mask % COUNT(sizes)];
        test_scene scene = bf16_scene(size, mask);
        mask_case_at(mask)->apply(&scene, size);
        const attn_steps every = scene_every_step(&scene.request);
        test_run by_instruction = run_kernel(&scene.request, with, every);
        test_run by_fma = run_kernel(&scene.request, without, every);
        expect_same_steps(&by_instruction, &by_fma, every, mask_case_at(mask)->name);
        run_release(&by_instruction);
        run_release(&by_fma);
        scene_destroy(&scene);
    }
}
END_TEST

/* ---- numbers that are not finite ---- */

static void set_row(const attn_tensor *tensor, size_t row, float number)
{
    const size_t features = tensor->shape[3];
    for (size_t d = 0; d < features; d++)
        ((float *)tensor->data)[row * features + d] = number;
}

START_TEST(hidden_keys_and_values_have_no_influence)
{
    static const scene_size size = {1, 1, 1, 20, 600, 16, 24};
    static const float hidden[] = {0, NAN, INFINITY, 3.4e38f};
    const attn_kernel *kernel;
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
        test_scene scene = bf16_scene(&size, 1);
        scene.request.masks.causal = true;
        set_row(scene.request.inputs.key, 10, 0);
        set_row(scene.request.inputs.value, 10, 0);
        test_run first = run_kernel(&scene.request, kernel, WANT(OUTPUT));
        const float *expected = first.result.step[ATTN_STEP_OUTPUT].data;
        for (size_t n = 0; n < COUNT(hidden); n++) {
            set_row(scene.request.inputs.key, 599, hidden[n]);
            set_row(scene.request.inputs.value, 599, hidden[n]);
            scene.request.masks.window_right = 0;
            test_run run = run_kernel(&scene.request, kernel, WANT(OUTPUT));
            ck_assert_mem_eq(run.result.step[ATTN_STEP_OUTPUT].data, expected, 19 * size.d_v * sizeof(float));
            run_release(&run);
        }
        run_release(&first);
        scene_destroy(&scene);
    }
}
END_TEST

/* It rounds to infinity, so it takes part in float32, like values that are not finite. */
START_TEST(a_value_beyond_bfloat16_stays_finite)
{
    const attn_kernel *kernel;
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
        test_scene scene = bf16_scene(&(scene_size){1, 1, 1, 3, 1, 2, 1}, 1);
        set_row(scene.request.inputs.value, 0, 0x1.fffffep127f);
        test_run run = run_kernel(&scene.request, kernel, WANT(OUTPUT));
        ck_assert(((const float *)run.result.step[ATTN_STEP_OUTPUT].data)[0] == 0x1.fffffep127f);
        run_release(&run);
        scene_destroy(&scene);
    }
}
END_TEST

/* ---- refusals ---- */

START_TEST(what_has_no_such_products_is_refused)
{
    static const char *const field = "options.bf16_products";
    test_scene scene = bf16_scene(&sizes[1], 1);
    scene.request.options.mechanism.type = ATTN_LINEAR;
    expect_refusal(&scene.request, ATTN_ERR_FIELD, field, "belong to mechanism softmax");
    scene.request.options.mechanism.type = ATTN_SOFTMAX;
    attn_gradient_plan plan;
    attn_error err;
    ck_assert_int_eq(attn_gradient_plan_make(&(attn_gradient_request){.request = &scene.request}, &plan, &err),
                     ATTN_ERR_FIELD);
    ck_assert_str_eq(err.field, field);
    const attn_inputs inputs = scene.request.inputs;
    scene.request.inputs = (attn_inputs){.value = inputs.value, .scores = scene_normal(&scene, 1, SHAPE(1, 2, 9, 37))};
    scene.request.options.want = WANT(OUTPUT);
    expect_refusal(&scene.request, ATTN_ERR_FIELD, field, "starts at query and key");
    scene_destroy(&scene);
    scene = scene_create(ATTN_F64, 1);
    scene_attention(&scene, &sizes[1]);
    scene.request.options.bf16_products = true;
    expect_refusal(&scene.request, ATTN_ERR_FIELD, field, "need compute float32");
    scene_destroy(&scene);
}
END_TEST

CHECK_MAIN("bf16")
{
    tcase_add_loop_test(tests, outputs_are_those_of_rounded_operands, 0, COUNT(sizes));
    tcase_add_test(tests, operands_are_rounded_and_nothing_else_is);
    tcase_add_test(tests, scores_have_the_same_bits_in_all_kernels);
    tcase_add_test(tests, sums_of_values_have_the_same_bits_in_all_kernels);
    tcase_add_test(tests, the_instruction_changes_no_bit);
    tcase_add_test(tests, hidden_keys_and_values_have_no_influence);
    tcase_add_test(tests, a_value_beyond_bfloat16_stays_finite);
    tcase_add_test(tests, what_has_no_such_products_is_refused);
}
