/* test_panels.c: weights packed once give the same bits as weights that are read as they lie, by every kernel. */
#include "attn/panels.h"

#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "kernel/entries.h"
#include "scene.h"

enum { WEIGHTS_MAX = 5 };

typedef struct {
    attn_tensor *weight;
    void *numbers, *hidden; /* the numbers of the weight, and their replacement */
    struct attn_panels panels;
    void *data;
} packed_weight;

typedef struct {
    packed_weight weights[WEIGHTS_MAX];
    size_t count;
} packed_layer;

static void *memory_of_nan(size_t bytes)
{
    void *data = aligned_alloc(ATTN_ALIGNMENT, (bytes + ATTN_ALIGNMENT - 1) / ATTN_ALIGNMENT * ATTN_ALIGNMENT);
    ck_assert_ptr_nonnull(data);
    return memset(data, 0xFF, bytes);
}

/* The panels of a weight for the kernel, which has some for every weight but float64 if it has any. */
static void pack(packed_layer *packed, const attn_kernel *kernel, attn_layout layout, const attn_tensor *weight)
{
    if (weight == NULL)
        return;
    const attn_runtime runtime = attn_runtime_serial(kernel);
    const size_t bytes = attn_panels_bytes(kernel, layout, weight);
    ck_assert_int_eq(bytes > 0, kernel->f32->multiplies_faster && weight->dtype != ATTN_F64);
    if (bytes == 0)
        return;
    ck_assert_uint_ge(bytes, attn_tensor_count(weight) * attn_dtype_bytes(weight->dtype));
    packed_weight *made = &packed->weights[packed->count++];
    *made = (packed_weight){.weight = (attn_tensor *)(uintptr_t)weight, .numbers = weight->data};
    made->data = memory_of_nan(bytes); /* where nothing is written */
    attn_panels_write(&runtime, layout, weight, made->data);
    made->panels = (struct attn_panels){kernel, layout, made->data};
    made->weight->panels = &made->panels;
}

static void pack_all(packed_layer *packed, const attn_weights *weights, const attn_kernel *kernel)
{
    packed->count = 0;
    const attn_affine *all[] = {&weights->query, &weights->key, &weights->value, &weights->output, &weights->qkv};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        pack(packed, kernel, weights->layout, all[i]->weight);
}

/* Leaves the panels alone to be read: a product that took a number from the weight itself would be NaN. */
static void hide_numbers(packed_layer *packed)
{
    for (size_t i = 0; i < packed->count; i++) {
        packed_weight *one = &packed->weights[i];
        one->weight->data = one->hidden = memory_of_nan(attn_tensor_count(one->weight) * sizeof(float));
    }
}

static void unpack(packed_layer *packed)
{
    for (size_t i = 0; i < packed->count; i++) {
        const packed_weight *one = &packed->weights[i];
        one->weight->data = one->numbers;
        one->weight->panels = NULL;
        free(one->hidden);
        free(one->data);
    }
}

static void expect_same(const test_run *with, const test_run *without)
{
    const attn_tensor *a = &with->result.step[ATTN_STEP_OUTPUT], *b = &without->result.step[ATTN_STEP_OUTPUT];
    ck_assert_mem_eq(a->data, b->data, attn_tensor_count(a) * attn_dtype_bytes(a->dtype));
}

/* The same numbers in both types, as far as 16 bits hold them. */
static void round_weight(test_scene *scene, const attn_tensor **weight, attn_dtype dtype)
{
    if (*weight == NULL)
        return;
    attn_tensor *half = scene_tensor(scene, dtype, (*weight)->rank, (*weight)->shape);
    const size_t count = attn_tensor_count(*weight);
    ck_assert_int_eq(attn_convert(half->data, dtype, (*weight)->data, (*weight)->dtype, count, NULL), ATTN_OK);
    *weight = half;
}

/* Weights as they lie in the scene, with panels for one kernel, run by each. */
static void expect_same_with_panels(test_scene *scene)
{
    const attn_steps want = WANT(OUTPUT);
    const attn_kernel *packs, *runs;
    for (size_t r = 0; (runs = attn_kernel_at(r)) != NULL; r++) {
        test_run without = run_kernel(&scene->request, runs, want);
        for (size_t p = 0; (packs = attn_kernel_at(p)) != NULL; p++) {
            packed_layer packed; /* refers to itself */
            pack_all(&packed, &scene->request.weights, packs);
            if (packs == runs)
                hide_numbers(&packed);
            test_run with = run_kernel(&scene->request, runs, want);
            expect_same(&with, &without);
            run_release(&with);
            unpack(&packed);
        }
        run_release(&without);
    }
}

/* Weights of the scene's type, and with float32 of 16 bits. */
static void expect_same_bits(test_scene *scene)
{
    const attn_weights given = scene->request.weights;
    attn_weights *w = &scene->request.weights;
    expect_same_with_panels(scene);
    for (int type = ATTN_F16; type <= ATTN_BF16 && scene->type == ATTN_F32; type++) {
        round_weight(scene, &w->query.weight, (attn_dtype)type);
        round_weight(scene, &w->key.weight, type == ATTN_F16 ? ATTN_BF16 : ATTN_F16);
        round_weight(scene, &w->value.weight, (attn_dtype)type);
        round_weight(scene, &w->output.weight, (attn_dtype)type);
        round_weight(scene, &w->qkv.weight, (attn_dtype)type);
        expect_same_with_panels(scene);
        *w = given;
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
        attn_affine *all[] = {&weights->query, &weights->key, &weights->value, &weights->output};
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

/* Slices of one matrix that begin anywhere in a panel, and end anywhere. */
static const struct {
    size_t heads, kv_heads, d;
} fused[] = {{5, 5, 1}, {3, 3, 7}, {6, 3, 8}, {4, 4, 20}, {4, 2, 33}, {3, 3, 40}, {6, 2, 40}, {4, 1, 64}};
static const size_t fused_rows[] = {1, 2, 5, 48, 130};
enum { FUSED = sizeof fused / sizeof *fused, FUSED_ROWS = sizeof fused_rows / sizeof *fused_rows };

/* Whether there are biases, several items, a key of its own, and more features than a run sums, depends on variant. */
static void fused_layer(test_scene *scene, size_t heads_of, size_t rows_of, size_t variant)
{
    attn_request *request = &scene->request;
    const size_t heads = fused[heads_of].heads, kv_heads = fused[heads_of].kv_heads, rows = fused_rows[rows_of];
    const size_t columns = (heads + 2 * kv_heads) * fused[heads_of].d, inner = variant & 1 ? 300 : 70;
    const size_t batch = variant & 2 ? 2 : 1;
    request->is_layer = true;
    request->options.num_heads = heads;
    request->options.kv_num_heads = kv_heads;
    request->inputs.query = scene_normal(scene, 1, SHAPE(batch, rows, inner));
    if (variant & 4)
        request->inputs.key = scene_normal(scene, 1, SHAPE(batch, rows, inner));
    request->weights.qkv.weight = scene_normal(scene, 0.1, SHAPE(inner, columns));
    if (variant & 8)
        request->weights.qkv.bias = scene_normal(scene, 1, SHAPE(columns));
}

START_TEST(fused_weights)
{
    size_t variant = (size_t)_i;
    for (int order = 0; order < 2; order++)
        for (size_t r = 0; r < FUSED_ROWS; r++, variant += 3) /* 3 shares no factor with the 16 variants */
            for (int layout = 0; layout < 2; layout++) {
                test_scene scene = scene_create(ATTN_F32, variant);
                attn_weights *weights = &scene.request.weights;
                fused_layer(&scene, (size_t)_i, r, variant);
                weights->qkv_order = order == 0 ? ATTN_QKV_STACKED : ATTN_QKV_PER_GROUP;
                weights->layout = layout == 0 ? ATTN_LAYOUT_IN_OUT : ATTN_LAYOUT_OUT_IN;
                if (layout == 1)
                    weights->qkv.weight = transposed(&scene, weights->qkv.weight);
                expect_same_bits(&scene);
                scene_destroy(&scene);
            }
}
END_TEST

/* Only the kernel of the panels reads them, and only in their layout. */
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
        ck_assert_int_eq(differs, kernel->f32->multiplies_faster);
        weight->panels = NULL;
        run_release(&plain);
        run_release(&left);
        run_release(&read);
    }
    free(zeros);
    scene_destroy(&scene);
}
END_TEST

/* Weights without panels: other types and ranks, and weights with gaps. */
START_TEST(nothing_to_pack)
{
    test_scene scene = scene_create(ATTN_F32, 1);
    attn_tensor *weight = scene_normal(&scene, 1, SHAPE(4, 6)), *items = scene_normal(&scene, 1, SHAPE(1, 2, 4, 6));
    attn_tensor *empty = scene_tensor(&scene, ATTN_F32, SHAPE(0, 6)),
                *wide = scene_tensor(&scene, ATTN_F64, SHAPE(4, 6));
    const attn_kernel *kernel;
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
        ck_assert_int_eq(attn_panels_bytes(kernel, ATTN_LAYOUT_IN_OUT, weight) > 0, kernel->f32->multiplies_faster);
        ck_assert_uint_eq(attn_panels_bytes(kernel, ATTN_LAYOUT_IN_OUT, items), 0);
        ck_assert_uint_eq(attn_panels_bytes(kernel, ATTN_LAYOUT_IN_OUT, empty), 0);
        ck_assert_uint_eq(attn_panels_bytes(kernel, ATTN_LAYOUT_OUT_IN, wide), 0);
        ck_assert_uint_eq(attn_panels_bytes(kernel, ATTN_LAYOUT_OUT_IN, scene_transposed(&scene, weight)), 0);
    }
    scene_destroy(&scene);
}
END_TEST

static size_t looks, looks_allowed;

static bool look(void *context)
{
    (void)context;
    return ++looks > looks_allowed;
}

/* The same numbers in both layouts: feature f of column c is f * COLUMNS + c. */
enum { FEATURES = 100001, COLUMNS = 5, PANEL_LOOKS = FEATURES * 8 / (1 << 17) /* a panel has 8 columns or more */ };

static void expect_looks(const attn_kernel *kernel, attn_layout layout, const attn_tensor *weight, float *data)
{
    const size_t width = kernel->f32->panel_columns;
    attn_runtime runtime = attn_runtime_serial(kernel);
    runtime.is_cancelled = look;
    looks = 0;
    looks_allowed = SIZE_MAX;
    attn_panels_write(&runtime, layout, weight, data);
    ck_assert_uint_ge(looks, PANEL_LOOKS);
    for (size_t i = 0; i < (size_t)FEATURES * COLUMNS; i++)
        if (data[i / COLUMNS * width + i % COLUMNS] != (float)i)
            ck_abort_msg("number %zu differs", i);
    looks = 0;
    looks_allowed = 2;
    attn_panels_write(&runtime, layout, weight, data);
    ck_assert_uint_eq(looks, 3);
}

/* A panel is packed piece by piece, and each piece looks. */
START_TEST(a_panel_of_many_features_looks)
{
    const bool is_in_out = _i == 0;
    const attn_layout layout = is_in_out ? ATTN_LAYOUT_IN_OUT : ATTN_LAYOUT_OUT_IN;
    float *numbers = malloc((size_t)FEATURES * COLUMNS * sizeof *numbers);
    const size_t shape[] = {is_in_out ? FEATURES : COLUMNS, is_in_out ? COLUMNS : FEATURES};
    const attn_tensor weight = attn_tensor_view(numbers, ATTN_F32, 2, shape);
    const attn_kernel *kernel;
    ck_assert_ptr_nonnull(numbers);
    for (size_t i = 0; i < (size_t)FEATURES * COLUMNS; i++)
        numbers[is_in_out ? i : i % COLUMNS * FEATURES + i / COLUMNS] = (float)i;
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
        const size_t bytes = attn_panels_bytes(kernel, layout, &weight);
        float *data = bytes > 0 ? memory_of_nan(bytes) : NULL;
        if (data != NULL)
            expect_looks(kernel, layout, &weight, data);
        free(data);
    }
    free(numbers);
}
END_TEST

/* data[panel][feature][column of it], padded with 0: whole panels and a rest, features with a rest of a cache line. */
START_TEST(panels_of_16_bits_have_the_numbers_of_the_weight)
{
    enum { FEW = 77, MANY = 99 };
    static uint16_t numbers[FEW * MANY];
    const bool is_in_out = _i == 0;
    const size_t shape[] = {is_in_out ? FEW : MANY, is_in_out ? MANY : FEW};
    const attn_tensor weight = attn_tensor_view(numbers, ATTN_BF16, 2, shape);
    const attn_layout layout = is_in_out ? ATTN_LAYOUT_IN_OUT : ATTN_LAYOUT_OUT_IN;
    const attn_kernel *kernel;
    for (size_t i = 0; i < FEW * MANY; i++)
        numbers[i] = (uint16_t)(i + 1);
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
        const attn_runtime runtime = attn_runtime_serial(kernel);
        const size_t bytes = attn_panels_bytes(kernel, layout, &weight), width = kernel->f32->panel_columns;
        uint16_t *data = bytes > 0 ? memory_of_nan(bytes) : NULL;
        if (data != NULL)
            attn_panels_write(&runtime, layout, &weight, data);
        for (size_t at = 0; at < bytes / sizeof *data; at++) {
            const size_t feature = at / width % FEW, column = at / width / FEW * width + at % width;
            const size_t from = is_in_out ? feature * MANY + column : column * FEW + feature;
            ck_assert_uint_eq(data[at], column < MANY ? from + 1 : 0);
        }
        free(data);
    }
}
END_TEST

CHECK_MAIN("panels")
{
    tcase_add_loop_test(tests, panels_of_16_bits_have_the_numbers_of_the_weight, 0, 2);
    tcase_add_loop_test(tests, a_panel_of_many_features_looks, 0, 2);
    tcase_add_loop_test(tests, separate_weights, 0, SIZES);
    tcase_add_loop_test(tests, a_matrix_a_head, 0, SIZES);
    tcase_add_loop_test(tests, fused_weights, 0, FUSED);
    tcase_add_test(tests, panels_of_another_kernel_or_layout_are_left_alone);
    tcase_add_test(tests, nothing_to_pack);
}
