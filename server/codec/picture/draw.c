/* draw.c: pools weights into cells, and draws panels, titles, labels, axes, colour bar, legend and caption. */
#include "codec/picture/drawing.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "codec/bytes/pace.h"

/* ---- cells ---- */

/* Returns false without memory. */
static bool take_cells(struct picture_cells *cells, const struct picture_layout *layout, attn_arena *arena)
{
    size_t count = layout->rows * layout->columns;
    cells->value = attn_arena_take(arena, count, sizeof *cells->value);
    cells->kind = attn_arena_take(arena, count, sizeof *cells->kind);
    return cells->value != NULL && cells->kind != NULL;
}

static ptrdiff_t offset_of(const attn_tensor *map, const struct picture_panel *panel, size_t row)
{
    return (ptrdiff_t)panel->item * map->stride[0] + (ptrdiff_t)panel->head * map->stride[1] +
           (ptrdiff_t)row * map->stride[2];
}

static double weight_at(const attn_tensor *weights, ptrdiff_t offset)
{
    return weights->dtype == ATTN_F64 ? ((const double *)weights->data)[offset]
                                      : (double)((const float *)weights->data)[offset];
}

static void merge(struct picture_cells *cells, size_t at, double value)
{
    if (isnan(value)) {
        cells->kind[at] = CELL_NAN;
    } else if (cells->kind[at] == CELL_MASKED || (cells->kind[at] == CELL_NUMBER && value > cells->value[at])) {
        cells->kind[at] = CELL_NUMBER;
        cells->value[at] = value;
    }
}

/* Counts the weights read since runtime was last asked. */
struct reading {
    const attn_runtime *runtime;
    size_t weights;
};

static bool goes_on(struct reading *reading, size_t weights)
{
    enum { WEIGHTS_AT_ONCE = 1 << 18 };
    reading->weights += weights;
    if (reading->weights < WEIGHTS_AT_ONCE)
        return true;
    reading->weights = 0;
    return !pace_is_cancelled(reading->runtime);
}

static bool read_row(const struct picture *picture, const struct picture_layout *layout,
                     const struct picture_panel *panel, size_t row, struct reading *reading,
                     struct picture_cells *cells)
{
    const attn_tensor *weights = picture->weights, *allowed = picture->allowed;
    ptrdiff_t weight = offset_of(weights, panel, row);
    ptrdiff_t flag = allowed == NULL ? 0 : offset_of(allowed, panel, row);
    size_t at = row / layout->pool_rows * layout->columns, columns = weights->shape[3];
    for (size_t from = 0; from < columns; from += layout->pool_columns, at++) {
        size_t to = columns - from < layout->pool_columns ? columns : from + layout->pool_columns;
        for (size_t j = from; j < to; j++)
            if (allowed == NULL || ((const uint8_t *)allowed->data)[flag + (ptrdiff_t)j * allowed->stride[3]] != 0)
                merge(cells, at, weight_at(weights, weight + (ptrdiff_t)j * weights->stride[3]));
        if (!goes_on(reading, to - from))
            return false;
    }
    return true;
}

/*
 * Reads the cells of a panel's head. Returns false when runtime says stop. runtime is asked every few milliseconds,
 * because a head may have any number of weights.
 */
static bool read_cells(const struct pen *pen, const struct picture_panel *panel, struct picture_cells *cells)
{
    const struct picture *picture = pen->picture;
    const struct picture_layout *layout = pen->layout;
    struct reading reading = {.runtime = pen->runtime};
    assert(picture->weights->dtype == ATTN_F32 || picture->weights->dtype == ATTN_F64);
    if (pace_is_cancelled(pen->runtime))
        return false;
    for (size_t i = 0; i < layout->rows * layout->columns; i++) {
        cells->kind[i] = CELL_MASKED;
        cells->value[i] = 0;
    }
    for (size_t row = 0; row < picture->weights->shape[2]; row++)
        if (!read_row(picture, layout, panel, row, &reading, cells))
            return false;
    return true;
}

/* Widens the range by these cells. An infinite number has the colour of an end, and would leave no colours to all others. */
static void add_range(struct picture_range *range, const struct picture_layout *layout,
                      const struct picture_cells *cells)
{
    for (size_t i = 0; i < layout->rows * layout->columns; i++) {
        range->has_masked = range->has_masked || cells->kind[i] == CELL_MASKED;
        range->has_nan = range->has_nan || cells->kind[i] == CELL_NAN;
        if (cells->kind[i] != CELL_NUMBER || isinf(cells->value[i]))
            continue;
        range->low = fmin(range->low, cells->value[i]);
        range->high = fmax(range->high, cells->value[i]);
    }
}

/* Where the range starts: at 0, or in the middle of the colours of a sweep. */
static double start_of(const struct picture *picture)
{
    const double unchanged = picture->sweep != NULL ? picture->sweep->unchanged : 0;
    return isfinite(unchanged) ? fmax(-DBL_MAX / 4, fmin(DBL_MAX / 4, unchanged)) : 0;
}

/* Ensures that low < high. Both ends are halved, so that the difference of the largest numbers stays finite. */
static void finish_range(const struct picture *picture, struct picture_range *range)
{
    range->low = fmax(range->low, -DBL_MAX / 4);
    range->high = fmin(range->high, DBL_MAX / 4);
    if (picture->sweep != NULL) {
        const double middle = start_of(picture), reach = fmax(range->high - middle, middle - range->low);
        const double some = reach > 0 ? reach : fmax(1, fabs(middle));
        range->low = middle - some;
        range->high = middle + some;
    }
    if (range->low == range->high)
        range->high = 1;
}

/* Finds the range of the weights that are shown. Returns false when runtime says stop. */
static bool find_range(struct pen *pen, struct picture_cells *cells)
{
    const struct picture_layout *layout = pen->layout;
    pen->range.low = pen->range.high = start_of(pen->picture);
    for (size_t i = 0; i < layout->items * layout->heads; i++) {
        struct picture_panel panel = picture_layout_panel(layout, i);
        if (!read_cells(pen, &panel, cells))
            return false;
        add_range(&pen->range, layout, cells);
    }
    finish_range(pen->picture, &pen->range);
    return true;
}

/* ---- drawing ---- */

uint32_t picture_cell_rgb(const struct pen *pen, const struct picture_cells *cells, size_t at)
{
    switch ((cell_kind)cells->kind[at]) {
    case CELL_MASKED:
        return RGB_MASKED;
    case CELL_NAN:
        return RGB_NAN;
    case CELL_NUMBER:
        break;
    }
    return colormap_rgb(pen->colormap, colormap_level(cells->value[at], pen->range.low, pen->range.high));
}

static bool is_masked(const struct picture_layout *layout, const struct picture_cells *cells, size_t row, size_t column)
{
    return row < layout->rows && column < layout->columns && cells->kind[row * layout->columns + column] == CELL_MASKED;
}

/* Masked neighbours have no gap between them, so that the numbers stand out. */
struct canvas_box picture_cell_box(const struct pen *pen, const struct picture_panel *panel,
                                   const struct picture_cells *cells, size_t row, size_t column)
{
    const struct picture_layout *layout = pen->layout;
    struct canvas_box box = {panel->x + (int)column * layout->cell_width, panel->y + (int)row * layout->cell_height,
                             layout->cell_width - layout->cell_gap, layout->cell_height - layout->cell_gap};
    if (!is_masked(layout, cells, row, column))
        return box;
    if (is_masked(layout, cells, row, column + 1))
        box.width = layout->cell_width;
    if (is_masked(layout, cells, row + 1, column))
        box.height = layout->cell_height;
    return box;
}

static colormap colormap_of(const struct picture *picture)
{
    if (picture->options.colormap != COLORMAP_COUNT)
        return picture->options.colormap;
    return picture->sweep != NULL ? COLORMAP_SIGNED : COLORMAP_VIRIDIS;
}

static void write(struct pen *pen, struct pen_text text, const char *words)
{
    struct label label;
    picture_text_clean(&label, words);
    text.label = &label;
    pen->text(pen, &text);
}

/* Writes a line that begins at x, y. */
static void write_from(struct pen *pen, int x, int y, int size, uint32_t rgb, const char *words)
{
    write(pen, (struct pen_text){.x = x, .y = y, .size = size, .rgb = rgb}, words);
}

/* The distance from the middle of small letters down to their baseline. */
static int half_height(int size)
{
    return size * 36 / 100;
}

/*
 * Whether dark text has more contrast on this colour than white text. That holds above a relative luminance of 0.18,
 * which is a luma of 118.
 */
static bool is_light(uint32_t rgb)
{
    return 299 * (rgb >> 16) + 587 * (rgb >> 8 & 0xFF) + 114 * (rgb & 0xFF) > 118 * 1000;
}

void picture_draw_numbers(struct pen *pen, const struct picture_panel *panel, const struct picture_cells *cells)
{
    const struct picture_layout *layout = pen->layout;
    int least = UNIT_NUMBER_CELL * layout->scale, size = UNIT_SMALL * layout->scale;
    if (layout->cell_width < least || layout->cell_height < least / 2)
        return;
    for (size_t at = 0; at < layout->rows * layout->columns; at++) {
        const double size_of_it = fabs(cells->value[at]);
        if (cells->kind[at] != CELL_NUMBER || size_of_it >= 1000)
            continue;
        struct canvas_box box = picture_cell_box(pen, panel, cells, at / layout->columns, at % layout->columns);
        char number[16];
        snprintf(number, sizeof number, "%.*f", size_of_it < 10 ? 2 : size_of_it < 100 ? 1 : 0, cells->value[at]);
        write(pen,
              (struct pen_text){.x = box.x + box.width / 2,
                                .y = box.y + box.height / 2 + half_height(size),
                                .size = size,
                                .anchor = ANCHOR_MIDDLE,
                                .rgb = is_light(picture_cell_rgb(pen, cells, at)) ? RGB_INK : 0xFFFFFFU},
              number);
    }
}

static size_t head_number(const struct picture *picture, size_t head)
{
    return picture->head_numbers == NULL ? head : picture->head_numbers[head];
}

/* Writes "batch 1", or "layer 1" in the picture of a model. Returns name. */
static const char *name_item(const struct picture *picture, size_t item, char name[32])
{
    bool is_layer = picture->options.kind == PICTURE_OF_MODEL;
    snprintf(name, 32, "%s %zu", is_layer ? "layer" : "batch",
             is_layer && picture->layer_numbers != NULL ? picture->layer_numbers[item] : item);
    return name;
}

/* Writes a line from x on, as far as the picture has room. */
static void write_fitting(struct pen *pen, struct pen_text text, const char *words)
{
    struct label label;
    picture_text_clean(&label, words);
    glyphs_fit(pen->glyphs, &label, text.size, pen->layout->width - UNIT_MARGIN * pen->layout->scale - text.x);
    text.label = &label;
    pen->text(pen, &text);
}

static void draw_title(struct pen *pen, const struct picture_panel *panel)
{
    const struct picture_layout *layout = pen->layout;
    const struct pen_text text = {.x = panel->x,
                                  .y = panel->y - UNIT_TITLE_GAP * layout->scale,
                                  .size = UNIT_TITLE * layout->scale,
                                  .rgb = RGB_INK};
    char title[64], item[32];
    if (pen->picture->sweep != NULL) {
        write_fitting(pen, text, pen->picture->sweep->metric);
        return;
    }
    size_t head = head_number(pen->picture, panel->head);
    if (layout->names_items)
        snprintf(title, sizeof title, "%s, head %zu", name_item(pen->picture, panel->item, item), head);
    else
        snprintf(title, sizeof title, "head %zu", head);
    write(pen, text, title);
}

/* Draws hairlines around a panel or the bar, outside of it. */
static void draw_frame(struct pen *pen, struct canvas_box box)
{
    int line = pen->layout->scale;
    int right = box.x + box.width, bottom = box.y + box.height;
    pen->fill(pen, (struct canvas_box){box.x - line, box.y - line, box.width + 2 * line, line}, RGB_FRAME);
    pen->fill(pen, (struct canvas_box){box.x - line, bottom, box.width + 2 * line, line}, RGB_FRAME);
    pen->fill(pen, (struct canvas_box){box.x - line, box.y, line, box.height}, RGB_FRAME);
    pen->fill(pen, (struct canvas_box){right, box.y, line, box.height}, RGB_FRAME);
}

/* When only some rows have a label, a tick shows which rows these are. */
static void draw_query_labels(struct pen *pen, const struct picture_panel *panel)
{
    const struct picture_layout *layout = pen->layout;
    int scale = layout->scale, size = UNIT_LABEL * scale, right = panel->x - UNIT_LABEL_GAP * scale;
    for (size_t i = 0; i < layout->rows; i += layout->query_ticks.step) {
        int middle = panel->y + (int)i * layout->cell_height + (layout->cell_height - layout->cell_gap) / 2;
        struct label label;
        picture_layout_label(layout, &pen->picture->queries, panel->item, i * layout->pool_rows, pen->glyphs, &label);
        pen->text(pen, &(struct pen_text){.label = &label,
                                          .x = right,
                                          .y = middle + half_height(size),
                                          .size = size,
                                          .anchor = ANCHOR_END,
                                          .rgb = RGB_INK});
        if (layout->query_ticks.step > 1)
            pen->fill(pen, (struct canvas_box){panel->x - 4 * scale, middle, 3 * scale, scale}, RGB_FRAME);
    }
}

static void draw_key_labels(struct pen *pen, const struct picture_panel *panel)
{
    const struct picture_layout *layout = pen->layout;
    int scale = layout->scale, size = UNIT_LABEL * scale;
    int top = panel->y + layout->panel_height + UNIT_LABEL_GAP * scale;
    bool is_turned = layout->key_ticks.is_turned;
    for (size_t j = 0; j < layout->columns; j += layout->key_ticks.step) {
        int middle = panel->x + (int)j * layout->cell_width + (layout->cell_width - layout->cell_gap) / 2;
        struct label label;
        picture_layout_label(layout, &pen->picture->keys, panel->item, j * layout->pool_columns, pen->glyphs, &label);
        pen->text(pen, &(struct pen_text){.label = &label,
                                          .x = is_turned ? middle + half_height(size) : middle,
                                          .y = is_turned ? top : top + size - scale,
                                          .size = size,
                                          .anchor = is_turned ? ANCHOR_END : ANCHOR_MIDDLE,
                                          .is_turned = is_turned,
                                          .rgb = RGB_INK});
        if (layout->key_ticks.step > 1)
            pen->fill(pen, (struct canvas_box){middle, top - 5 * scale, scale, 3 * scale}, RGB_FRAME);
    }
}

/* Draws the heading of a band and the names of its axes. first is the upper left panel of the band. */
static void draw_band(struct pen *pen, const struct picture_panel *first)
{
    const struct picture_layout *layout = pen->layout;
    int scale = layout->scale;
    int width = (int)(layout->grid_columns - 1) * layout->pitch_x + layout->panel_width;
    int height = (int)(layout->grid_rows - 1) * layout->pitch_y + layout->panel_height;
    struct pen_text name = {.size = UNIT_LABEL * scale, .anchor = ANCHOR_MIDDLE, .rgb = RGB_QUIET};
    name.x = first->x + width / 2;
    name.y = first->y + height + layout->key_ticks.room + (UNIT_LABEL_GAP + 16) * scale;
    write(pen, name, pen->picture->sweep != NULL ? pen->picture->sweep->columns : "keys");
    name.x = (UNIT_MARGIN + UNIT_LABEL) * scale;
    name.y = first->y + height / 2;
    name.is_turned = true;
    write(pen, name, pen->picture->sweep != NULL ? "layers" : "queries");
    if (!layout->has_heading)
        return;
    char heading[32];
    write_from(pen, first->x, first->y - (UNIT_TITLE_ROOM + 10) * scale, (UNIT_TITLE + 2) * scale, RGB_INK,
               name_item(pen->picture, first->item, heading));
}

/* Names the layer of a row of panels, between the name of the axis and the labels. */
static void draw_row_title(struct pen *pen, const struct picture_panel *first)
{
    const struct picture_layout *layout = pen->layout;
    char title[32];
    write(pen,
          (struct pen_text){.x = (UNIT_MARGIN + UNIT_AXIS_ROOM + UNIT_TITLE) * layout->scale,
                            .y = first->y + layout->panel_height / 2,
                            .size = UNIT_TITLE * layout->scale,
                            .anchor = ANCHOR_MIDDLE,
                            .is_turned = true,
                            .rgb = RGB_INK},
          name_item(pen->picture, first->item, title));
}

const char *picture_write_number(char text[PICTURE_NUMBER_BYTES], int digits, double value)
{
    if (isfinite(value))
        snprintf(text, PICTURE_NUMBER_BYTES, "%.*g", digits, value);
    else
        snprintf(text, PICTURE_NUMBER_BYTES, "%s", isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
    return text;
}

/* Three digits, and as many more as the ends of the range share. */
int picture_range_digits(const struct picture_range *range)
{
    enum { LEAST = 3, MOST = 6 };
    const double more = floor(log10(fmax(fabs(range->low), fabs(range->high)) / (range->high - range->low)));
    return more < 0 ? LEAST : more > MOST - LEAST ? MOST : LEAST + (int)more;
}

static void draw_tick(struct pen *pen, double value)
{
    const struct picture_layout *layout = pen->layout;
    const struct picture_range *range = &pen->range;
    int scale = layout->scale, size = UNIT_SMALL * scale;
    double share = (value - range->low) / (range->high - range->low);
    int y = layout->bar_top + (int)lround((1 - share) * layout->bar_height);
    int left = layout->bar_left + UNIT_BAR_WIDTH * scale + scale;
    char number[PICTURE_NUMBER_BYTES];
    picture_write_number(number, picture_range_digits(range), value);
    pen->fill(pen, (struct canvas_box){left, y - (share > 0.5 ? 0 : scale), 3 * scale, scale}, RGB_FRAME);
    write_from(pen, left + 6 * scale, y + half_height(size), size, RGB_QUIET, number);
}

/* Returns 1, 2 or 5 times a power of ten: about a quarter of the range. */
static double tick_step(double range)
{
    double power = pow(10, floor(log10(range / 4)));
    double share = range / 4 / power;
    return power * (share < 1.5 ? 1 : share < 3.5 ? 2 : share < 7.5 ? 5 : 10);
}

/*
 * Draws ticks at round numbers and at the highest value. A round number too close to the highest value has no tick. A sweep
 * has ticks at both ends and in the middle.
 */
static void draw_ticks(struct pen *pen)
{
    double low = pen->range.low, high = pen->range.high, step = tick_step(high - low);
    draw_tick(pen, high);
    if (pen->picture->sweep != NULL) {
        draw_tick(pen, start_of(pen->picture));
        draw_tick(pen, low);
        return;
    }
    for (int i = 0; i < 16; i++) {
        double value = (ceil(low / step - 1e-9) + i) * step;
        if (value > high - 0.45 * step)
            return;
        draw_tick(pen, value == 0 ? 0 : value); /* avoids "-0" */
    }
}

static void draw_bar(struct pen *pen)
{
    const struct picture_layout *layout = pen->layout;
    int scale = layout->scale, pieces = layout->bar_height < COLORMAP_LEVELS ? layout->bar_height : COLORMAP_LEVELS;
    struct canvas_box bar = {layout->bar_left, layout->bar_top, UNIT_BAR_WIDTH * scale, layout->bar_height};
    for (int i = 0; i < pieces; i++) {
        int top = bar.y + bar.height * i / pieces, bottom = bar.y + bar.height * (i + 1) / pieces;
        uint8_t level = (uint8_t)((COLORMAP_LEVELS - 1) * (pieces - 1 - i) / (pieces > 1 ? pieces - 1 : 1));
        pen->fill(pen, (struct canvas_box){bar.x, top, bar.width, bottom - top}, colormap_rgb(pen->colormap, level));
    }
    draw_frame(pen, bar);
    draw_ticks(pen);
    if (pen->picture->sweep == NULL) /* there, the title has this room */
        write_from(pen, bar.x, bar.y - UNIT_TITLE_GAP * scale, UNIT_LABEL * scale, RGB_QUIET, "weight");
}

/* Draws one line of the legend: a sample and its meaning. */
static void draw_sample(struct pen *pen, int line, uint32_t rgb, bool is_hatched, const char *meaning)
{
    const struct picture_layout *layout = pen->layout;
    int scale = layout->scale, side = UNIT_BAR_WIDTH * scale, size = UNIT_SMALL * scale;
    struct canvas_box box = {layout->bar_left,
                             layout->bar_top + layout->bar_height + (line * UNIT_LEGEND_ROOM + 10) * scale, side, side};
    pen->fill(pen, box, rgb);
    if (is_hatched)
        pen->hatch(pen, box);
    draw_frame(pen, box);
    write_from(pen, box.x + side + 7 * scale, box.y + side / 2 + half_height(size), size, RGB_QUIET, meaning);
}

static void draw_legend(struct pen *pen)
{
    int line = 0;
    if (pen->range.has_masked)
        draw_sample(pen, line++, RGB_MASKED, true, "masked");
    if (pen->picture->sweep != NULL && isfinite(pen->picture->sweep->unchanged))
        draw_sample(pen, line++, colormap_rgb(pen->colormap, COLORMAP_LEVELS / 2), false, "unchanged");
    if (pen->range.has_nan)
        draw_sample(pen, line, RGB_NAN, false, "NaN");
}

/* line 0 is the last. */
static void write_caption(struct pen *pen, int line, const char *caption)
{
    const struct picture_layout *layout = pen->layout;
    write_fitting(pen,
                  (struct pen_text){.x = UNIT_MARGIN * layout->scale,
                                    .y = layout->height - (UNIT_MARGIN + line * UNIT_CAPTION_ROOM) * layout->scale,
                                    .size = UNIT_SMALL * layout->scale,
                                    .rgb = RGB_QUIET},
                  caption);
}

static void draw_captions(struct pen *pen)
{
    const struct picture_layout *layout = pen->layout;
    const struct picture_sweep *sweep = pen->picture->sweep;
    char caption[80];
    if (sweep != NULL) {
        snprintf(caption, sizeof caption, "each cell: the metric with %s there", sweep->act);
        write_caption(pen, layout->captions - 1, caption);
    }
    if (layout->cell_rows == 1 && layout->cell_columns == 1)
        return;
    bool has_uneven = pen->picture->whole_rows > 0 || pen->picture->whole_columns > 0;
    snprintf(caption, sizeof caption, "each cell: the largest of %s%zu \xC3\x97 %zu %s", has_uneven ? "up to " : "",
             layout->cell_rows, layout->cell_columns, sweep != NULL ? "numbers" : "weights");
    write_caption(pen, 0, caption);
}

static bool draw_panel(struct pen *pen, size_t index, struct picture_cells *cells)
{
    const struct picture_layout *layout = pen->layout;
    struct picture_panel panel = picture_layout_panel(layout, index);
    if (!read_cells(pen, &panel, cells))
        return false;
    draw_title(pen, &panel);
    if (!pen->panel(pen, &panel, cells))
        return false;
    draw_frame(pen, (struct canvas_box){panel.x, panel.y, layout->panel_width, layout->panel_height});
    if (panel.is_first_column)
        draw_query_labels(pen, &panel);
    if (panel.is_first_column && layout->has_row_titles)
        draw_row_title(pen, &panel);
    if (panel.is_last_row)
        draw_key_labels(pen, &panel);
    if (index % layout->band_panels == 0)
        draw_band(pen, &panel);
    return true;
}

/* Draws everything by the layout. False: runtime said stop, or memory was short. */
static bool draw_all(struct pen *pen)
{
    struct picture_cells cells;
    if (!take_cells(&cells, pen->layout, pen->out->arena) || !find_range(pen, &cells) || !pen->begin(pen))
        return false;
    for (size_t i = 0; i < pen->layout->items * pen->layout->heads; i++)
        if (!draw_panel(pen, i, &cells))
            return false;
    draw_bar(pen);
    draw_legend(pen);
    draw_captions(pen);
    return pen->end(pen);
}

attn_status picture_draw(struct pen *pen, int scale, const struct font_set *fonts, attn_error *err)
{
    struct blocks blocks = blocks_begin(pen->out->arena);
    struct picture_layout layout;
    pen->glyphs = glyphs_open(fonts, &blocks);
    if (pen->glyphs == NULL)
        return attn_fail_no_memory(err);
    pen->layout = &layout;
    pen->blocks = &blocks;
    pen->colormap = colormap_of(pen->picture);
    attn_status status = picture_layout_make(pen->picture, scale, pen->glyphs, &layout, err);
    if (status == ATTN_OK && !draw_all(pen))
        status = pace_is_cancelled(pen->runtime)
                     ? attn_fail(err, ATTN_ERR_CANCELLED, NULL, "cancelled while the picture was drawn")
                     : attn_fail_no_memory(err);
    glyphs_close(pen->glyphs);
    return status;
}
