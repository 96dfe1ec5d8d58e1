/*
 * test_prepared_weights.c: tests of server/service/registry/prepared.c: which weights are packed or widened, how
 * long they are cached, and for which layers.
 */
#include "service/registry/prepared.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attn/panels.h"
#include "check_main.h"
#include "codec/tensor/mxfp4.h"
#include "service/registry/layer/version.h"

/* More than a task widens, and a rest. */
enum { NUMBERS = (1 << 16) + 1000, SMALL = 3, TENSORS = 4 };

static attn_arena *arena;
static attn_runtime runtime;

static void set_up(void)
{
    arena = attn_arena_create(64 << 20);
    ck_assert_ptr_nonnull(arena);
    runtime = attn_runtime_serial(NULL);
}

static void tear_down(void)
{
    attn_arena_destroy(arena);
}

/* A layer of two narrow weights, a wide one, and something narrow that is no weight. */
struct scene {
    uint16_t half[NUMBERS], brain[SMALL];
    float single[SMALL];
    struct envelope_attachment attachments[TENSORS];
    struct envelope_source base;
    struct layer_version *version;
};

static struct scene *make_scene(void)
{
    struct scene *scene = attn_arena_take_zeroed(arena, 1, sizeof *scene);
    const struct kept_layer_facts facts = {.dtype = ATTN_F16};
    ck_assert_ptr_nonnull(scene);
    for (size_t i = 0; i < NUMBERS; i++)
        scene->half[i] = (uint16_t)i; /* every 16-bit number */
    for (size_t i = 0; i < SMALL; i++)
        scene->brain[i] = (uint16_t)(0x3F80 + i);
    const size_t many[] = {NUMBERS}, few[] = {SMALL};
    scene->attachments[0] =
        (struct envelope_attachment){"weights.key.bias", attn_tensor_view(scene->brain, ATTN_BF16, 1, few)};
    scene->attachments[1] =
        (struct envelope_attachment){"weights.value.bias", attn_tensor_view(scene->single, ATTN_F32, 1, few)};
    scene->attachments[2] =
        (struct envelope_attachment){"weights.query.weight", attn_tensor_view(scene->half, ATTN_F16, 1, many)};
    scene->attachments[3] =
        (struct envelope_attachment){"options.sinks", attn_tensor_view(scene->half, ATTN_F16, 1, few)};
    scene->base = (struct envelope_source){.attachments = scene->attachments, .count = TENSORS};
    const struct file_bytes bytes = {.at = NULL};
    scene->version = layer_version_create("a", bytes, NULL, &facts, NULL);
    ck_assert_ptr_nonnull(scene->version);
    return scene;
}

static size_t bytes_of_one(void)
{
    const size_t large = (NUMBERS * sizeof(float) + ATTN_ALIGNMENT - 1) / ATTN_ALIGNMENT * ATTN_ALIGNMENT;
    return large + ATTN_ALIGNMENT;
}

static struct prepared_weights *take(struct prepared_store *store, struct scene *scene, struct envelope_source *base)
{
    *base = scene->base;
    return prepared_weights_take(store, &scene->version->prepared, &scene->version->facts, &runtime, arena, base);
}

START_TEST(narrow_weights_become_single_and_nothing_else_changes)
{
    static float wanted[NUMBERS];
    struct prepared_store *store = prepared_store_create(1 << 30);
    struct scene *scene = make_scene();
    struct envelope_source base, again;
    struct prepared_weights *prepared = take(store, scene, &base);
    ck_assert_ptr_nonnull(prepared);
    ck_assert_uint_eq(prepared_store_bytes(store), bytes_of_one());
    ck_assert(attn_convert(wanted, ATTN_F32, scene->half, ATTN_F16, NUMBERS, NULL) == ATTN_OK);
    ck_assert(base.attachments[2].tensor.dtype == ATTN_F32);
    ck_assert_mem_eq(base.attachments[2].tensor.data, wanted, sizeof wanted);
    ck_assert(base.attachments[0].tensor.dtype == ATTN_F32);
    for (size_t i = 0; i < SMALL; i++)
        ck_assert_float_eq(((const float *)base.attachments[0].tensor.data)[i], 1 + (float)i / 128);
    for (size_t i = 1; i < TENSORS; i += 2)
        ck_assert_mem_eq(&base.attachments[i].tensor, &scene->attachments[i].tensor, sizeof(attn_tensor));
    ck_assert(scene->attachments[2].tensor.dtype == ATTN_F16);
    ck_assert_ptr_eq(take(store, scene, &again), prepared);
    ck_assert_ptr_eq(again.attachments[2].tensor.data, base.attachments[2].tensor.data);
    prepared_weights_release(prepared);
    prepared_weights_release(prepared);
    layer_version_release(scene->version);
    ck_assert_uint_eq(prepared_store_bytes(store), 0);
    prepared_store_destroy(store);
    prepared_store_destroy(NULL);
    prepared_weights_release(NULL);
}
END_TEST

/* The panels that the core makes of a matrix. */
static void expect_panels(const attn_tensor *tensor, attn_layout layout)
{
    const size_t bytes = attn_panels_bytes(runtime.kernel, layout, tensor);
    if (bytes == 0) { /* this machine's kernel has none */
        ck_assert_ptr_null(tensor->panels);
        return;
    }
    void *wanted = attn_arena_take(arena, 1, bytes);
    ck_assert(wanted != NULL && tensor->panels != NULL);
    attn_panels_write(&runtime, layout, tensor, wanted);
    ck_assert_ptr_eq(tensor->panels->kernel, runtime.kernel);
    ck_assert_uint_eq((uintptr_t)tensor->panels->data % ATTN_ALIGNMENT, 0);
    ck_assert_mem_eq(tensor->panels->data, wanted, bytes);
}

/* The panels have the type of the weight. Without panels, 16-bit weights are widened. Misaligned ones stay. */
START_TEST(matrices_are_packed_in_the_layout_of_the_layer)
{
    const attn_layout layout = _i % 2 == 0 ? ATTN_LAYOUT_IN_OUT : ATTN_LAYOUT_OUT_IN;
    struct prepared_store *store = prepared_store_create(1 << 30);
    struct scene *scene = make_scene();
    const size_t matrix[] = {40, 70}, heads[] = {2, 20, 70};
    float *numbers = attn_arena_take(arena, 40 * 70 + 1, sizeof *numbers);
    for (size_t i = 0; i < 40 * 70 + 1; i++)
        numbers[i] = (float)i;
    struct envelope_attachment *at = scene->attachments;
    at[0] = (struct envelope_attachment){"weights.query.weight", attn_tensor_view(numbers, ATTN_F32, 2, matrix)};
    at[1] = (struct envelope_attachment){"weights.key.weight", attn_tensor_view(scene->half, ATTN_F16, 2, matrix)};
    at[2] = (struct envelope_attachment){"weights.value.weight", attn_tensor_view(numbers, ATTN_F32, 3, heads)};
    at[3] = (struct envelope_attachment){"weights.output.weight",
                                         attn_tensor_view((char *)numbers + 1, ATTN_F32, 2, matrix)};
    scene->version->facts.layout = layout;
    scene->version->facts.compute = _i < 2 ? ATTN_F32 : ATTN_F64;
    struct envelope_source base;
    struct prepared_weights *prepared = take(store, scene, &base);
    ck_assert_ptr_nonnull(prepared);
    if (_i < 2)
        expect_panels(&base.attachments[0].tensor, layout);
    else
        ck_assert_ptr_null(base.attachments[0].tensor.panels); /* it computes in double */
    ck_assert_ptr_eq(base.attachments[0].tensor.data, numbers);
    const bool has_panels = _i < 2 && base.attachments[0].tensor.panels != NULL;
    ck_assert(base.attachments[1].tensor.dtype == (has_panels ? ATTN_F16 : ATTN_F32));
    if (_i < 2)
        expect_panels(&base.attachments[1].tensor, layout);
    if (_i < 2)
        expect_panels(&base.attachments[2].tensor, layout);
    ck_assert_ptr_null(base.attachments[3].tensor.panels); /* it does not lie as a float does */
    prepared_weights_release(prepared);
    layer_version_release(scene->version);
    ck_assert_uint_eq(prepared_store_bytes(store), 0);
    prepared_store_destroy(store);
}
END_TEST

/* Matrices of 16 bits stay as they are where the kernel reads them, and all else is prepared as ever. */
START_TEST(a_slot_that_keeps_its_halves_has_no_second_copy)
{
    struct prepared_store *store = prepared_store_create(1 << 30);
    struct scene *scene = make_scene();
    const size_t matrix[] = {40, 70}, few[] = {SMALL};
    float *numbers = attn_arena_take_zeroed(arena, 40 * 70, sizeof *numbers);
    struct envelope_attachment *at = scene->attachments;
    at[0] = (struct envelope_attachment){"weights.query.weight", attn_tensor_view(scene->half, ATTN_F16, 2, matrix)};
    at[1] = (struct envelope_attachment){"weights.key.weight", attn_tensor_view(numbers, ATTN_F32, 2, matrix)};
    at[2] = (struct envelope_attachment){"weights.key.bias", attn_tensor_view(scene->half, ATTN_F16, 1, few)};
    scene->version->prepared.keeps_halves = true;
    struct envelope_source base;
    struct prepared_weights *prepared = take(store, scene, &base);
    ck_assert_ptr_nonnull(prepared);
    expect_panels(&base.attachments[1].tensor, ATTN_LAYOUT_IN_OUT);
    ck_assert_ptr_null(base.attachments[0].tensor.panels);
    if (base.attachments[1].tensor.panels != NULL)
        ck_assert_ptr_eq(base.attachments[0].tensor.data, scene->half);
    else
        ck_assert(base.attachments[0].tensor.dtype == ATTN_F32); /* the BLAS reads no others */
    ck_assert(base.attachments[2].tensor.dtype == ATTN_F32);
    prepared_weights_release(prepared);
    layer_version_release(scene->version);
    prepared_store_destroy(store);
}
END_TEST

/* A narrow weight and a wide one, each in two roles, as DeBERTa shares them; the copies are those of the first roles. */
START_TEST(a_shared_weight_is_prepared_once)
{
    struct prepared_store *store = prepared_store_create(1 << 30);
    struct scene *scene = make_scene();
    const size_t matrix[] = {40, 70};
    float *numbers = attn_arena_take_zeroed(arena, 40 * 70, sizeof *numbers);
    struct envelope_attachment *at = scene->attachments;
    at[0] = (struct envelope_attachment){"weights.query.weight", attn_tensor_view(scene->half, ATTN_F16, 2, matrix)};
    at[1] = (struct envelope_attachment){"weights.key.weight", attn_tensor_view(numbers, ATTN_F32, 2, matrix)};
    scene->base.count = 2;
    struct envelope_source base, shared;
    struct prepared_weights *prepared = take(store, scene, &base);
    const size_t bytes = prepared_store_bytes(store);
    prepared_weights_release(prepared);
    prepared_slot_clear(&scene->version->prepared);
    at[2] = (struct envelope_attachment){"weights.relative_key.weight", at[1].tensor};
    at[3] = (struct envelope_attachment){"weights.relative_query.weight", at[0].tensor};
    scene->base.count = 4;
    prepared = take(store, scene, &shared);
    ck_assert_ptr_nonnull(prepared);
    ck_assert_uint_eq(prepared_store_bytes(store), bytes);
    for (size_t role = 0; role < 2; role++) {
        const attn_tensor *first = &shared.attachments[role].tensor, *other = &shared.attachments[3 - role].tensor;
        ck_assert_ptr_eq(first->data, other->data);
        ck_assert(first->dtype == other->dtype);
        expect_panels(other, ATTN_LAYOUT_IN_OUT);
        ck_assert((first->panels == NULL) == (other->panels == NULL));
        if (first->panels != NULL)
            ck_assert_ptr_eq(first->panels->data, other->panels->data);
    }
    prepared_weights_release(prepared);
    layer_version_release(scene->version);
    ck_assert_uint_eq(prepared_store_bytes(store), 0);
    prepared_store_destroy(store);
}
END_TEST

START_TEST(the_one_not_used_for_longest_gives_way_unless_it_is_in_use)
{
    struct prepared_store *store = prepared_store_create(2 * bytes_of_one());
    struct scene *scenes[3] = {make_scene(), make_scene(), make_scene()};
    struct envelope_source base;
    struct prepared_weights *first = take(store, scenes[0], &base), *second = take(store, scenes[1], &base);
    ck_assert(first != NULL && second != NULL);
    ck_assert_ptr_null(take(store, scenes[2], &base)); /* both are in use */
    ck_assert_ptr_eq(base.attachments, scenes[2]->attachments);
    prepared_weights_release(first);
    prepared_weights_release(second);
    prepared_weights_release(take(store, scenes[0], &base)); /* now the second is the older one */
    struct prepared_weights *third = take(store, scenes[2], &base);
    ck_assert_ptr_nonnull(third);
    ck_assert(scenes[0]->version->prepared.weights != NULL && scenes[1]->version->prepared.weights == NULL);
    ck_assert_uint_eq(prepared_store_bytes(store), 2 * bytes_of_one());
    prepared_weights_release(third);
    for (size_t i = 0; i < 3; i++)
        layer_version_release(scenes[i]->version);
    ck_assert_uint_eq(prepared_store_bytes(store), 0);
    prepared_store_destroy(store);
}
END_TEST

START_TEST(what_does_not_fit_is_left_as_it_is)
{
    struct prepared_store *store = prepared_store_create(bytes_of_one() - 1), *none = prepared_store_create(0);
    struct scene *scene = make_scene();
    struct envelope_source base;
    ck_assert_ptr_null(take(store, scene, &base));
    ck_assert_ptr_null(take(none, scene, &base));
    scene->base.count = 0;
    ck_assert_ptr_null(take(store, scene, &base)); /* nothing to prepare */
    ck_assert_ptr_eq(base.attachments, scene->attachments);
    ck_assert_uint_eq(prepared_store_bytes(store), 0);
    layer_version_release(scene->version);
    prepared_store_destroy(store);
    prepared_store_destroy(none);
}
END_TEST

/* Without memory for the list of a request, the weights are still prepared for the next request. */
START_TEST(without_memory_a_request_goes_on_as_it_is)
{
    struct prepared_store *store = prepared_store_create(1 << 30);
    struct scene *scene = make_scene();
    struct envelope_source base = scene->base;
    attn_arena *empty = attn_arena_create(0);
    ck_assert_ptr_null(
        prepared_weights_take(store, &scene->version->prepared, &scene->version->facts, &runtime, empty, &base));
    ck_assert_ptr_eq(base.attachments, scene->attachments);
    struct prepared_weights *prepared = take(store, scene, &base);
    ck_assert_ptr_nonnull(prepared);
    prepared_weights_release(prepared);
    attn_arena_destroy(empty);
    layer_version_release(scene->version);
    prepared_store_destroy(store);
}
END_TEST

static size_t looks, looks_allowed;

static bool look(void *context)
{
    (void)context;
    return ++looks > looks_allowed;
}

/* Takes weights, with so many looks allowed. */
static struct prepared_weights *take_watched(struct prepared_store *store, struct scene *scene, size_t allowed)
{
    struct envelope_source base = scene->base;
    attn_runtime watched = runtime;
    watched.is_cancelled = look;
    looks = 0;
    looks_allowed = allowed;
    struct prepared_weights *prepared =
        prepared_weights_take(store, &scene->version->prepared, &scene->version->facts, &watched, arena, &base);
    ck_assert(prepared != NULL || base.attachments == scene->attachments);
    return prepared;
}

/* A request that is cancelled meanwhile leaves no weights and no room taken; the next one prepares them. */
START_TEST(preparing_looks_before_each_block_and_panel)
{
    enum { COLUMNS = 256, ROWS = 257 };
    const size_t shape[] = {ROWS, COLUMNS}, blocks = 2;
    const attn_tensor narrow = attn_tensor_view(NULL, ATTN_F16, 2, shape);
    struct prepared_store *store = prepared_store_create(1 << 30);
    struct scene *scene = make_scene();
    uint16_t *half = attn_arena_take_zeroed(arena, ROWS * COLUMNS, sizeof *half);
    scene->attachments[0] =
        (struct envelope_attachment){"weights.query.weight", attn_tensor_view(half, ATTN_F16, 2, shape)};
    scene->base.count = 1;
    scene->version->facts.layout = ATTN_LAYOUT_IN_OUT;
    scene->version->facts.compute = ATTN_F32;
    const bool has_panels = attn_panels_bytes(runtime.kernel, ATTN_LAYOUT_IN_OUT, &narrow) > 0;
    const size_t least = has_panels ? COLUMNS / 64 : blocks; /* a panel has at most 64 columns */
    size_t allowed = 0;
    struct prepared_weights *prepared = NULL;
    for (; (prepared = take_watched(store, scene, allowed)) == NULL; allowed++)
        ck_assert_uint_eq(prepared_store_bytes(store), 0);
    ck_assert_uint_ge(allowed, least);
    ck_assert_uint_gt(prepared_store_bytes(store), 0);
    prepared_weights_release(prepared);
    layer_version_release(scene->version);
    ck_assert_uint_eq(prepared_store_bytes(store), 0);
    prepared_store_destroy(store);
}
END_TEST

/* Blocks and scales become one weight, and what follows keeps its place. */
START_TEST(weights_of_four_bits_become_bfloat16)
{
    struct prepared_store *store = prepared_store_create(1 << 30);
    struct scene *scene = make_scene();
    uint8_t bytes[2][MXFP4_BYTES], scales[2] = {127, 130};
    memset(bytes[0], 0x72, sizeof bytes[0]); /* 1, 6 */
    memset(bytes[1], 0x9A, sizeof bytes[1]); /* -1, -0.5 */
    static const char up[] = "weights.feed_forward.experts.each.0.up.";
    char paths[3][64];
    snprintf(paths[0], sizeof paths[0], "%sblocks", up);
    snprintf(paths[1], sizeof paths[1], "%sscales", up);
    snprintf(paths[2], sizeof paths[2], "%sweight", up);
    scene->attachments[2] = scene->attachments[3];
    scene->attachments[0] = (struct envelope_attachment){
        paths[0], attn_tensor_view(bytes, ATTN_U8, 3, (const size_t[]){2, 1, MXFP4_BYTES})};
    scene->attachments[1] =
        (struct envelope_attachment){paths[1], attn_tensor_view(scales, ATTN_U8, 2, (const size_t[]){2, 1})};
    scene->base.count = 3;
    struct envelope_source base;
    struct prepared_weights *prepared = take(store, scene, &base);
    ck_assert_ptr_nonnull(prepared);
    ck_assert_uint_eq(base.count, 2);
    ck_assert_str_eq(base.attachments[0].path, paths[2]);
    const attn_tensor *weight = &base.attachments[0].tensor;
    ck_assert(weight->dtype == ATTN_BF16 && weight->rank == 2);
    ck_assert(weight->shape[0] == 2 && weight->shape[1] == MXFP4_NUMBERS);
    float wide[2 * MXFP4_NUMBERS];
    ck_assert(attn_convert(wide, ATTN_F32, weight->data, ATTN_BF16, 2 * MXFP4_NUMBERS, NULL) == ATTN_OK);
    for (size_t i = 0; i < MXFP4_NUMBERS; i++) {
        ck_assert_float_eq(wide[i], i % 2 == 0 ? 1 : 6);
        ck_assert_float_eq(wide[MXFP4_NUMBERS + i], i % 2 == 0 ? -8 : -4);
    }
    ck_assert_str_eq(base.attachments[1].path, "options.sinks");
    prepared_weights_release(prepared);
    layer_version_release(scene->version);
    prepared_store_destroy(store);
}
END_TEST

CHECK_MAIN("prepared_weights")
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_slot_that_keeps_its_halves_has_no_second_copy);
    tcase_add_test(tests, narrow_weights_become_single_and_nothing_else_changes);
    tcase_add_loop_test(tests, matrices_are_packed_in_the_layout_of_the_layer, 0, 4);
    tcase_add_test(tests, weights_of_four_bits_become_bfloat16);
    tcase_add_test(tests, a_shared_weight_is_prepared_once);
    tcase_add_test(tests, the_one_not_used_for_longest_gives_way_unless_it_is_in_use);
    tcase_add_test(tests, what_does_not_fit_is_left_as_it_is);
    tcase_add_test(tests, without_memory_a_request_goes_on_as_it_is);
    tcase_add_test(tests, preparing_looks_before_each_block_and_panel);
}
