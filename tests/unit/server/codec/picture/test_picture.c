/*
 * test_picture.c: tests server/codec/picture/image.h and what it stands on, by decoding what comes out: cells,
 * colours, sizes.
 */
#include "codec/picture/image.h"

#include <math.h>

#include "picture_stage.h"

static colormap colormap_of(const struct picture *picture)
{
    return picture->options.colormap == COLORMAP_COUNT ? COLORMAP_VIRIDIS : picture->options.colormap;
}

static void check_cells(const struct scenario *s, const struct picture *picture)
{
    struct canvas canvas = png_of(picture);
    struct picture_layout layout = layout_of(picture, 2);
    ck_assert_int_eq(canvas.width, layout.width);
    ck_assert_int_eq(canvas.height, layout.height);
    double high = 0;
    for (size_t panel = 0; panel < layout.heads; panel++)
        for (size_t i = 0; i < ROWS * COLUMNS; i++) {
            size_t at = (layout.first_head + panel) * ROWS * COLUMNS + i;
            high = s->allowed[at] ? fmax(high, (double)s->weight[at]) : high;
        }
    for (size_t panel = 0; panel < layout.heads; panel++)
        for (int i = 0; i < ROWS * COLUMNS; i++) {
            size_t at = (layout.first_head + panel) * ROWS * COLUMNS + (size_t)i;
            uint32_t got = corner(&canvas, &layout, panel, i / COLUMNS, i % COLUMNS);
            uint8_t level = (uint8_t)lround((double)s->weight[at] / high * 255);
            if (s->allowed[at])
                ck_assert_uint_eq(got, colormap_rgb(colormap_of(picture), level));
            else
                ck_assert(got == RGB_MASKED || got == RGB_HATCH);
        }
}

START_TEST(every_cell_has_the_colour_of_its_weight_in_every_map)
{
    struct scenario s;
    make_scenario(&s);
    for (int map = 0; map < COLORMAP_COUNT; map++) {
        s.picture.options.colormap = (colormap)map;
        check_cells(&s, &s.picture);
    }
}
END_TEST

START_TEST(one_head_is_drawn_alone_and_larger)
{
    struct scenario s;
    make_scenario(&s);
    struct picture_layout both = layout_of(&s.picture, 2);
    s.picture.options.head = 1;
    struct picture_layout one = layout_of(&s.picture, 2);
    ck_assert_uint_eq(one.heads, 1);
    ck_assert_uint_eq(one.first_head, 1);
    ck_assert_int_gt(one.cell_width, both.cell_width);
    check_cells(&s, &s.picture);
}
END_TEST

START_TEST(a_head_is_named_by_its_own_number)
{
    struct scenario s;
    make_scenario(&s);
    s.picture.head_numbers = (size_t[]){4, 9};
    s.picture.options.head = 9;
    ck_assert_ptr_nonnull(strstr((char *)svg_of(&s.picture).data, ">head 9<"));
    check_cells(&s, &s.picture);
}
END_TEST

/* Strides that go backwards and through a transposed map of doubles show the same picture. */
START_TEST(strides_and_doubles_are_read_as_they_lie)
{
    struct scenario s;
    make_scenario(&s);
    double other[HEADS * ROWS * COLUMNS];
    for (int h = 0; h < HEADS; h++)
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < COLUMNS; j++)
                other[(h * COLUMNS + j) * ROWS + ROWS - 1 - i] = (double)s.weight[(h * ROWS + i) * COLUMNS + j];
    struct bytes plain = write_by(picture_write_png, picture_png_cost, &s.picture);
    s.weights_view.data = other + ROWS - 1;
    s.weights_view.dtype = ATTN_F64;
    s.weights_view.stride[2] = -1;
    s.weights_view.stride[3] = ROWS;
    struct bytes strided = write_by(picture_write_png, picture_png_cost, &s.picture);
    ck_assert_uint_eq(plain.length, strided.length);
    ck_assert_mem_eq(plain.data, strided.data, plain.length);
}
END_TEST

START_TEST(no_table_has_the_colour_of_masked_or_nan)
{
    for (int map = 0; map < COLORMAP_COUNT; map++)
        for (int level = 0; level < COLORMAP_LEVELS; level++) {
            uint32_t rgb = colormap_rgb((colormap)map, (uint8_t)level);
            ck_assert(rgb != RGB_MASKED && rgb != RGB_HATCH && rgb != RGB_NAN);
        }
}
END_TEST

/* CIE 1976 lightness of an sRGB colour. */
static double lightness(uint32_t rgb)
{
    static const double share[] = {0.2126, 0.7152, 0.0722};
    double y = 0;
    for (int i = 0; i < 3; i++) {
        double c = (double)(rgb >> (16 - 8 * i) & 0xFF) / 255;
        y += share[i] * (c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4));
    }
    return y > 0.008856 ? 116 * cbrt(y) - 16 : 903.3 * y;
}

/* Eight bits a channel round a step of about 0.35 by at most as much. */
START_TEST(lightness_changes_evenly_from_end_to_end)
{
    for (int map = 0; map < COLORMAP_SIGNED; map++) {
        double first = lightness(colormap_rgb((colormap)map, 0)), last = lightness(colormap_rgb((colormap)map, 255));
        ck_assert_double_gt(fabs(last - first), 70);
        for (int level = 0; level < 256; level++) {
            double even = first + (last - first) * level / 255;
            ck_assert_double_eq_tol(lightness(colormap_rgb((colormap)map, (uint8_t)level)), even, 4);
        }
    }
    for (int end = 0; end < 256; end += 255) {
        double dark = lightness(colormap_rgb(COLORMAP_SIGNED, (uint8_t)end)), light = lightness(0xF4F4F2);
        for (int level = 0; level < 128; level++)
            ck_assert_double_eq_tol(lightness(colormap_rgb(COLORMAP_SIGNED, (uint8_t)abs(end - level))),
                                    dark + (light - dark) * level / 127.5, 1);
    }
    ck_assert_uint_eq(colormap_rgb(COLORMAP_SIGNED, 0), 0x2B5C8A);
    ck_assert_uint_eq(colormap_rgb(COLORMAP_SIGNED, 255), 0x9A5414);
    ck_assert_uint_eq(colormap_rgb(COLORMAP_VIRIDIS, 0), 0x440154);
    ck_assert_uint_eq(colormap_rgb(COLORMAP_VIRIDIS, 255), 0xFDE725);
    ck_assert_uint_eq(colormap_rgb(COLORMAP_VIRIDIS, 128), 0x21918C);
    ck_assert_uint_eq(colormap_rgb(COLORMAP_CIVIDIS, 0), 0x00224E);
    ck_assert_uint_eq(colormap_rgb(COLORMAP_CIVIDIS, 128), 0x7D7C78);
    ck_assert_uint_eq(colormap_rgb(COLORMAP_CIVIDIS, 255), 0xFEE838);
    ck_assert_uint_eq(colormap_rgb(COLORMAP_GREY, 0), 0xFFFFFF);
}
END_TEST

static void expect_text(const struct bytes *svg, const char *text)
{
    ck_assert_msg(strstr((const char *)svg->data, text) != NULL, "%s is not in the picture", text);
}

/* The lowest number is 3 below the unchanged run, the highest 1 above it. */
START_TEST(a_sweep_has_the_unchanged_run_in_the_middle_of_its_colours)
{
    static const char *const layers[] = {"embeddings", "layer 1", "layer 2"};
    static const struct picture_sweep sweep = {"logit(a<b) − logit(c)", "hidden set to 0", "tokens", 12};
    struct scenario s;
    make_scenario(&s);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        s.weight[i] = i == 2 ? 9 : i == 7 ? 13 : i == 14 ? NAN : 12;
    s.weights_view.shape[1] = 1;
    s.picture.allowed = NULL;
    s.picture.sweep = &sweep;
    s.picture.queries = (struct picture_axis){.labels = layers, .count = ROWS};
    s.picture.keys = (struct picture_axis){.labels = words, .count = COLUMNS};
    s.picture.options = picture_options_default(PICTURE_OF_MODEL);
    const struct canvas canvas = png_of(&s.picture);
    const struct picture_layout layout = layout_of(&s.picture, 2);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        const int level = i == 2 ? 0 : i == 7 ? (int)lround(4.0 / 6 * 255) : 128;
        ck_assert_uint_eq(corner(&canvas, &layout, 0, i / COLUMNS, i % COLUMNS),
                          i == 14 ? RGB_NAN : colormap_rgb(COLORMAP_SIGNED, (uint8_t)level));
    }
    const struct bytes svg = svg_of(&s.picture);
    static const char *const texts[] = {">logit(a&lt;b) − logit(c)<",
                                        ">each cell: the metric with hidden set to 0 there<",
                                        ">unchanged<",
                                        ">embeddings<",
                                        ">tokens<",
                                        ">layers<",
                                        ">9<",
                                        ">12<",
                                        ">15<",
                                        ">9.00<",
                                        ">12.0<",
                                        "layer 1, okula: 12<",
                                        ": NaN<",
                                        "the unchanged run has 12, colours run from 9 to 15"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        expect_text(&svg, texts[i]);
    ck_assert_ptr_null(strstr((const char *)svg.data, "weight"));
    s.picture.options.colormap = COLORMAP_GREY;
    const struct canvas grey = png_of(&s.picture);
    ck_assert_uint_eq(corner(&grey, &layout, 0, 0, 2), 0xFFFFFF);
}
END_TEST

/* Numbers without a range, and those that are not finite, have one that can be drawn. */
START_TEST(a_sweep_without_differences_is_drawn)
{
    static const double unchanged[] = {0, -1e300, INFINITY, NAN};
    struct scenario s;
    make_scenario(&s);
    s.weights_view.shape[1] = 1;
    s.picture.allowed = NULL;
    for (size_t i = 0; i < 4; i++) {
        const struct picture_sweep sweep = {"m", "zero context", "heads", unchanged[i]};
        double values[ROWS * COLUMNS];
        for (int at = 0; at < ROWS * COLUMNS; at++)
            values[at] = unchanged[i];
        s.weights_view = attn_tensor_view(values, ATTN_F64, 4, (size_t[]){1, 1, ROWS, COLUMNS});
        s.picture.sweep = &sweep;
        const struct canvas canvas = png_of(&s.picture);
        const struct picture_layout layout = layout_of(&s.picture, 2);
        const uint8_t level = i < 2 ? 128 : 255;
        ck_assert_uint_eq(corner(&canvas, &layout, 0, 1, 1), i == 3 ? RGB_NAN : colormap_rgb(COLORMAP_SIGNED, level));
    }
}
END_TEST

static void expect_no_text(const struct bytes *svg, const char *text)
{
    ck_assert_msg(strstr((const char *)svg->data, text) == NULL, "%s is in the picture", text);
}

/* An infinite number leaves the colours to the others, and numbers close to each other have digits that differ. */
START_TEST(a_sweep_shows_infinity_beside_numbers_close_to_each_other)
{
    struct picture_sweep sweep = {"m", "zero context", "heads", 12.345};
    struct scenario s;
    make_scenario(&s);
    double values[ROWS * COLUMNS];
    for (int at = 0; at < ROWS * COLUMNS; at++)
        values[at] = at == 0 ? INFINITY : at == 1 ? -INFINITY : at == 2 ? 12.35 : 12.345;
    s.weights_view = attn_tensor_view(values, ATTN_F64, 4, (size_t[]){1, 1, ROWS, COLUMNS});
    s.picture.allowed = NULL;
    s.picture.sweep = &sweep;
    const struct canvas canvas = png_of(&s.picture);
    const struct picture_layout layout = layout_of(&s.picture, 2);
    for (int at = 0; at < 4; at++)
        ck_assert_uint_eq(corner(&canvas, &layout, 0, 0, at),
                          colormap_rgb(COLORMAP_SIGNED, (const uint8_t[]){255, 0, 255, 128}[at]));
    const struct bytes svg = svg_of(&s.picture);
    static const char *const texts[] = {
        ": Infinity<", ": -Infinity<", ": 12.35<",    ">12.35<",
        ">12.345<",    ">12.34<",      ">unchanged<", "has 12.345, colours run from 12.34 to 12.35."};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        expect_text(&svg, texts[i]);
    sweep.unchanged = NAN; /* no colour is that of the unchanged run */
    const struct bytes without = svg_of(&s.picture);
    expect_text(&without, "the unchanged run has NaN,");
    expect_no_text(&without, ">unchanged<");
}
END_TEST

START_TEST(nan_and_infinity_are_shown_and_break_nothing)
{
    struct scenario s;
    make_scenario(&s);
    memset(s.allowed, 1, sizeof s.allowed);
    s.weight[1] = NAN;
    s.weight[2] = INFINITY;
    s.weight[3] = -INFINITY;
    struct canvas canvas = png_of(&s.picture);
    struct picture_layout layout = layout_of(&s.picture, 2);
    ck_assert_uint_eq(corner(&canvas, &layout, 0, 0, 1), RGB_NAN);
    ck_assert_uint_eq(corner(&canvas, &layout, 0, 0, 2), colormap_rgb(COLORMAP_VIRIDIS, 255));
    ck_assert_uint_eq(corner(&canvas, &layout, 0, 0, 3), colormap_rgb(COLORMAP_VIRIDIS, 0));
    ck_assert_ptr_nonnull(strstr((char *)svg_of(&s.picture).data, ": NaN</title>"));
}
END_TEST

START_TEST(a_map_without_any_weight_is_still_a_picture)
{
    struct scenario s;
    make_scenario(&s);
    memset(s.allowed, 0, sizeof s.allowed);
    (void)png_of(&s.picture);
    memset(s.allowed, 1, sizeof s.allowed);
    memset(s.weight, 0, sizeof s.weight);
    struct canvas canvas = png_of(&s.picture);
    struct picture_layout layout = layout_of(&s.picture, 2);
    ck_assert_uint_eq(corner(&canvas, &layout, 0, 0, 0), colormap_rgb(COLORMAP_VIRIDIS, 0));
}
END_TEST

/* ---- sizes ---- */

static attn_status plan_shape(size_t batch, size_t heads, size_t rows, size_t columns, int scale,
                              struct picture_layout *layout)
{
    static float nothing;
    attn_tensor weights = attn_tensor_view(&nothing, ATTN_F32, 4, (size_t[]){batch, heads, rows, columns});
    struct picture picture = {.weights = &weights, .options = picture_options_default(PICTURE_OF_LAYER)};
    struct blocks blocks = blocks_begin(arena);
    struct glyphs *glyphs = glyphs_open(&fonts, &blocks);
    attn_status status = picture_layout_make(&picture, scale, glyphs, layout, &error);
    glyphs_close(glyphs);
    return status;
}

static struct picture_layout layout_of_shape(size_t batch, size_t heads, size_t rows, size_t columns)
{
    struct picture_layout layout;
    ck_assert_int_eq(plan_shape(batch, heads, rows, columns, 1, &layout), ATTN_OK);
    return layout;
}

/* Only the most panels at the largest scale are refused. */
START_TEST(no_shape_makes_a_picture_over_the_limit)
{
    static const size_t lengths[] = {1, 2, 7, 64, 500, 4096, 100000, (size_t)1 << 40};
    static const size_t panels[] = {1, 2, 12, 96, 256, 1024};
    for (size_t h = 0; h < COUNT(panels); h++)
        for (size_t i = 0; i < 8; i++)
            for (size_t j = 0; j < 8; j++)
                for (int scale = 1; scale <= PICTURE_SCALE_MAX; scale++) {
                    struct picture_layout layout;
                    attn_status status = plan_shape(1, panels[h], lengths[i], lengths[j], scale, &layout);
                    if (status == ATTN_ERR_TOO_LARGE && panels[h] * (size_t)(scale * scale) >= 4096)
                        continue;
                    ck_assert_int_eq(status, ATTN_OK);
                    ck_assert_int_le((long)layout.width * layout.height, PICTURE_PIXELS_MAX);
                    ck_assert_int_ge(layout.cell_width, 1);
                    ck_assert_int_ge(layout.cell_height, 1);
                    ck_assert_uint_ge(layout.rows * layout.pool_rows, lengths[i]);
                    ck_assert_uint_ge(layout.columns * layout.pool_columns, lengths[j]);
                }
}
END_TEST

START_TEST(pooling_keeps_the_largest_of_a_block)
{
    enum { SIDE = 2000 };
    float *weight = attn_arena_take_zeroed(arena, SIDE * SIDE, sizeof *weight);
    ck_assert_ptr_nonnull(weight);
    weight[1001 * SIDE + 503] = 0.5F;
    attn_tensor view = attn_tensor_view(weight, ATTN_F32, 4, (size_t[]){1, 1, SIDE, SIDE});
    struct picture picture = {.weights = &view, .options = picture_options_default(PICTURE_OF_LAYER)};
    struct canvas canvas = png_of(&picture);
    struct picture_layout layout = layout_of(&picture, 2);
    struct picture_panel panel = picture_layout_panel(&layout, 0);
    ck_assert_uint_eq(layout.pool_rows, 3);
    uint32_t high = colormap_rgb(COLORMAP_VIRIDIS, 255), zero = colormap_rgb(COLORMAP_VIRIDIS, 0);
    ck_assert_uint_eq(pixel(&canvas, panel.x + 503 / 3, panel.y + 1001 / 3), high);
    ck_assert_uint_eq(pixel(&canvas, panel.x + 503 / 3 + 1, panel.y + 1001 / 3), zero);
    ck_assert_uint_eq(pixel(&canvas, panel.x + 1001 / 3, panel.y + 503 / 3), zero);
    ck_assert_ptr_nonnull(strstr((char *)svg_of(&picture).data, "the largest of 5 \xC3\x97 5 weights"));
}
END_TEST

START_TEST(batch_items_are_bands_or_with_one_head_share_one)
{
    ck_assert_uint_eq(layout_of_shape(3, 4, 6, 6).bands, 3);
    ck_assert_uint_eq(layout_of_shape(6, 1, 6, 6).bands, 1);
    ck_assert_uint_eq(layout_of_shape(1, 12, 6, 6).grid_columns, 4);
    ck_assert_uint_eq(layout_of_shape(1, 8, 6, 6).grid_columns, 4);
    struct picture_layout layout = layout_of_shape(3, 4, 6, 6);
    ck_assert_uint_eq(picture_layout_panel(&layout, 7).item, 1);
    ck_assert_uint_eq(picture_layout_panel(&layout, 7).head, 3);
}
END_TEST

CHECK_MAIN("picture")
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, every_cell_has_the_colour_of_its_weight_in_every_map);
    tcase_add_test(tests, one_head_is_drawn_alone_and_larger);
    tcase_add_test(tests, a_head_is_named_by_its_own_number);
    tcase_add_test(tests, strides_and_doubles_are_read_as_they_lie);
    tcase_add_test(tests, no_table_has_the_colour_of_masked_or_nan);
    tcase_add_test(tests, lightness_changes_evenly_from_end_to_end);
    tcase_add_test(tests, a_sweep_has_the_unchanged_run_in_the_middle_of_its_colours);
    tcase_add_test(tests, a_sweep_without_differences_is_drawn);
    tcase_add_test(tests, a_sweep_shows_infinity_beside_numbers_close_to_each_other);
    tcase_add_test(tests, nan_and_infinity_are_shown_and_break_nothing);
    tcase_add_test(tests, a_map_without_any_weight_is_still_a_picture);
    tcase_add_test(tests, no_shape_makes_a_picture_over_the_limit);
    tcase_add_test(tests, pooling_keeps_the_largest_of_a_block);
    tcase_add_test(tests, batch_items_are_bands_or_with_one_head_share_one);
}
