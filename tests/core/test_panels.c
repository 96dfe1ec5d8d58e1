/* test_panels.c: weights packed once give the same bits as weights that are read as they lie, by every kernel. */
#include "attn/panels.h"

#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "kernel/kernel.h"
#include "scene.h"

#define WANT(step) (UINT32_C(1) << ATTN_STEP_##step)

enum { WEIGHTS_MAX = 5 };

typedef struct {
    struct attn_panels panels[WEIGHTS_MAX];
    void *data[WEIGHTS_MAX];
    size_t count;
} packed_layer;

/* The panels of a weight for the kernel, which has some for every weight of float32 if it has any. */
static void pack(packed_layer *packed, const attn_kernel *kernel, attn_layout layout, const attn_tensor *weight)
{
    if (weight == NULL)
        return;
    const attn_runtime runtime = attn_runtime_serial(kernel);
    const size_t bytes = attn_panels_bytes(kernel, layout, weight);
    ck_assert_int_eq(bytes > 0, kernel->multiplies_f32_faster && weight->dtype == ATTN_F32);
    if (bytes == 0)
        return;
    ck_assert_uint_ge(bytes, attn_tensor_count(weight) * sizeof(float));
    void *data = aligned_alloc(ATTN_ALIGNMENT, (bytes + ATTN_ALIGNMENT - 1) / ATTN_ALIGNMENT * ATTN_ALIGNMENT);
    ck_assert_ptr_nonnull(data);
    memset(data, 0xFF, bytes); /* NaN wherever nothing is written */
    attn_panels_write(&runtime, layout, weight, data);
    packed->data[packed->count] = data;
    packed->panels[packed->count] = (struct attn_panels){kernel, layout, data};
    ((attn_tensor *)(uintptr_t)weight)->panels = &packed->panels[packed->count++];
}

static void unpack(packed_layer *packed, attn_weights *weights)
{
    const attn_linear *all[] = {&weights->query, &weights->key, &weights->value, &weights->output, &weights->qkv};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]->weight != NULL)
            ((attn_tensor *)(uintptr_t)all[i]->weight)->panels = NULL;
    while (packed->count > 0)
        free(packed->data[--packed->count]);
}

static void expect_same(const test_run *with, const test_run *without)
{
    const attn_tensor *a = &with->result.step[ATTN_STEP_OUTPUT], *b = &without->result.step[ATTN_STEP_OUTPUT];
    ck_assert_mem_eq(a->data, b->data, attn_tensor_count(a) * attn_dtype_bytes(a->dtype));
}

/* Weights as they lie in the scene, with panels for one kernel, run by each. */
static void expect_same_bits(test_scene *scene)
{
    attn_weights *weights = &scene->request.weights;
    const uint32_t want = WANT(OUTPUT);
    const attn_kernel *packs, *runs;
    for (size_t p = 0; (packs = attn_kernel_at(p)) != NULL; p++)
        for (size_t r = 0; (runs = attn_kernel_at(r)) != NULL; r++) {
            packed_layer packed = {.count = 0};
            test_run without = run_kernel(&scene->request, runs, want);
            pack(&packed, packs, weights->layout, weights->query.weight);
            pack(&packed, packs, weights->layout, weights->key.weight);
            pack(&packed, packs, weights->layout, weights->value.weight);
            pack(&packed, packs, weights->layout, weights->output.weight);
            pack(&packed, packs, weights->layout, weights->qkv.weight);
            test_run with = run_kernel(&scene->request, runs, want);
            expect_same(&with, &without);
            run_release(&with);
            run_release(&without);
            unpack(&packed, weights);
        }
}

/* One row, few, groups of the register tile and a rest; columns that fill no panel; more features than a run sums. */
static const scene_size sizes[] = {
    {1, 1, 1, 1, 1, 64, 64},   {1, 2, 2, 2, 2, 32, 32},    {2, 4, 2, 5, 5, 16, 24}, {1, 3, 3, 13, 13, 33, 31},
    {1, 8, 8, 30, 30, 64, 64}, {3, 6, 2, 130, 130, 48, 8}, {1, 1, 1, 12, 12, 1, 1},
};
enum { SIZES = sizeof sizes / sizeof *sizes };

static attn_tensor *transposed(test_scene *scene, const attn_tensor *weight)
{
    return scene_copy(scene, scene_transposed(scene, weight));
}

START_TEST(separate_weights)
{
    for (int type = ATTN_F32; type <= ATTN_F64; type++) {
        test_scene scene = scene_create((attn_dtype)type, (uint64_t)_i);
        scene_layer(&scene, &sizes[_i], _i % 2 == 0 ? 300 : 37);
        scene.request.inputs.key = NULL;
        expect_same_bits(&scene);
        attn_weights *weights = &scene.request.weights;
        attn_linear *all[] = {&weights->query, &weights->key, &weights->value, &weights->output};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            all[i]->weight = transposed(&scene, all[i]->weight);
        weights->layout = ATTN_LAYOUT_OUT_IN;
        expect_same_bits(&scene);
        scene_destroy(&scene);
    }
}
END_TEST

START_TEST(a_matrix_a_head)
{
    const scene_size *n = &sizes[_i];
    const size_t d_model = 41;
    for (int layout = 0; layout < 2; layout++) {
        test_scene scene = scene_create(ATTN_F32, (uint64_t)_i);
        attn_request *request = &scene.request;
        attn_weights *weights = &request->weights;
        request->is_layer = true;
        request->options.num_heads = n->heads;
        request->options.kv_num_heads = n->kv_heads;
        request->inputs.query = scene_normal(&scene, 1, SHAPE(n->batch, n->q_len, d_model));
        weights->layout = layout == 0 ? ATTN_LAYOUT_IN_OUT : ATTN_LAYOUT_OUT_IN;
        const size_t in_k = layout == 0 ? d_model : n->d_k, k_in = layout == 0 ? n->d_k : d_model;
        const size_t in_v = layout == 0 ? d_model : n->d_v, v_in = layout == 0 ? n->d_v : d_model;
        weights->query.weight = scene_normal(&scene, 0.1, SHAPE(n->heads, in_k, k_in));
        weights->key.weight = scene_normal(&scene, 0.1, SHAPE(n->kv_heads, in_k, k_in));
        weights->value.weight = scene_normal(&scene, 0.1, SHAPE(n->kv_heads, in_v, v_in));
        expect_same_bits(&scene);
        scene_destroy(&scene);
    }
}
END_TEST

/* Slices of one matrix: those that begin with a panel and those that do not. */
START_TEST(fused_weights)
{
    const scene_size *n = &sizes[_i];
    for (int order = 0; order < 2; order++)
        for (int layout = 0; layout < 2; layout++) {
            const size_t d_model = 70, columns = (n->heads + 2 * n->kv_heads) * n->d_k;
            test_scene scene = scene_create(ATTN_F32, (uint64_t)_i);
            attn_request *request = &scene.request;
            request->is_layer = true;
            request->options.num_heads = n->heads;
            request->options.kv_num_heads = n->kv_heads;
            request->inputs.query = scene_normal(&scene, 1, SHAPE(n->batch, n->q_len, d_model));
            request->weights.qkv.weight = scene_normal(&scene, 0.1, SHAPE(d_model, columns));
            request->weights.qkv.bias = scene_normal(&scene, 1, SHAPE(columns));
            request->weights.qkv_order = order == 0 ? ATTN_QKV_STACKED : ATTN_QKV_PER_GROUP;
            request->weights.layout = layout == 0 ? ATTN_LAYOUT_IN_OUT : ATTN_LAYOUT_OUT_IN;
            if (layout == 1)
                request->weights.qkv.weight = transposed(&scene, request->weights.qkv.weight);
            expect_same_bits(&scene);
            scene_destroy(&scene);
        }
}
END_TEST

/* They are what the kernel reads that they are for, and no other; and for the layout that they are of. */
START_TEST(panels_of_another_kernel_or_layout_are_left_alone)
{
    test_scene scene = scene_create(ATTN_F32, 1);
    scene_layer(&scene, &sizes[4], 40);
    scene.request.inputs.key = NULL;
    attn_tensor *weight = (attn_tensor *)(uintptr_t)scene.request.weights.value.weight;
    void *zeros = calloc(64 * 8 * 64, sizeof(float));
    ck_assert_ptr_nonnull(zeros);
    const attn_kernel *kernel;
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
        const struct attn_panels panels = {kernel, ATTN_LAYOUT_IN_OUT, zeros},
                                 turned = {kernel, ATTN_LAYOUT_OUT_IN, zeros},
                                 others = {attn_kernel_at(k == 0 ? 1 : 0), ATTN_LAYOUT_IN_OUT, zeros};
        test_run plain = run_kernel(&scene.request, kernel, WANT(OUTPUT));
        weight->panels = &others;
        test_run left = run_kernel(&scene.request, kernel, WANT(OUTPUT));
        expect_same(&left, &plain);
        run_release(&left);
        weight->panels = &turned;
        left = run_kernel(&scene.request, kernel, WANT(OUTPUT));
        expect_same(&left, &plain);
        weight->panels = &panels;
        test_run read = run_kernel(&scene.request, kernel, WANT(OUTPUT));
        const attn_tensor *a = &plain.result.step[ATTN_STEP_OUTPUT], *b = &read.result.step[ATTN_STEP_OUTPUT];
        const bool differs = memcmp(a->data, b->data, attn_tensor_count(a) * sizeof(float)) != 0;
        ck_assert_int_eq(differs, kernel->multiplies_f32_faster);
        weight->panels = NULL;
        run_release(&plain);
        run_release(&left);
        run_release(&read);
    }
    free(zeros);
    scene_destroy(&scene);
}
END_TEST

/* What does not fit: other types and ranks, and weights with gaps. */
START_TEST(nothing_to_pack)
{
    test_scene scene = scene_create(ATTN_F32, 1);
    attn_tensor *weight = scene_normal(&scene, 1, SHAPE(4, 6)), *items = scene_normal(&scene, 1, SHAPE(1, 2, 4, 6));
    attn_tensor *empty = scene_tensor(&scene, ATTN_F32, SHAPE(0, 6)),
                *wide = scene_tensor(&scene, ATTN_F64, SHAPE(4, 6));
    const attn_kernel *kernel;
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
        ck_assert_int_eq(attn_panels_bytes(kernel, ATTN_LAYOUT_IN_OUT, weight) > 0, kernel->multiplies_f32_faster);
        ck_assert_uint_eq(attn_panels_bytes(kernel, ATTN_LAYOUT_IN_OUT, items), 0);
        ck_assert_uint_eq(attn_panels_bytes(kernel, ATTN_LAYOUT_IN_OUT, empty), 0);
        ck_assert_uint_eq(attn_panels_bytes(kernel, ATTN_LAYOUT_OUT_IN, wide), 0);
        ck_assert_uint_eq(attn_panels_bytes(kernel, ATTN_LAYOUT_OUT_IN, scene_transposed(&scene, weight)), 0);
    }
    scene_destroy(&scene);
}
END_TEST

int main(void)
{
    TCase *tests = check_case("panels");
    tcase_add_loop_test(tests, separate_weights, 0, SIZES);
    tcase_add_loop_test(tests, a_matrix_a_head, 0, SIZES);
    tcase_add_loop_test(tests, fused_weights, 0, SIZES);
    tcase_add_test(tests, panels_of_another_kernel_or_layout_are_left_alone);
    tcase_add_test(tests, nothing_to_pack);
    attn_blas_prepare();
    return check_run("panels", tests);
}
