/*
 * test_picture_text.c: the text in pictures: labels, their scripts, numbers, tooltips; in SVG it is real text.
 */
#include <stdio.h>

#include "picture_stage.h"
#include "random.h"

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

/* Sizes, scales, labels and masks at random: each decodes, and stays within the computed cost. */
START_TEST(random_bytes_as_labels_do_no_harm)
{
    random_source random = random_seeded(11);
    struct scenario s;
    make_scenario(&s);
    for (int round = 0; round < 40; round += (int)one_in(3)) {
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
    struct picture large = {.weights = &view, .options = picture_options_default(PICTURE_OF_LAYER)};
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

CHECK_MAIN("picture_text")
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, labels_are_in_the_picture_and_change_it);
    tcase_add_test(tests, numbers_choose_labels_and_stand_for_them);
    tcase_add_test(tests, random_bytes_as_labels_do_no_harm);
    tcase_add_test(tests, without_fonts_ascii_is_in_dots_and_the_rest_in_boxes);
    tcase_add_test(tests, markup_in_labels_is_text);
    tcase_add_test(tests, svg_is_well_formed);
    tcase_add_test(tests, a_tooltip_has_the_pair_and_the_weight);
}
