/*
 * test_picture.c: tests server/codec/picture.h and what it stands on, by decoding what comes out.
 */
#include "codec/picture.h"

#include <check.h>
#include <math.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/picture_draw.h"
#include "random.h"

enum { ROWS = 3, COLUMNS = 5, HEADS = 2 };

static attn_arena *arena;
static struct font_set fonts;
static attn_runtime runtime;
static attn_error error;

static void set_up(void)
{
    char message[256];
    arena = attn_arena_create((size_t)256 << 20);
    runtime = attn_runtime_serial(NULL);
    ck_assert_msg(font_set_open(&fonts, "auto", message, sizeof message), "%s", message);
    ck_assert_uint_eq(fonts.count, 2);
}

static void tear_down(void)
{
    attn_arena_destroy(arena);
    font_set_close(&fonts);
}

/* A map of two heads, 3 x 5, all of whose weights differ, with masked cells in each. */
struct scenario {
    float weight[HEADS * ROWS * COLUMNS];
    uint8_t allowed[HEADS * ROWS * COLUMNS];
    attn_tensor weights_view, allowed_view;
    struct picture picture;
};

static void make_scenario(struct scenario *s)
{
    for (int i = 0; i < HEADS * ROWS * COLUMNS; i++) {
        s->weight[i] = (float)((i * 7) % 30) / 29;
        s->allowed[i] = i % 11 != 3;
    }
    s->weights_view = attn_tensor_view(s->weight, ATTN_F32, 4, (size_t[]){1, HEADS, ROWS, COLUMNS});
    s->allowed_view = attn_tensor_view(s->allowed, ATTN_BOOL, 4, (size_t[]){1, HEADS, ROWS, COLUMNS});
    s->picture = (struct picture){
        .weights = &s->weights_view, .allowed = &s->allowed_view, .options = picture_options_default()};
}

struct bytes {
    unsigned char *data;
    size_t length;
};

static struct bytes join(const struct chunks *chunks)
{
    struct bytes all = {attn_arena_take(arena, 1, chunks->total_bytes + 1), 0};
    ck_assert_ptr_nonnull(all.data);
    for (const struct chunk *chunk = chunks->first; chunk != NULL; chunk = chunk->next) {
        memcpy(all.data + all.length, chunk->data, chunk->length);
        all.length += chunk->length;
    }
    all.data[all.length] = '\0';
    return all;
}

typedef attn_status picture_writer(const struct picture *, const struct font_set *, const attn_runtime *,
                                   struct chunks *, attn_error *);
typedef attn_status picture_pricer(const struct picture *, struct picture_cost *, attn_error *);

static struct bytes write_by(picture_writer *write, picture_pricer *price, const struct picture *picture)
{
    struct picture_cost cost;
    ck_assert_int_eq(price(picture, &cost, &error), ATTN_OK);
    attn_arena *own = attn_arena_create((size_t)256 << 20);
    struct chunks out = chunks_begin(own);
    ck_assert_msg(write(picture, &fonts, &runtime, &out, &error) == ATTN_OK, "%s", error.message);
    ck_assert(out.is_ok);
    ck_assert_uint_le(out.total_bytes, cost.bytes);
    ck_assert_uint_le(attn_arena_peak_bytes(own), cost.bytes + cost.memory_bytes);
    struct bytes all = join(&out);
    attn_arena_destroy(own);
    return all;
}

static struct bytes svg_of(const struct picture *picture)
{
    return write_by(picture_write_svg, picture_svg_cost, picture);
}

/* The PNG, read back by libpng. */
static struct canvas png_of(const struct picture *picture)
{
    struct bytes file = write_by(picture_write_png, picture_png_cost, picture);
    png_image image = {.version = PNG_IMAGE_VERSION};
    ck_assert_msg(png_image_begin_read_from_memory(&image, file.data, file.length), "%s", image.message);
    ck_assert_uint_eq(image.format, PNG_FORMAT_RGB);
    struct canvas canvas = {attn_arena_take(arena, image.height, (size_t)image.width * 3), (int)image.width,
                            (int)image.height};
    ck_assert(png_image_finish_read(&image, NULL, canvas.pixels, 0, NULL));
    return canvas;
}

static struct picture_layout layout_of(const struct picture *picture, int scale)
{
    struct blocks blocks = blocks_begin(arena);
    struct glyphs *glyphs = glyphs_open(&fonts, &blocks);
    struct picture_layout layout;
    ck_assert_int_eq(picture_layout_make(picture, scale, glyphs, &layout, &error), ATTN_OK);
    glyphs_close(glyphs);
    return layout;
}

static uint32_t pixel(const struct canvas *canvas, int x, int y)
{
    ck_assert(x >= 0 && x < canvas->width && y >= 0 && y < canvas->height);
    const uint8_t *at = canvas->pixels + ((size_t)y * (size_t)canvas->width + (size_t)x) * 3;
    return (uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2];
}

/* Of a cell near its corner, where no number is written. */
static uint32_t corner(const struct canvas *canvas, const struct picture_layout *layout, size_t panel, int row,
                       int column)
{
    struct picture_panel at = picture_layout_panel(layout, panel);
    return pixel(canvas, at.x + column * layout->cell_width + 2, at.y + row * layout->cell_height + 2);
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
                ck_assert_uint_eq(got, colormap_rgb(picture->options.colormap, level));
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
    for (int map = 0; map < COLORMAP_COUNT; map++) {
        double first = lightness(colormap_rgb((colormap)map, 0)), last = lightness(colormap_rgb((colormap)map, 255));
        ck_assert_double_gt(fabs(last - first), 70);
        for (int level = 0; level < 256; level++) {
            double even = first + (last - first) * level / 255;
            ck_assert_double_eq_tol(lightness(colormap_rgb((colormap)map, (uint8_t)level)), even, 4);
        }
    }
    ck_assert_uint_eq(colormap_rgb(COLORMAP_VIRIDIS, 0), 0x440154);
    ck_assert_uint_eq(colormap_rgb(COLORMAP_VIRIDIS, 255), 0xFDE725);
    ck_assert_uint_eq(colormap_rgb(COLORMAP_GREY, 0), 0xFFFFFF);
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

/* ---- labels ---- */

static const char *const words[] = {"okula",
                                    "gidiyorum",
                                    "\xC3\xA7ok",
                                    "\xC4\x9F\xC3\xBCne\xC5\x9F",
                                    "\xC4\xB0yi",
                                    "\xC4\xB1l\xC4\xB1k",
                                    "\xD0\xBC\xD0\xB8\xD1\x80",
                                    "\xD1\x91\xD0\xB6",
                                    "\xE4\xBB\x8A\xE5\xA4\xA9",
                                    "\xE5\xA4\xA9\xE6\xB0\x94",
                                    "\xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E",
                                    "\xED\x95\x9C\xEA\xB5\xAD",
                                    "e\xCC\x81"};

enum { WORDS = sizeof words / sizeof words[0] };

START_TEST(labels_are_in_the_picture_and_change_it)
{
    struct scenario s;
    make_scenario(&s);
    const char *keys[COLUMNS] = {words[0], words[3], words[6], words[8], words[11]};
    s.picture.queries = (struct picture_axis){.labels = words + 4, .count = ROWS};
    s.picture.keys = (struct picture_axis){.labels = keys, .count = COLUMNS};
    struct canvas canvas = png_of(&s.picture);
    struct picture_layout layout = layout_of(&s.picture, 2);
    struct picture_panel panel = picture_layout_panel(&layout, 0);
    for (int row = 0; row < ROWS; row++) {
        bool has_ink = false;
        for (int y = panel.y + row * layout.cell_height; y < panel.y + (row + 1) * layout.cell_height; y++)
            for (int x = panel.x - UNIT_LABEL_GAP * 2 - layout.query_ticks.room; x < panel.x - 6; x++)
                has_ink = has_ink || pixel(&canvas, x, y) != 0xFFFFFF;
        ck_assert_msg(has_ink, "row %d has no label", row);
    }
    struct bytes before = write_by(picture_write_png, picture_png_cost, &s.picture);
    keys[3] = words[9];
    struct bytes after = write_by(picture_write_png, picture_png_cost, &s.picture);
    ck_assert(before.length != after.length || memcmp(before.data, after.data, before.length) != 0);
}
END_TEST

START_TEST(numbers_choose_labels_and_stand_for_them)
{
    struct scenario s;
    make_scenario(&s);
    s.picture.queries.numbers = (size_t[]){2, 4, 777};
    s.picture.keys = (struct picture_axis){.labels = words, .count = WORDS, .numbers = (size_t[]){7, 6, 5, 1, 0}};
    char *svg = (char *)svg_of(&s.picture).data;
    ck_assert_ptr_nonnull(strstr(svg, ">777</text>"));
    ck_assert_ptr_nonnull(strstr(svg, ">gidiyorum</text>"));
    ck_assert_ptr_null(strstr(svg, words[3]));
}
END_TEST

/* Sizes, scales, labels and masks at random: each decodes, and keeps within what the cost foretold. */
START_TEST(random_bytes_as_labels_do_no_harm)
{
    random_source random = random_seeded(11);
    struct scenario s;
    make_scenario(&s);
    for (int round = 0; round < 40; round++) {
        char text[COLUMNS][40];
        const char *labels[COLUMNS];
        for (int i = 0; i < COLUMNS; i++) {
            size_t length = random_below(&random, sizeof text[0]);
            for (size_t j = 0; j < length; j++)
                text[i][j] = (char)(1 + random_below(&random, 255));
            text[i][length] = '\0';
            labels[i] = text[i];
        }
        s.picture.keys = s.picture.queries = (struct picture_axis){.labels = labels, .count = COLUMNS};
        s.picture.options.scale = 1 + round % 4;
        (void)png_of(&s.picture);
        (void)svg_of(&s.picture);
    }
}
END_TEST

START_TEST(without_fonts_ascii_is_in_dots_and_the_rest_in_boxes)
{
    static const struct font_set none = {0};
    struct scenario s;
    make_scenario(&s);
    s.picture.queries = (struct picture_axis){.labels = words, .count = ROWS};
    struct chunks out = chunks_begin(arena);
    ck_assert_int_eq(picture_write_png(&s.picture, &none, &runtime, &out, &error), ATTN_OK);
    ck_assert(out.is_ok && out.total_bytes > 1000);
}
END_TEST

/* ---- sizes ---- */

static attn_status plan_shape(size_t batch, size_t heads, size_t rows, size_t columns, int scale,
                              struct picture_layout *layout)
{
    static float nothing;
    attn_tensor weights = attn_tensor_view(&nothing, ATTN_F32, 4, (size_t[]){batch, heads, rows, columns});
    struct picture picture = {.weights = &weights, .options = picture_options_default()};
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
    static const size_t panels[] = {1, 2, 12, 96, 256};
    for (size_t h = 0; h < 5; h++)
        for (size_t i = 0; i < 8; i++)
            for (size_t j = 0; j < 8; j++)
                for (int scale = 1; scale <= PICTURE_SCALE_MAX; scale++) {
                    struct picture_layout layout;
                    attn_status status = plan_shape(1, panels[h], lengths[i], lengths[j], scale, &layout);
                    if (status == ATTN_ERR_TOO_LARGE && scale == PICTURE_SCALE_MAX && panels[h] == PICTURE_PANELS_MAX)
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
    struct picture picture = {.weights = &view, .options = picture_options_default()};
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

/* ---- SVG ---- */

START_TEST(markup_in_labels_is_text)
{
    struct scenario s;
    make_scenario(&s);
    const char *labels[] = {"<script>alert(1)</script>", "\"&'", "]]>", "a", "b"};
    s.picture.keys = s.picture.queries = (struct picture_axis){.labels = labels, .count = COLUMNS};
    char *svg = (char *)svg_of(&s.picture).data;
    ck_assert_ptr_null(strstr(svg, "<script"));
    ck_assert_ptr_nonnull(strstr(svg, "&lt;script&gt;alert"));
    ck_assert_ptr_nonnull(strstr(svg, ">&quot;&amp;'</text>"));
    ck_assert_ptr_null(strstr(svg, "]]>"));
}
END_TEST

/* Python's parser reads it: small with tooltips, large with images, labels of bytes. */
static void check_well_formed(const struct picture *picture)
{
    struct bytes svg = svg_of(picture);
    FILE *parser = popen("python3 -c 'import sys, xml.dom.minidom as m; d = m.parse(sys.stdin.buffer); "
                         "assert d.documentElement.tagName == \"svg\" and not d.getElementsByTagName(\"script\")'",
                         "w");
    ck_assert_ptr_nonnull(parser);
    ck_assert_uint_eq(fwrite(svg.data, 1, svg.length, parser), svg.length);
    ck_assert_int_eq(pclose(parser), 0);
}

START_TEST(svg_is_well_formed)
{
    struct scenario s;
    make_scenario(&s);
    const char *labels[] = {"<script>&\"'", "\x01\x02\x1F\x7F", "\xEF\xBF\xBF\xED\xA0\x80", "\x80", words[3]};
    s.picture.keys = s.picture.queries = (struct picture_axis){.labels = labels, .count = COLUMNS};
    check_well_formed(&s.picture);
    enum { SIDE = 70 };
    float *weight = attn_arena_take_zeroed(arena, SIDE * SIDE, sizeof *weight);
    ck_assert_ptr_nonnull(weight);
    attn_tensor view = attn_tensor_view(weight, ATTN_F32, 4, (size_t[]){1, 1, SIDE, SIDE});
    struct picture large = {.weights = &view, .options = picture_options_default()};
    check_well_formed(&large);
    ck_assert_ptr_nonnull(strstr((char *)svg_of(&large).data, "href=\"data:image/png;base64,iVBORw0KGgo"));
}
END_TEST

START_TEST(a_tooltip_has_the_pair_and_the_weight)
{
    struct scenario s;
    make_scenario(&s);
    s.weight[1] = 0.25F;
    s.picture.queries = s.picture.keys = (struct picture_axis){.labels = words, .count = WORDS};
    char *svg = (char *)svg_of(&s.picture).data;
    ck_assert_ptr_nonnull(strstr(svg, "<title>okula \xE2\x86\x92 gidiyorum: 0.25</title>"));
    ck_assert_ptr_nonnull(strstr(svg, ": masked</title>"));
    ck_assert_ptr_nonnull(strstr(svg, "role=\"img\""));
}
END_TEST

/* ---- refusals ---- */

static void expect(attn_status got, attn_status wanted, const char *field, const char *fragment)
{
    ck_assert_int_eq(got, wanted);
    ck_assert_int_eq(error.status, wanted);
    ck_assert_str_eq(error.field, field);
    ck_assert_msg(strstr(error.message, fragment) != NULL, "\"%s\" is not in \"%s\"", fragment, error.message);
}

static void expect_refused(const struct picture *picture, attn_status wanted, const char *field, const char *fragment)
{
    struct chunks out = chunks_begin(arena);
    struct picture_cost cost;
    expect(picture_write_png(picture, &fonts, &runtime, &out, &error), wanted, field, fragment);
    expect(picture_write_svg(picture, &fonts, &runtime, &out, &error), wanted, field, fragment);
    expect(picture_png_cost(picture, &cost, &error), wanted, field, fragment);
    expect(picture_svg_cost(picture, &cost, &error), wanted, field, fragment);
    ck_assert_uint_eq(out.total_bytes, 0);
}

START_TEST(what_is_not_there_is_refused)
{
    struct scenario s;
    make_scenario(&s);
    s.picture.options.head = 2;
    expect_refused(&s.picture, ATTN_ERR_VALUE, "?head", "head is 2; expected a head from 0 to 1, or all");
    s.picture.head_numbers = (size_t[]){4, 9};
    expect_refused(&s.picture, ATTN_ERR_VALUE, "?head", "one of the heads that options.heads selects");
    s.picture.options.head = PICTURE_ALL;
    s.picture.options.batch = 1;
    expect_refused(&s.picture, ATTN_ERR_VALUE, "?batch", "batch is 1; expected a batch item from 0 to 0, or all");
    s.picture.options.batch = PICTURE_ALL;
    s.weights_view.shape[1] = 257;
    expect_refused(&s.picture, ATTN_ERR_TOO_LARGE, "?head", "257 heads of 1 batch items");
    s.weights_view.shape[1] = 2;
    s.weights_view.shape[3] = 0;
    expect_refused(&s.picture, ATTN_ERR_SHAPE, "", "[1,2,3,0] has nothing to draw");
}
END_TEST

static bool after_some(void *context)
{
    return --*(int *)context < 0;
}

START_TEST(a_cancelled_picture_ends_wherever_it_is_asked)
{
    picture_writer *const writers[] = {picture_write_png, picture_write_svg};
    struct scenario s;
    make_scenario(&s);
    for (int i = 0; i < 2; i++) {
        attn_status status = ATTN_ERR_CANCELLED;
        int asked = 0;
        for (; status == ATTN_ERR_CANCELLED; asked++) {
            int left = asked;
            runtime.is_cancelled = after_some;
            runtime.cancel_context = &left;
            const attn_arena_mark before = attn_arena_mark_here(arena);
            struct chunks out = chunks_begin(arena);
            status = writers[i](&s.picture, &fonts, &runtime, &out, &error);
            attn_arena_release(arena, before);
            if (status == ATTN_ERR_CANCELLED)
                expect(status, ATTN_ERR_CANCELLED, "", "cancelled");
        }
        ck_assert_int_eq(status, ATTN_OK);
        ck_assert_int_gt(asked, 2 * HEADS);
    }
}
END_TEST

static bool count_looks(void *context)
{
    ++*(int *)context;
    return false;
}

/* Most of the time goes into reading the weights of a large head: it is not one step. */
START_TEST(runtime_is_asked_within_a_head)
{
    enum { SIDE = 2048 };
    struct scenario s;
    make_scenario(&s);
    int looks = 0;
    runtime.is_cancelled = count_looks;
    runtime.cancel_context = &looks;
    s.picture = (struct picture){.weights = &s.weights_view, .options = s.picture.options};
    s.weights_view = (attn_tensor){.dtype = ATTN_F32, .rank = 4, .shape = {1, 1, SIDE, SIDE}};
    s.weights_view.data = &(float){0.5F}; /* the same number for all, by strides of 0 */
    struct chunks out = chunks_begin(arena);
    expect(picture_write_svg(&s.picture, &fonts, &runtime, &out, &error), ATTN_OK, "", "");
    ck_assert_int_ge(looks, 2 * SIDE * SIDE >> 18);
}
END_TEST

/* Every try with less memory is a clean refusal, and the first that is none gives the same bytes as plenty. */
static void walk_memory(picture_writer *write, picture_pricer *price, const struct picture *picture, size_t step)
{
    struct bytes plenty = write_by(write, price, picture);
    attn_status status = ATTN_ERR_NO_MEMORY;
    for (size_t limit = 0; status != ATTN_OK; limit += step) {
        ck_assert_uint_lt(limit, 64 << 20);
        attn_arena *small = attn_arena_create(limit);
        struct chunks out = chunks_begin(small);
        status = write(picture, &fonts, &runtime, &out, &error);
        ck_assert(status == ATTN_OK || status == ATTN_ERR_NO_MEMORY);
        if (status == ATTN_OK)
            ck_assert_uint_eq(out.total_bytes, plenty.length);
        attn_arena_destroy(small);
    }
}

START_TEST(shortage_of_memory_is_refused_cleanly)
{
    struct scenario s;
    make_scenario(&s);
    s.picture.options.scale = 1;
    s.picture.queries = (struct picture_axis){.labels = words + 6, .count = ROWS};
    walk_memory(picture_write_png, picture_png_cost, &s.picture, 4160);
    walk_memory(picture_write_svg, picture_svg_cost, &s.picture, 4160);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_cell_has_the_colour_of_its_weight_in_every_map,
        one_head_is_drawn_alone_and_larger,
        a_head_is_named_by_its_own_number,
        strides_and_doubles_are_read_as_they_lie,
        no_table_has_the_colour_of_masked_or_nan,
        lightness_changes_evenly_from_end_to_end,
        nan_and_infinity_are_shown_and_break_nothing,
        a_map_without_any_weight_is_still_a_picture,
        labels_are_in_the_picture_and_change_it,
        numbers_choose_labels_and_stand_for_them,
        random_bytes_as_labels_do_no_harm,
        without_fonts_ascii_is_in_dots_and_the_rest_in_boxes,
        no_shape_makes_a_picture_over_the_limit,
        pooling_keeps_the_largest_of_a_block,
        batch_items_are_bands_or_with_one_head_share_one,
        markup_in_labels_is_text,
        svg_is_well_formed,
        a_tooltip_has_the_pair_and_the_weight,
        what_is_not_there_is_refused,
        a_cancelled_picture_ends_wherever_it_is_asked,
        runtime_is_asked_within_a_head,
        shortage_of_memory_is_refused_cleanly,
    };
    Suite *suite = suite_create("picture");
    TCase *tcase = tcase_create("picture");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 60); /* instrumented builds are slow */
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tcase_add_test(tcase, tests[i]);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
