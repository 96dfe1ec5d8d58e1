/*
 * test_model_picture.c: tests server/codec/model/picture.c by reading back the pictures of a small model.
 */
#include "codec/model/forms.h"

#include <math.h>

#include "../picture/picture_stage.h"

enum { LAYERS = 3, MODEL_HEADS = 4, SIDE = 5 };

/* The maps of 3 layers with 4 causal heads each. Every weight differs from its neighbours. */
struct model_stage {
    float weight[LAYERS * MODEL_HEADS * SIDE * SIDE];
    bool allowed[LAYERS * MODEL_HEADS * SIDE * SIDE];
    struct model_answer answer;
    struct model_request request;
    struct labels labels[2];
    struct picture_options options;
    struct model_picture made;
};

static void add_output(struct model_stage *s, const char *name, void *data, attn_dtype dtype, const size_t shape[5])
{
    model_answer_add(&s->answer, name)->tensor = attn_tensor_view(data, dtype, 5, shape);
}

static void make_stage(struct model_stage *s, const char *attention, const char *mask)
{
    static const size_t shape[] = {LAYERS, 1, MODEL_HEADS, SIDE, SIDE};
    memset(s, 0, sizeof *s);
    for (int n = 0; n < LAYERS * MODEL_HEADS * SIDE * SIDE; n++) {
        s->allowed[n] = n % SIDE <= n / SIDE % SIDE;
        s->weight[n] = s->allowed[n] ? (float)((n * 7) % 300) / 300 : 0;
    }
    add_output(s, attention, s->weight, ATTN_F32, shape);
    add_output(s, mask, s->allowed, ATTN_BOOL, shape);
    envelope_set_defaults(&s->request.common, ENVELOPE_LAYER);
    s->request.inputs.batch = 1;
    s->labels[0] = s->labels[1] = (struct labels){.texts = words, .count = SIDE};
    s->options = picture_options_default(PICTURE_OF_MODEL);
}

static const struct picture *picture_of(struct model_stage *s, model_part_kind part)
{
    ck_assert_int_eq(model_picture_make(&s->options, part, &s->answer, s->labels, arena, &s->made, &error), ATTN_OK);
    model_picture_fill(&s->made);
    return &s->made.picture;
}

static void check_cells(const struct model_stage *s, const struct picture *picture, size_t first)
{
    const struct canvas canvas = png_of(picture);
    const struct picture_layout layout = layout_of(picture, 2);
    const size_t cells = (size_t)SIDE * SIDE, panels = layout.items * layout.heads;
    double high = 0;
    for (size_t at = first * cells; at < (first + panels) * cells; at++)
        high = fmax(high, (double)s->weight[at]);
    for (size_t at = 0; at < panels * cells; at++) {
        const int row = (int)(at / SIDE % SIDE), column = (int)(at % SIDE);
        const uint32_t got = corner(&canvas, &layout, at / cells, row, column);
        const uint8_t level = (uint8_t)lround((double)s->weight[first * cells + at] / high * 255);
        if (s->allowed[first * cells + at])
            ck_assert_uint_eq(got, colormap_rgb(COLORMAP_VIRIDIS, level));
        else
            ck_assert(got == RGB_MASKED || got == RGB_HATCH);
    }
}

/* Writes the picture to the file that the variable names, for a look at it. */
static void show(const struct picture *picture, const char *name)
{
    const char *folder = getenv("SHOW_PICTURES");
    char path[512];
    if (folder == NULL)
        return;
    const struct bytes files[] = {write_by(picture_write_png, picture_png_cost, picture), svg_of(picture)};
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s.%s", folder, name, i == 0 ? "png" : "svg");
        FILE *file = fopen(path, "wb");
        ck_assert_ptr_nonnull(file);
        ck_assert_uint_eq(fwrite(files[i].data, 1, files[i].length, file), files[i].length);
        ck_assert_int_eq(fclose(file), 0);
    }
}

static void expect_text(const struct bytes *svg, const char *text)
{
    ck_assert_msg(strstr((const char *)svg->data, text) != NULL, "%s is not in the picture", text);
}

START_TEST(layers_run_down_and_heads_across)
{
    struct model_stage s;
    make_stage(&s, "attention", "mask");
    s.answer.shown[0].layers = (attn_selection){.first = 2, .count = LAYERS};
    const struct picture *picture = picture_of(&s, MODEL_PART_ONLY);
    const struct picture_layout layout = layout_of(picture, 2);
    for (size_t i = 0; i < (size_t)LAYERS * MODEL_HEADS; i++) {
        const struct picture_panel panel = picture_layout_panel(&layout, i), first = picture_layout_panel(&layout, 0);
        ck_assert_uint_eq(panel.item, i / MODEL_HEADS);
        ck_assert_uint_eq(panel.head, i % MODEL_HEADS);
        ck_assert_int_eq(panel.x, first.x + (int)(i % MODEL_HEADS) * layout.pitch_x);
        ck_assert_int_eq(panel.y, first.y + (int)(i / MODEL_HEADS) * layout.pitch_y);
    }
    check_cells(&s, picture, 0);
    const struct bytes svg = svg_of(picture);
    expect_text(&svg, ">layer 2<");
    expect_text(&svg, ">layer 4<");
    expect_text(&svg, ">head 3<");
    expect_text(&svg, "of a map of shape [3,4,5,5] (layers, heads, queries, keys)");
    expect_text(&svg, words[3]);
    show(picture, "grid");
}
END_TEST

START_TEST(one_map_has_the_names_of_its_layer_and_head)
{
    struct model_stage s;
    make_stage(&s, "attention", "mask");
    s.answer.shown[0].layers = (attn_selection){.first = 7, .count = 1};
    s.answer.shown[0].heads = (attn_selection){.first = 2, .count = 1};
    for (size_t i = 0; i < 2; i++) {
        s.answer.outputs[i].tensor.shape[0] = 1;
        s.answer.outputs[i].tensor.shape[2] = 1;
    }
    const struct picture *picture = picture_of(&s, MODEL_PART_ONLY);
    const struct bytes svg = svg_of(picture);
    expect_text(&svg, ">layer 7, head 2<");
    check_cells(&s, picture, 0);
    show(picture, "one");
}
END_TEST

START_TEST(the_heads_of_one_layer_stand_under_its_name)
{
    struct model_stage s;
    make_stage(&s, "attention", "mask");
    s.answer.shown[0].layers = (attn_selection){.first = 1, .count = 1};
    for (size_t i = 0; i < 2; i++)
        s.answer.outputs[i].tensor.shape[0] = 1;
    const struct picture *picture = picture_of(&s, MODEL_PART_ONLY);
    const struct picture_layout layout = layout_of(picture, 2);
    ck_assert(layout.has_heading);
    ck_assert(!layout.has_row_titles);
    const struct bytes svg = svg_of(picture);
    expect_text(&svg, ">layer 1<");
    expect_text(&svg, ">head 3<");
    check_cells(&s, picture, 0);
    show(picture, "layer");
}
END_TEST

/* 200 positions became 5 cells: cell 1 begins at 40. The words of the positions are not shown. */
START_TEST(pooled_maps_have_positions_for_labels_and_say_so)
{
    struct model_stage s;
    make_stage(&s, "cross_attention", "cross_mask");
    s.labels[1].count = 200;
    const struct picture *picture = picture_of(&s, MODEL_PART_CROSS);
    ck_assert_ptr_null(picture->queries.labels);
    ck_assert_uint_eq(picture->queries.numbers[1], 40);
    ck_assert_uint_eq(picture->whole_rows, 200);
    ck_assert_ptr_eq(picture->keys.labels, words); /* of the encoder, whose five words are whole */
    ck_assert_uint_eq(picture->whole_columns, 0);
    const struct bytes svg = svg_of(picture);
    expect_text(&svg, "each cell: the largest of up to 40 \xC3\x97 1 weights");
    s.answer.shown[2].queries = (attn_selection){.first = 100, .count = 1000};
    ck_assert_uint_eq(picture_of(&s, MODEL_PART_CROSS)->queries.numbers[1], 120);
    show(picture, "pooled");
}
END_TEST

/* 32 layers with 32 heads are the largest models that are common. */
START_TEST(a_large_model_fits_a_picture)
{
    struct model_stage s;
    make_stage(&s, "attention", "mask");
    float *weight = attn_arena_take_zeroed(arena, 64 * 64, sizeof *weight);
    uint8_t *allowed = attn_arena_take_zeroed(arena, 64 * 64, 1);
    ck_assert(weight != NULL && allowed != NULL);
    for (size_t i = 0; i < 64 * 64; i++) {
        allowed[i] = i % 64 <= i / 64;
        weight[i] = allowed[i] ? (float)(i % 64 + 1) / (float)(i / 64 + 1) : 0;
    }
    for (size_t i = 0; i < 2; i++) {
        attn_tensor *tensor = &s.answer.outputs[i].tensor;
        *tensor = attn_tensor_view(i == 0 ? (void *)weight : (void *)allowed, tensor->dtype, 5,
                                   (size_t[]){32, 1, 32, 64, 64});
        tensor->stride[0] = tensor->stride[1] = tensor->stride[2] = 0;
    }
    s.labels[0].count = 512;
    const struct picture *picture = picture_of(&s, MODEL_PART_ONLY);
    const struct canvas canvas = png_of(picture);
    ck_assert_int_le(canvas.width * canvas.height, PICTURE_PIXELS_MAX);
    show(picture, "large");
    s.options.scale = 4;
    struct picture_cost cost;
    ck_assert_int_eq(picture_png_cost(picture_of(&s, MODEL_PART_ONLY), &cost, &error), ATTN_ERR_TOO_LARGE);
    ck_assert_ptr_nonnull(strstr(error.message, "choose by head= or layer="));
}
END_TEST

/* ---- the request ---- */

static void expect(attn_status got, attn_status wanted, const char *field, const char *message)
{
    ck_assert_int_eq(got, wanted);
    ck_assert_str_eq(error.field, field);
    ck_assert_str_eq(error.message, message);
}

static attn_status prepare(struct model_stage *s)
{
    return model_picture_prepare(&s->options, 6, 8, &s->request, arena, &error);
}

START_TEST(several_maps_are_pooled_and_one_is_not)
{
    struct model_stage s;
    make_stage(&s, "attention", "mask");
    s.request.results = 1U << MODEL_HIDDEN;
    ck_assert_int_eq(prepare(&s), ATTN_OK);
    const struct envelope_reduction *reduction = &s.request.common.reduction;
    ck_assert(reduction->has_pool && !reduction->pool_mean);
    ck_assert(reduction->pool_rows == MODEL_PICTURE_SIDE && reduction->pool_cols == MODEL_PICTURE_SIDE);
    ck_assert_uint_eq(s.request.common.request.options.want,
                      ATTN_STEP_BIT(ATTN_STEP_ATTENTION) | ATTN_STEP_BIT(ATTN_STEP_MASK));
    ck_assert_uint_eq(s.request.results, 0);
    make_stage(&s, "attention", "mask");
    s.options.layer = 5;
    s.options.head = 7;
    ck_assert_int_eq(prepare(&s), ATTN_OK);
    ck_assert(!s.request.common.reduction.has_pool);
    ck_assert(s.request.layers.count == 1 && attn_selected(&s.request.layers, 0) == 5);
    const attn_selection *heads = &s.request.common.request.options.heads;
    ck_assert(heads->count == 1 && attn_selected(heads, 0) == 7);
}
END_TEST

/* A sweep may have numbers of other items. */
START_TEST(a_sweep_keeps_all_items_and_pools_nothing)
{
    struct model_stage s;
    make_stage(&s, "attention", "mask");
    s.request.results = 1U << MODEL_SWEEP | 1U << MODEL_HIDDEN;
    s.request.inputs.batch = 3;
    s.options.batch = 2;
    ck_assert_int_eq(prepare(&s), ATTN_OK);
    ck_assert_uint_eq(s.request.results, 1U << MODEL_SWEEP);
    ck_assert_uint_eq(s.request.common.request.options.want, 0);
    ck_assert_uint_eq(s.request.inputs.batch, 3);
    ck_assert(!s.request.common.reduction.has_pool);
    s.options.head = 1;
    expect(prepare(&s), ATTN_ERR_FIELD, "?head",
           "the picture of a sweep has all its layers and heads: choose them by options.sweep");
    s.options.layer = 1;
    expect(prepare(&s), ATTN_ERR_FIELD, "?layer",
           "the picture of a sweep has all its layers and heads: choose them by options.sweep");
    s.options.layer = s.options.head = PICTURE_ALL;
    s.request.common.reduction.top_k = 3;
    ck_assert_int_eq(prepare(&s), ATTN_ERR_FIELD);
}
END_TEST

START_TEST(only_the_chosen_item_runs)
{
    static const struct text_span texts[] = {{"a", 1}, {"b", 1}, {"c", 1}};
    static const struct model_ids ids[3];
    static float pixels[3 * 4];
    const attn_tensor images = attn_tensor_view(pixels, ATTN_F32, 4, (size_t[]){3, 1, 2, 2});
    struct model_stage s;
    make_stage(&s, "attention", "mask");
    s.request.inputs =
        (struct model_inputs){.batch = 3, .text = texts, .target_ids = ids, .pixels = &images}; /* never together */
    s.options.batch = 2;
    ck_assert_int_eq(prepare(&s), ATTN_OK);
    const struct model_inputs *inputs = &s.request.inputs;
    ck_assert_uint_eq(inputs->batch, 1);
    ck_assert_ptr_eq(inputs->text, texts + 2);
    ck_assert_ptr_eq(inputs->target_ids, ids + 2);
    ck_assert_ptr_null(inputs->pair);
    ck_assert_uint_eq(inputs->pixels->shape[0], 1);
    ck_assert_ptr_eq(inputs->pixels->data, pixels + 8);
}
END_TEST

START_TEST(numbers_that_do_not_exist_are_refused_with_the_last_one)
{
    static const size_t chosen[] = {1, 3};
    struct model_stage s;
    make_stage(&s, "attention", "mask");
    s.options.layer = 6;
    expect(prepare(&s), ATTN_ERR_VALUE, "?layer", "layer is 6; expected a layer from 0 to 5, or all");
    s.options.layer = 2;
    s.request.layers = (attn_selection){.items = chosen, .count = 2};
    expect(prepare(&s), ATTN_ERR_VALUE, "?layer",
           "layer is 2; expected one of the layers that options.layers selects, or all");
    s.options.layer = 3;
    s.options.head = 8;
    expect(prepare(&s), ATTN_ERR_VALUE, "?head", "head is 8; expected a head from 0 to 7, or all");
    s.options.head = 0;
    s.options.batch = 1;
    expect(prepare(&s), ATTN_ERR_VALUE, "?batch", "batch is 1; expected a batch item from 0 to 0");
    s.options.batch = 0;
    s.request.common.reduction.top_k = 3;
    expect(prepare(&s), ATTN_ERR_FIELD, "/options/top_k",
           "options/top_k has no meaning for a picture, which fits its maps to its pixels itself: leave it out");
}
END_TEST

START_TEST(a_part_is_chosen_by_name_or_by_what_runs)
{
    struct model_stage s;
    model_part_kind part;
    make_stage(&s, "attention", "mask");
    ck_assert_int_eq(model_picture_choose_part(&s.options, false, false, &part, &error), ATTN_OK);
    ck_assert_int_eq(part, MODEL_PART_ONLY);
    ck_assert_int_eq(model_picture_choose_part(&s.options, true, false, &part, &error), ATTN_OK);
    ck_assert_int_eq(part, MODEL_PART_ENCODER);
    ck_assert_int_eq(model_picture_choose_part(&s.options, true, true, &part, &error), ATTN_OK);
    ck_assert_int_eq(part, MODEL_PART_CROSS);
    s.options.part = PICTURE_PART_DECODER;
    ck_assert_int_eq(model_picture_choose_part(&s.options, true, true, &part, &error), ATTN_OK);
    ck_assert_int_eq(part, MODEL_PART_DECODER);
    expect(model_picture_choose_part(&s.options, true, false, &part, &error), ATTN_ERR_VALUE, "?part",
           "part is \"decoder\", and without a target the encoder runs alone: give inputs.target or "
           "inputs.target_ids");
    expect(model_picture_choose_part(&s.options, false, false, &part, &error), ATTN_ERR_VALUE, "?part",
           "part is for models with an encoder and a decoder, and this model has one stack: leave it out");
}
END_TEST

CHECK_MAIN("model_picture")
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, layers_run_down_and_heads_across);
    tcase_add_test(tests, one_map_has_the_names_of_its_layer_and_head);
    tcase_add_test(tests, the_heads_of_one_layer_stand_under_its_name);
    tcase_add_test(tests, pooled_maps_have_positions_for_labels_and_say_so);
    tcase_add_test(tests, a_large_model_fits_a_picture);
    tcase_add_test(tests, several_maps_are_pooled_and_one_is_not);
    tcase_add_test(tests, a_sweep_keeps_all_items_and_pools_nothing);
    tcase_add_test(tests, only_the_chosen_item_runs);
    tcase_add_test(tests, numbers_that_do_not_exist_are_refused_with_the_last_one);
    tcase_add_test(tests, a_part_is_chosen_by_name_or_by_what_runs);
}
