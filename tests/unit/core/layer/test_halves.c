/*
 * test_halves.c: operands of 16 bits (core/src/kernel/vector/widen.inc.h) give the bytes of the same numbers in float32, in
 * every kernel: the widening is exact.
 */
#include <math.h>
#include <string.h>

#include "attn/diagnose.h"
#include "attn/gradient.h"
#include "attn/multihead.h"
#include "check_main.h"
#include "mask_cases.h"
#include "scene.h"

/* A tensor of 16 bits, and the same numbers in float32. */
struct pair {
    attn_tensor *narrow, *wide;
};

/* Rounds the numbers to the type, and stores them with gaps. */
static struct pair round_to(test_scene *scene, const attn_tensor *from, attn_dtype dtype)
{
    size_t shape[ATTN_MAX_RANK];
    struct pair made;
    memcpy(shape, from->shape, sizeof shape);
    shape[from->rank - 1] += 3;
    shape[from->rank - 2] += 1;
    made.narrow = scene_tensor(scene, dtype, from->rank, shape);
    memcpy(made.narrow->shape, from->shape, sizeof from->shape);
    made.wide = scene_tensor(scene, ATTN_F32, from->rank, from->shape);
    bool fit = true; /* asserted once: each assertion is a system call */
    for (size_t at = 0, rest; at < attn_tensor_count(from); at++) {
        ptrdiff_t place = 0;
        rest = at;
        for (int axis = from->rank; axis-- > 0; rest /= from->shape[axis])
            place += (ptrdiff_t)(rest % from->shape[axis]) * made.narrow->stride[axis];
        const float number = (float)tensor_get(from, at);
        uint16_t *half = (uint16_t *)made.narrow->data + place;
        fit &= attn_convert(half, dtype, &number, ATTN_F32, 1, NULL) == ATTN_OK;
        fit &= attn_convert((float *)made.wide->data + at, ATTN_F32, half, dtype, 1, NULL) == ATTN_OK;
    }
    ck_assert(fit);
    return made;
}

enum { INPUTS = 5 };

static const attn_tensor **input_at(attn_inputs *inputs, size_t n)
{
    const attn_tensor **const all[INPUTS] = {&inputs->query, &inputs->key, &inputs->value, &inputs->past_key,
                                             &inputs->past_value};
    return all[n];
}

/* The inputs whose bit is set in which become 16 bits wide; types alternate from first on. */
static void expect_same_when_narrow(test_scene *scene, const attn_kernel *kernel, unsigned which, attn_dtype first,
                                    const char *what)
{
    const attn_inputs given = scene->request.inputs;
    attn_inputs narrow = given, wide = given;
    for (size_t n = 0; n < INPUTS; n++) {
        if (!(which >> n & 1) || *input_at(&narrow, n) == NULL)
            continue;
        const struct pair pair =
            round_to(scene, *input_at(&narrow, n), (n % 2 == 0) == (first == ATTN_F16) ? ATTN_F16 : ATTN_BF16);
        *input_at(&narrow, n) = pair.narrow;
        *input_at(&wide, n) = pair.wide;
    }
    const attn_steps every = scene_every_step(&scene->request);
    scene->request.inputs = wide;
    test_run expected = run_kernel(&scene->request, kernel, every);
    scene->request.inputs = narrow;
    test_run got = run_kernel(&scene->request, kernel, every);
    expect_same_steps(&expected, &got, every, what);
    run_release(&got);
    got = run_kernel(&scene->request, kernel, WANT(OUTPUT));
    expect_same_steps(&expected, &got, WANT(OUTPUT), what);
    run_release(&got);
    run_release(&expected);
    scene->request.inputs = given;
}

START_TEST(halves_give_the_bytes_of_float32)
{
    const attn_kernel *kernel;
    for (size_t s = 0; s < SCENE_PATHS; s++)
        for (size_t which = 1 + s % one_in(2); which < 8; which += one_in(2))
            for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
                test_scene scene = scene_create(ATTN_F32, s);
                scene_attention(&scene, &scene_paths[s]);
                expect_same_when_narrow(&scene, kernel, (unsigned)which, which / 2 % 2 ? ATTN_F16 : ATTN_BF16,
                                        "halves");
                scene_destroy(&scene);
            }
}
END_TEST

START_TEST(caches_of_halves_give_the_bytes_of_float32)
{
    const attn_kernel *kernel;
    for (size_t s = 0; s < SCENE_PATHS; s++)
        for (size_t type = ATTN_F16 + s % one_in(2); type <= ATTN_BF16; type += one_in(2))
            for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
                test_scene scene = scene_create(ATTN_F32, s);
                scene_attention(&scene, &scene_paths[s]);
                scene_past(&scene, &scene_paths[s], scene_paths[s].kv_len - 5);
                expect_same_when_narrow(&scene, kernel, 24, (attn_dtype)type, "a cache of halves");
                expect_same_when_narrow(&scene, kernel, 31, (attn_dtype)type, "all halves");
                scene_destroy(&scene);
            }
}
END_TEST

/* They are widened, and then rounded like float32. */
START_TEST(halves_go_with_products_in_bfloat16)
{
    const attn_kernel *kernel;
    for (size_t s = 0; s < SCENE_PATHS; s++)
        for (size_t type = ATTN_F16 + s % one_in(2); type <= ATTN_BF16; type += one_in(2))
            for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
                test_scene scene = scene_create(ATTN_F32, s);
                scene_attention(&scene, &scene_paths[s]);
                scene.request.options.bf16_products = true;
                expect_same_when_narrow(&scene, kernel, 7, (attn_dtype)type, "halves");
                scene_past(&scene, &scene_paths[s], scene_paths[s].kv_len - 5);
                expect_same_when_narrow(&scene, kernel, 24, (attn_dtype)type, "a cache of halves");
                expect_same_when_narrow(&scene, kernel, 31, (attn_dtype)type, "all halves");
                scene_destroy(&scene);
            }
}
END_TEST

START_TEST(masks_norms_rotations_and_biases_go_with_halves)
{
    size_t masks = 0;
    while (mask_case_at(masks) != NULL)
        masks++;
    for (size_t variant = 0; variant < 48; variant += one_in(3)) {
        const scene_size *n = &scene_paths[variant % 5];
        test_scene scene = scene_create(ATTN_F32, variant);
        scene_attention(&scene, n);
        if (variant % 2)
            scene_turn(&scene, n, variant / 2);
        mask_case_at(variant % masks)->apply(&scene, n);
        expect_same_when_narrow(&scene, NULL, 31, variant % 4 < 2 ? ATTN_F16 : ATTN_BF16, "a variant");
        scene_destroy(&scene);
    }
}
END_TEST

START_TEST(a_layer_reads_a_cache_of_halves)
{
    for (int type = ATTN_F16; type <= ATTN_BF16; type++) {
        test_scene scene = scene_create(ATTN_F32, 4);
        scene_layer(&scene, &scene_paths[1], 12);
        scene_past(&scene, &scene_paths[1], 20);
        expect_same_when_narrow(&scene, NULL, 24, (attn_dtype)type, "a layer");
        scene_destroy(&scene);
    }
}
END_TEST

/* Keys are in one or two segments; pairs, and sums over blocks; a value that is not finite is added apart. */
START_TEST(linear_and_performer_read_halves)
{
    const attn_kernel *kernel;
    for (size_t variant = 0; variant < 32; variant += one_in(3))
        for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
            const scene_size *n = &scene_paths[1 + variant % 4];
            test_scene scene = scene_create(ATTN_F32, variant);
            scene_attention(&scene, n);
            scene.request.options.mechanism.type = variant / 4 % 2 ? ATTN_PERFORMER : ATTN_LINEAR;
            scene.request.options.mechanism.features = variant / 4 % 2 ? 8 : 0;
            scene.request.masks.causal = variant / 8 % 2;
            if (variant < 16)
                scene_past(&scene, n, n->kv_len - 7);
            else
                tensor_set((attn_tensor *)(uintptr_t)scene.request.inputs.value, n->d_v, (double)INFINITY);
            expect_same_when_narrow(&scene, kernel, 7, ATTN_F16, "new tokens");
            expect_same_when_narrow(&scene, kernel, 31, ATTN_BF16, "all");
            scene_destroy(&scene);
        }
}
END_TEST

/* Every finite number of 16 bits, subnormal ones included, as the value of a key that a query sees alone. */
START_TEST(every_half_is_widened_exactly)
{
    const attn_kernel *kernel;
    enum { WIDTH = 256 };
    for (int type = ATTN_F16; type <= ATTN_BF16; type++)
        for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
            test_scene scene = scene_create(ATTN_F32, 1);
            attn_inputs *in = &scene.request.inputs;
            in->query = scene_normal(&scene, 1, SHAPE(WIDTH, 1, 1, 4));
            in->key = scene_normal(&scene, 1, SHAPE(WIDTH, 1, 1, 4));
            attn_tensor *value = scene_tensor(&scene, (attn_dtype)type, SHAPE(WIDTH, 1, 1, WIDTH));
            for (size_t n = 0; n < WIDTH * WIDTH; n++)
                ((uint16_t *)value->data)[n] = (uint16_t)n;
            in->value = value;
            test_run run = run_kernel(&scene.request, kernel, WANT(OUTPUT));
            for (size_t n = 0; n < WIDTH * WIDTH; n++) {
                float expected = 0;
                const bool fits =
                    attn_convert(&expected, ATTN_F32, (uint16_t *)value->data + n, value->dtype, 1, NULL) == ATTN_OK;
                const double got = tensor_get(&run.result.step[ATTN_STEP_OUTPUT], n);
                if (!fits || (isnan(expected) ? !isnan(got) : got != (double)expected))
                    ck_abort_msg("%zx is %g, not %g", n, got, (double)expected);
            }
            run_release(&run);
            scene_destroy(&scene);
        }
}
END_TEST

START_TEST(halves_that_are_not_finite_count_for_the_rows_that_see_them)
{
    for (size_t q_len = 3; q_len < 50; q_len += 30) {
        const scene_size n = {1, 2, 1, q_len, 70, 16, 24};
        test_scene scene = scene_create(ATTN_F32, 2);
        scene_attention(&scene, &n);
        attn_tensor *value = scene_copy(&scene, scene.request.inputs.value);
        tensor_set(value, 67 * n.d_v, (double)INFINITY);
        scene.request.inputs.value = value;
        scene.request.masks.causal = true;
        expect_same_when_narrow(&scene, NULL, 7, ATTN_F16, "infinity");
        scene_destroy(&scene);
    }
}
END_TEST

START_TEST(a_finding_counts_halves_that_are_not_finite)
{
    test_scene scene = scene_create(ATTN_F32, 2);
    scene_attention(&scene, &scene_paths[1]);
    const struct pair pair = round_to(&scene, scene.request.inputs.value, ATTN_BF16);
    ((uint16_t *)pair.narrow->data)[1] = 0x7F80;
    scene.request.inputs.value = pair.narrow;
    test_run run = run_kernel(&scene.request, NULL, WANT(OUTPUT));
    attn_runtime runtime = attn_runtime_serial(NULL);
    ck_assert_int_eq(attn_diagnose(&run.plan, NULL, &runtime, run.arena, &run.result, NULL), ATTN_OK);
    ck_assert_uint_eq(run.result.findings.not_finite_fields, 2);
    ck_assert_str_eq(run.result.findings.not_finite[1].field, "inputs.value");
    ck_assert_uint_eq(run.result.findings.not_finite[1].count, 1);
    run_release(&run);
    scene_destroy(&scene);
}
END_TEST

START_TEST(float64_layers_and_gradients_refuse_halves)
{
    test_scene scene = scene_create(ATTN_F64, 2);
    scene_attention(&scene, &scene_paths[1]);
    scene.request.inputs.key = round_to(&scene, scene.request.inputs.key, ATTN_F16).narrow;
    expect_refusal(&scene.request, ATTN_ERR_FIELD, "inputs.key", "key must be float64, got float16");
    scene_destroy(&scene);
    scene = scene_create(ATTN_F32, 2);
    scene_layer(&scene, &scene_paths[1], 12);
    scene.request.inputs.query = round_to(&scene, scene.request.inputs.query, ATTN_F16).narrow;
    expect_refusal(&scene.request, ATTN_ERR_FIELD, "inputs.query", "query must be float32, got float16");
    scene_destroy(&scene);
    scene = scene_create(ATTN_F32, 2);
    scene_attention(&scene, &scene_paths[1]);
    scene.request.inputs.value = round_to(&scene, scene.request.inputs.value, ATTN_BF16).narrow;
    attn_gradient_plan plan;
    attn_error err;
    const attn_tensor *grad = scene_normal(&scene, 1, SHAPE(2, 4, 3, 24));
    const attn_gradient_request asked = {.request = &scene.request, .grad_output = grad};
    ck_assert_int_eq(attn_gradient_plan_make(&asked, &plan, &err), ATTN_ERR_FIELD);
    ck_assert_str_eq(err.field, "inputs.value");
    ck_assert_str_eq(err.message, "gradients need inputs in float32, got bfloat16");
    scene_destroy(&scene);
}
END_TEST

CHECK_MAIN("halves")
{
    tcase_add_test(tests, halves_give_the_bytes_of_float32);
    tcase_add_test(tests, caches_of_halves_give_the_bytes_of_float32);
    tcase_add_test(tests, halves_go_with_products_in_bfloat16);
    tcase_add_test(tests, masks_norms_rotations_and_biases_go_with_halves);
    tcase_add_test(tests, a_layer_reads_a_cache_of_halves);
    tcase_add_test(tests, linear_and_performer_read_halves);
    tcase_add_test(tests, every_half_is_widened_exactly);
    tcase_add_test(tests, halves_that_are_not_finite_count_for_the_rows_that_see_them);
    tcase_add_test(tests, a_finding_counts_halves_that_are_not_finite);
    tcase_add_test(tests, float64_layers_and_gradients_refuse_halves);
}
