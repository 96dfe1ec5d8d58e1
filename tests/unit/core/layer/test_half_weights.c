/*
 * test_half_weights.c: weights of 16 bits (core/src/kernel/products/gemm.inc.h, core/src/gemm/) give the bytes of the
 * same numbers in float32, in every kernel: the widening is exact.
 */
#include <string.h>

#include "attn/gradient.h"
#include "attn/multihead.h"
#include "check_main.h"
#include "scene.h"

enum { WEIGHTS = 9 };

static const attn_tensor **weight_of(attn_weights *w, size_t n)
{
    attn_affine *const all[WEIGHTS] = {&w->query,
                                       &w->key,
                                       &w->value,
                                       &w->qkv,
                                       &w->output,
                                       &w->gate,
                                       &w->feed_forward.up,
                                       &w->feed_forward.gate,
                                       &w->feed_forward.down};
    return &all[n]->weight;
}

/* The numbers rounded to the type; wide becomes the same numbers in float32. */
static attn_tensor *rounded(test_scene *scene, const attn_tensor *from, attn_dtype dtype, attn_tensor **wide)
{
    attn_tensor *half = scene_tensor(scene, dtype, from->rank, from->shape);
    const size_t count = attn_tensor_count(from);
    *wide = scene_tensor(scene, ATTN_F32, from->rank, from->shape);
    ck_assert_int_eq(attn_convert(half->data, dtype, from->data, ATTN_F32, count, NULL), ATTN_OK);
    ck_assert_int_eq(attn_convert((*wide)->data, ATTN_F32, half->data, dtype, count, NULL), ATTN_OK);
    return half;
}

/* Types alternate from weight to weight; all steps and every kernel. */
static void expect_same_when_narrow(test_scene *scene, attn_dtype first, const char *what)
{
    const attn_weights given = scene->request.weights;
    attn_weights narrow = given, wide = given;
    const attn_kernel *kernel;
    for (size_t n = 0; n < WEIGHTS; n++) {
        attn_tensor *widened;
        if (*weight_of(&narrow, n) == NULL)
            continue;
        *weight_of(&narrow, n) = rounded(scene, *weight_of(&narrow, n),
                                         (n % 2 == 0) == (first == ATTN_F16) ? ATTN_F16 : ATTN_BF16, &widened);
        *weight_of(&wide, n) = widened;
    }
    const attn_steps every = scene_every_step(&scene->request);
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
        scene->request.weights = wide;
        test_run expected = run_kernel(&scene->request, kernel, every);
        scene->request.weights = narrow;
        test_run got = run_kernel(&scene->request, kernel, every);
        expect_same_steps(&expected, &got, every, what);
        run_release(&got);
        run_release(&expected);
    }
    scene->request.weights = given;
}

static attn_tensor *transposed(test_scene *scene, const attn_tensor *weight)
{
    return scene_copy(scene, scene_transposed(scene, weight));
}

static void turn_weights(test_scene *scene)
{
    attn_weights *weights = &scene->request.weights;
    for (size_t n = 0; n < WEIGHTS; n++)
        if (*weight_of(weights, n) != NULL)
            *weight_of(weights, n) = transposed(scene, *weight_of(weights, n));
    weights->layout = ATTN_LAYOUT_OUT_IN;
}

/* One row, fewer rows than a register tile, several blocks of rows; columns that fill no panel; grouped heads. */
static const scene_size sizes[] = {
    {1, 1, 1, 1, 1, 64, 64},   {1, 2, 2, 2, 2, 70, 32},   {2, 4, 2, 5, 9, 16, 24}, {1, 3, 1, 13, 13, 33, 31},
    {1, 8, 8, 30, 30, 64, 64}, {3, 6, 2, 130, 65, 48, 8}, {1, 1, 1, 12, 12, 1, 1},
};
enum { SIZES = sizeof sizes / sizeof *sizes };

/* Self-attention, cross-attention with lengths of its own, each with and without biases, a gate and a cache. */
START_TEST(layers_give_the_bytes_of_float32)
{
    const scene_size *n = &sizes[_i];
    for (size_t variant = (size_t)_i % one_in(3); variant < 8; variant += one_in(3)) {
        test_scene scene = scene_create(ATTN_F32, variant);
        scene_layer(&scene, n, variant % 3 == 2 ? 800 : variant % 2 ? 300 : 37);
        if (n->q_len == n->kv_len && variant & 2)
            scene.request.inputs.key = NULL;
        if (variant & 4)
            scene_turn(&scene, n, variant + (size_t)_i);
        if (variant % 3 == 0)
            scene.request.weights.query.bias = scene.request.weights.output.bias = NULL;
        const attn_dtype first = variant % 4 < 2 ? ATTN_F16 : ATTN_BF16;
        expect_same_when_narrow(&scene, first, "in_out");
        turn_weights(&scene);
        expect_same_when_narrow(&scene, first, "out_in");
        scene_destroy(&scene);
    }
}
END_TEST

START_TEST(blocks_give_the_bytes_of_float32)
{
    const scene_size *n = &sizes[_i];
    for (int variant = 0; variant < 4; variant++) {
        test_scene scene = scene_create(ATTN_F32, (uint64_t)variant);
        scene_layer(&scene, n, 44);
        scene_feed_forward(&scene, 44, 270, ATTN_ACTIVATION_GELU, variant & 1);
        scene.request.options.residual = true;
        if (variant & 2)
            turn_weights(&scene);
        expect_same_when_narrow(&scene, variant & 1 ? ATTN_F16 : ATTN_BF16, "a block");
        scene_destroy(&scene);
    }
}
END_TEST

START_TEST(a_matrix_a_head_gives_the_bytes_of_float32)
{
    const scene_size *n = &sizes[_i];
    const size_t d_model = 41;
    for (int layout = ATTN_LAYOUT_IN_OUT; layout <= ATTN_LAYOUT_OUT_IN; layout++) {
        test_scene scene = scene_create(ATTN_F32, (uint64_t)_i);
        attn_request *request = &scene.request;
        attn_weights *weights = &request->weights;
        const bool is_in_out = layout == ATTN_LAYOUT_IN_OUT;
        request->is_layer = true;
        request->options.num_heads = n->heads;
        request->options.kv_num_heads = n->kv_heads;
        request->inputs.query = scene_normal(&scene, 1, SHAPE(n->batch, n->q_len, d_model));
        weights->layout = (attn_layout)layout;
        const size_t in_k = is_in_out ? d_model : n->d_k, k_in = is_in_out ? n->d_k : d_model;
        const size_t in_v = is_in_out ? d_model : n->d_v, v_in = is_in_out ? n->d_v : d_model;
        weights->query.weight = scene_normal(&scene, 0.1, SHAPE(n->heads, in_k, k_in));
        weights->key.weight = scene_normal(&scene, 0.1, SHAPE(n->kv_heads, in_k, k_in));
        weights->value.weight = scene_normal(&scene, 0.1, SHAPE(n->kv_heads, in_v, v_in));
        if (is_in_out)
            weights->output.weight = scene_normal(&scene, 0.1, SHAPE(n->heads, n->d_v, d_model));
        expect_same_when_narrow(&scene, ATTN_F16, "a matrix a head");
        scene_destroy(&scene);
    }
}
END_TEST

/* Stacked and by groups; with more features than the BLAS takes at once. */
START_TEST(fused_weights_give_the_bytes_of_float32)
{
    const scene_size *n = &sizes[_i];
    for (size_t variant = (size_t)_i % one_in(3); variant < 8; variant += one_in(3)) {
        test_scene scene = scene_create(ATTN_F32, variant);
        attn_request *request = &scene.request;
        const size_t columns = (n->heads + 2 * n->kv_heads) * n->d_k, inner = variant < 4 ? 70 : 4100;
        if (inner * columns > 1000000) {
            scene_destroy(&scene);
            continue;
        }
        request->is_layer = true;
        request->options.num_heads = n->heads;
        request->options.kv_num_heads = n->kv_heads;
        request->inputs.query = scene_normal(&scene, 1, SHAPE(n->batch, n->q_len, inner));
        request->weights.qkv.weight = scene_normal(&scene, 0.1, SHAPE(inner, columns));
        request->weights.qkv.bias = scene_normal(&scene, 1, SHAPE(columns));
        request->weights.qkv_order = variant & 1 ? ATTN_QKV_STACKED : ATTN_QKV_PER_GROUP;
        if (variant & 2)
            turn_weights(&scene);
        expect_same_when_narrow(&scene, variant & 1 ? ATTN_F16 : ATTN_BF16, "a fused weight");
        scene_destroy(&scene);
    }
}
END_TEST

/* Every number of 16 bits as a weight of one feature, which is 1: a row that is a product, and rows that are packed. */
START_TEST(every_half_is_widened_exactly)
{
    enum { ALL = 1 << 16 };
    const attn_kernel *kernel;
    for (int type = ATTN_F16; type <= ATTN_BF16; type++)
        for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++)
            for (int layout = ATTN_LAYOUT_IN_OUT; layout <= ATTN_LAYOUT_OUT_IN; layout++) {
                test_scene scene = scene_create(ATTN_F32, 1);
                const bool is_in_out = layout == ATTN_LAYOUT_IN_OUT;
                attn_request *request = &scene.request;
                attn_tensor *one = scene_tensor(&scene, ATTN_F32, SHAPE(1, 1)),
                            *half =
                                scene_tensor(&scene, (attn_dtype)type, SHAPE(is_in_out ? 1 : ALL, is_in_out ? ALL : 1)),
                            *zeros = scene_tensor(&scene, ATTN_F32, SHAPE(1, 1));
                float expected[4];
                tensor_set(one, 0, 1);
                for (size_t n = 0; n < ALL; n++)
                    ((uint16_t *)half->data)[n] = (uint16_t)n;
                request->is_layer = true;
                request->inputs.query = one;
                request->weights = (attn_weights){
                    .layout = (attn_layout)layout, .query.weight = zeros, .key.weight = zeros, .value.weight = half};
                test_run run = run_kernel(request, kernel, WANT(V));
                const attn_tensor *v = &run.result.step[ATTN_STEP_V];
                for (size_t n = 0; n < ALL; n++) {
                    const double got = tensor_get(v, n);
                    ck_assert_int_eq(attn_convert(expected, ATTN_F32, (uint16_t *)half->data + n, half->dtype, 1, NULL),
                                     ATTN_OK);
                    if (expected[0] == expected[0] ? got != (double)expected[0] : got == got)
                        ck_abort_msg("%zx is %g, not %g", n, got, (double)expected[0]);
                }
                run_release(&run);
                scene_destroy(&scene);
            }
}
END_TEST

START_TEST(float64_biases_norms_and_gradients_refuse_halves)
{
    attn_tensor *wide;
    for (int type = ATTN_F32; type <= ATTN_F64; type++) {
        test_scene scene = scene_create((attn_dtype)type, 2);
        scene_layer(&scene, &sizes[2], 12);
        attn_affine *key = &scene.request.weights.key;
        if (type == ATTN_F64) {
            key->weight = scene_tensor(&scene, ATTN_BF16, key->weight->rank, key->weight->shape);
            expect_refusal(&scene.request, ATTN_ERR_FIELD, "weights.key.weight", "must be float64, got bfloat16");
        } else {
            key->bias = rounded(&scene, key->bias, ATTN_F16, &wide);
            expect_refusal(&scene.request, ATTN_ERR_FIELD, "weights.key.bias", "must be float32, got float16");
        }
        scene_destroy(&scene);
    }
    for (size_t n = 0; n < WEIGHTS; n++) {
        test_scene scene = scene_create(ATTN_F32, 2);
        scene_layer(&scene, &sizes[2], 12);
        scene_feed_forward(&scene, 12, 20, ATTN_ACTIVATION_GELU, true);
        const attn_tensor **weight = weight_of(&scene.request.weights, n);
        attn_gradient_plan plan;
        attn_error err;
        const attn_tensor *grad = scene_normal(&scene, 1, SHAPE(2, 5, 12));
        const attn_gradient_request asked = {.request = &scene.request, .grad_output = grad};
        if (*weight != NULL) {
            *weight = rounded(&scene, *weight, ATTN_BF16, &wide);
            ck_assert_int_eq(attn_gradient_plan_make(&asked, &plan, &err), ATTN_ERR_FIELD);
            ck_assert_str_eq(err.message, "gradients need weights in float32, got bfloat16");
        }
        scene_destroy(&scene);
    }
}
END_TEST

CHECK_MAIN("half weights")
{
    tcase_add_loop_test(tests, layers_give_the_bytes_of_float32, 0, SIZES);
    tcase_add_loop_test(tests, blocks_give_the_bytes_of_float32, 0, SIZES);
    tcase_add_loop_test(tests, a_matrix_a_head_gives_the_bytes_of_float32, 0, SIZES);
    tcase_add_loop_test(tests, fused_weights_give_the_bytes_of_float32, 0, SIZES);
    tcase_add_test(tests, every_half_is_widened_exactly);
    tcase_add_test(tests, float64_biases_norms_and_gradients_refuse_halves);
}
