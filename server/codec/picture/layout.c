/* layout.c: computes sizes and places. Cells are whole pixels, and all panels have the same size. */
#include "codec/picture/drawing.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "codec/bytes/outcome.h"

/* The largest side of a panel and of its cells. A picture with fewer panels has larger ones. */
struct panel_size {
    size_t panels; /* the row holds for up to so many panels */
    int side, cell;
};

/* The first row is of a sweep, whose numbers need wide cells. */
static const struct panel_size panel_sizes[] = {
    {1, 720, 56}, {1, 480, 56}, {4, 320, 48}, {PICTURE_PANELS_MAX, 224, 36}};

enum { SIDE_LEAST = 24, EXTENT_LEAST = 20, CAPTION_WIDTH = 250, BAR_LEAST = 72, BAR_MOST = 220 };

static size_t divide_up(size_t a, size_t b)
{
    assert(b > 0);
    return a / b + (a % b != 0);
}

static attn_status choose_head(const struct picture *picture, struct picture_layout *layout, attn_error *err)
{
    size_t heads = picture->weights->shape[1], wanted = picture->options.head, i = 0;
    layout->first_head = 0;
    layout->heads = heads;
    if (wanted == PICTURE_ALL)
        return ATTN_OK;
    while (i < heads && (picture->head_numbers ? picture->head_numbers[i] : i) != wanted)
        i++;
    layout->first_head = i;
    layout->heads = 1;
    char expected[64];
    if (picture->head_numbers != NULL)
        snprintf(expected, sizeof expected, "one of the heads that options.heads selects, or all");
    else
        snprintf(expected, sizeof expected, "a head from 0 to %zu, or all", heads - 1);
    return i < heads ? ATTN_OK : picture_options_fail_number("head", wanted, expected, err);
}

static bool is_of_model(const struct picture *picture)
{
    return picture->options.kind == PICTURE_OF_MODEL;
}

/* The weights of a model have all the layers to show, and no other. */
static attn_status choose_item(const struct picture *picture, struct picture_layout *layout, attn_error *err)
{
    size_t batch = picture->weights->shape[0], wanted = is_of_model(picture) ? PICTURE_ALL : picture->options.batch;
    bool is_all = wanted == PICTURE_ALL;
    layout->first_item = is_all ? 0 : wanted;
    layout->items = is_all ? batch : 1;
    char expected[64];
    snprintf(expected, sizeof expected, "a batch item from 0 to %zu, or all", batch - 1);
    return is_all || wanted < batch ? ATTN_OK : picture_options_fail_number("batch", wanted, expected, err);
}

static attn_status choose_panels(const struct picture *picture, struct picture_layout *layout, attn_error *err)
{
    const size_t *shape = picture->weights->shape;
    char text[96];
    assert(picture->weights->rank == 4);
    if (shape[0] == 0 || shape[1] == 0 || shape[2] == 0 || shape[3] == 0)
        return attn_fail(err, ATTN_ERR_SHAPE, NULL, "a map of shape %s has nothing to draw",
                         attn_shape_text(text, sizeof text, 4, shape));
    struct outcome outcome = {.err = err};
    if (outcome_note(&outcome, choose_head(picture, layout, err)) &&
        outcome_note(&outcome, choose_item(picture, layout, err)) && layout->heads > PICTURE_PANELS_MAX / layout->items)
        outcome_fail(&outcome, ATTN_ERR_TOO_LARGE, "?head",
                     "the picture would show %zu heads of %zu %s, at most %d maps fit in one: choose by head= or %s=",
                     layout->heads, layout->items, is_of_model(picture) ? "layers" : "batch items", PICTURE_PANELS_MAX,
                     is_of_model(picture) ? "layer" : "batch");
    return outcome.status;
}

/* All layers share a band, because they have the same labels. */
static void choose_band_of_layers(struct picture_layout *layout)
{
    layout->bands = 1;
    layout->band_panels = layout->heads * layout->items;
    layout->has_heading = layout->items == 1 && layout->heads > 1;
    layout->has_row_titles = layout->items > 1 && layout->heads > 1;
    layout->names_items = layout->heads == 1;
}

/* When each batch item shows one head, the items share a band, unless they have labels of their own. */
static void choose_bands(const struct picture *picture, struct picture_layout *layout)
{
    if (is_of_model(picture)) {
        choose_band_of_layers(layout);
        return;
    }
    bool is_per_item = (picture->queries.labels != NULL && picture->queries.is_per_item) ||
                       (picture->keys.labels != NULL && picture->keys.is_per_item);
    layout->bands = layout->heads == 1 && !is_per_item ? 1 : layout->items;
    layout->band_panels = layout->heads * layout->items / layout->bands;
    layout->has_heading = picture->weights->shape[0] > 1 && (layout->bands > 1 || layout->items == 1);
    layout->names_items = layout->bands < layout->items;
}

static int clamp_cell(size_t side, size_t count, int most)
{
    size_t cell = side / count;
    return cell < 1 ? 1 : cell > (size_t)most ? most : (int)cell;
}

/* Cells are square. When a square would turn the panel into a line, its short side is stretched. */
static void choose_cells(const struct picture *picture, const struct panel_size *size, struct picture_layout *layout)
{
    size_t side = (size_t)size->side * (size_t)layout->scale, least = EXTENT_LEAST * (size_t)layout->scale;
    size_t rows = picture->weights->shape[2], columns = picture->weights->shape[3];
    layout->pool_rows = divide_up(rows, side);
    layout->pool_columns = divide_up(columns, side);
    layout->cell_rows = layout->pool_rows * divide_up(picture->whole_rows > rows ? picture->whole_rows : rows, rows);
    layout->cell_columns =
        layout->pool_columns * divide_up(picture->whole_columns > columns ? picture->whole_columns : columns, columns);
    layout->rows = divide_up(rows, layout->pool_rows);
    layout->columns = divide_up(columns, layout->pool_columns);
    int widest = clamp_cell(side, layout->columns, size->cell * layout->scale);
    int highest = clamp_cell(side, layout->rows, size->cell * layout->scale);
    int cell = widest < highest ? widest : highest;
    int stretched_width = (int)divide_up(least, layout->columns),
        stretched_height = (int)divide_up(least, layout->rows);
    layout->cell_width = cell > stretched_width ? cell : stretched_width < widest ? stretched_width : widest;
    layout->cell_height = cell > stretched_height ? cell : stretched_height < highest ? stretched_height : highest;
    bool is_large = cell >= UNIT_GAP_CELL * layout->scale;
    layout->cell_gap = is_large ? layout->scale : 0;
    layout->panel_width = layout->cell_width * (int)layout->columns - layout->cell_gap;
    layout->panel_height = layout->cell_height * (int)layout->rows - layout->cell_gap;
}

/*
 * A layer is a row. Otherwise the grid is about as wide as high, and its rows are full when a number of columns close to
 * that divides the panels.
 */
static void choose_grid(struct picture_layout *layout)
{
    size_t panels = layout->band_panels;
    if (layout->has_row_titles) {
        layout->grid_columns = layout->heads;
        layout->grid_rows = layout->items;
        return;
    }
    double square = sqrt((double)panels * layout->pitch_y / layout->pitch_x);
    size_t least = square < 1 ? 1 : (size_t)ceil(square - 1e-9), columns = least;
    assert(least > 0);
    while (columns < panels && panels % columns != 0 && (double)columns <= 2 * square)
        columns++;
    if (panels % columns != 0)
        columns = least;
    layout->grid_columns = columns < panels ? columns : panels;
    layout->grid_rows = divide_up(panels, layout->grid_columns);
}

/* The smallest of 1, 2, 5, 10, 20, 50 … that is at least least. */
static size_t round_step(size_t least)
{
    size_t step = 1;
    for (size_t power = 1;; power *= 10)
        for (size_t i = 0; i < 3; i++) {
            step = power * (size_t[]){1, 2, 5}[i];
            if (step >= least)
                return step;
        }
}

void picture_layout_label(const struct picture_layout *layout, const struct picture_axis *axis, size_t item, size_t i,
                          struct glyphs *glyphs, struct label *label)
{
    char number[24];
    size_t position = axis->numbers == NULL ? i : axis->numbers[i];
    const char *text = number;
    if (axis->labels == NULL) {
        snprintf(number, sizeof number, "%zu", position);
    } else {
        assert(position < axis->count);
        text = axis->labels[(axis->is_per_item ? item * axis->count : 0) + position];
    }
    picture_text_clean(label, text);
    glyphs_fit(glyphs, label, UNIT_LABEL * layout->scale, UNIT_LABEL_WIDTH_MAX * layout->scale);
}

/* The width of the widest label that is written in any band. */
static int widest_label(const struct picture_layout *layout, const struct picture_axis *axis, size_t cells, size_t pool,
                        size_t step, struct glyphs *glyphs)
{
    if (glyphs == NULL)
        return UNIT_LABEL_WIDTH_MAX * layout->scale;
    bool differ = axis->labels != NULL && axis->is_per_item;
    int widest = 0;
    for (size_t item = 0; item < (differ ? layout->items : 1); item++)
        for (size_t i = 0; i < cells; i += step) {
            struct label label;
            picture_layout_label(layout, axis, layout->first_item + item, i * pool, glyphs, &label);
            int width = glyphs_width(glyphs, &label, UNIT_LABEL * layout->scale);
            widest = width > widest ? width : widest;
        }
    return widest;
}

static size_t pitch_step(const struct picture_layout *layout, int cell)
{
    return round_step(divide_up(UNIT_LABEL_PITCH * (size_t)layout->scale, (size_t)cell));
}

static void choose_query_ticks(const struct picture *picture, struct picture_layout *layout, struct glyphs *glyphs)
{
    struct picture_ticks *ticks = &layout->query_ticks;
    ticks->is_turned = false;
    ticks->step = pitch_step(layout, layout->cell_height);
    ticks->room = widest_label(layout, &picture->queries, layout->rows, layout->pool_rows, ticks->step, glyphs);
}

/* Labels are level where they fit: numbers may leave some out, words must all fit. Otherwise the labels are turned. */
static void choose_key_ticks(const struct picture *picture, struct picture_layout *layout, struct glyphs *glyphs)
{
    struct picture_ticks *ticks = &layout->key_ticks;
    const struct picture_axis *axis = &picture->keys;
    int scale = layout->scale, cell = layout->cell_width;
    ticks->step = pitch_step(layout, cell);
    int widest = widest_label(layout, axis, layout->columns, layout->pool_columns, ticks->step, glyphs);
    size_t level_step = round_step(divide_up((size_t)widest + 5 * (size_t)scale, (size_t)cell));
    ticks->is_turned = glyphs == NULL || (axis->labels != NULL && level_step > 1);
    ticks->room = ticks->is_turned ? widest : UNIT_LABEL_PITCH * scale;
    if (!ticks->is_turned)
        ticks->step = level_step;
}

static int largest(int a, int b)
{
    return a > b ? a : b;
}

static void place(struct picture_layout *layout)
{
    int scale = layout->scale;
    int row_title = layout->has_row_titles ? UNIT_AXIS_ROOM : 0;
    layout->left = scale * (UNIT_MARGIN + UNIT_AXIS_ROOM + row_title + UNIT_LABEL_GAP) + layout->query_ticks.room;
    int heading = layout->has_heading ? UNIT_HEADING_ROOM * scale : 0;
    int grid_width = (int)layout->grid_columns * layout->pitch_x - UNIT_PANEL_GAP * scale;
    int grid_height = (int)layout->grid_rows * layout->pitch_y - (UNIT_PANEL_GAP + UNIT_TITLE_ROOM) * scale;
    layout->band_height = heading + UNIT_TITLE_ROOM * scale + grid_height + layout->key_ticks.room +
                          (UNIT_LABEL_GAP + UNIT_AXIS_ROOM + UNIT_BAND_GAP) * scale;
    layout->bar_left = layout->left + grid_width + UNIT_BAR_GAP * scale;
    layout->bar_top = UNIT_MARGIN * scale + heading + UNIT_TITLE_ROOM * scale;
    layout->bar_height = largest(grid_height, BAR_LEAST * scale);
    layout->bar_height = layout->bar_height < BAR_MOST * scale ? layout->bar_height : BAR_MOST * scale;
    layout->width = layout->bar_left + layout->bar_width + UNIT_MARGIN * scale;
    layout->height = (2 * UNIT_MARGIN - UNIT_BAND_GAP) * scale + layout->band_height * (int)layout->bands;
    layout->height =
        largest(layout->height, layout->bar_top + layout->bar_height + (2 * UNIT_LEGEND_ROOM + UNIT_MARGIN) * scale);
    if (layout->captions > 0) {
        layout->height += layout->captions * UNIT_CAPTION_ROOM * scale;
        layout->width = largest(layout->width, CAPTION_WIDTH * scale);
    }
}

static void plan(const struct picture *picture, const struct panel_size *size, struct glyphs *glyphs,
                 struct picture_layout *layout)
{
    choose_cells(picture, size, layout);
    /* A panel needs room for its own title: "head 31", "batch 3, head 31". */
    int title = picture->sweep != NULL ? CAPTION_WIDTH - UNIT_SWEEP_BAR_ROOM : layout->names_items ? 108 : 56;
    layout->pitch_x = largest(layout->panel_width, title * layout->scale) + UNIT_PANEL_GAP * layout->scale;
    layout->pitch_y = layout->panel_height + (UNIT_TITLE_ROOM + UNIT_PANEL_GAP) * layout->scale;
    choose_grid(layout);
    choose_query_ticks(picture, layout, glyphs);
    choose_key_ticks(picture, layout, glyphs);
    layout->bar_width = (picture->sweep != NULL ? UNIT_SWEEP_BAR_ROOM : UNIT_BAR_ROOM) * layout->scale;
    layout->captions = (picture->sweep != NULL) + (layout->cell_rows > 1 || layout->cell_columns > 1);
    place(layout);
}

static bool fits(const struct picture_layout *layout)
{
    return (double)layout->width * layout->height <= PICTURE_PIXELS_MAX;
}

/*
 * The size is chosen as if every label had its greatest length. So it does not depend on the labels, and the cost is
 * known in advance.
 */
attn_status picture_layout_make(const struct picture *picture, int scale, struct glyphs *glyphs,
                                struct picture_layout *layout, attn_error *err)
{
    *layout = (struct picture_layout){.scale = scale};
    attn_status status = choose_panels(picture, layout, err);
    if (status != ATTN_OK)
        return status;
    choose_bands(picture, layout);
    const struct panel_size *usual = panel_sizes + (picture->sweep == NULL);
    while (layout->heads * layout->items > usual->panels)
        usual++;
    struct panel_size size = *usual;
    plan(picture, &size, NULL, layout);
    while (!fits(layout) && size.side * 3 / 4 >= SIDE_LEAST) {
        size.side = size.side * 3 / 4;
        plan(picture, &size, NULL, layout);
    }
    if (!fits(layout))
        return attn_fail(err, ATTN_ERR_TOO_LARGE, "?head",
                         "the picture would have %d x %d pixels, at most %d fit in one: choose by head= or %s=, or "
                         "a smaller scale=",
                         layout->width, layout->height, PICTURE_PIXELS_MAX, is_of_model(picture) ? "layer" : "batch");
    if (glyphs != NULL)
        plan(picture, &size, glyphs, layout);
    return ATTN_OK;
}

struct picture_panel picture_layout_panel(const struct picture_layout *layout, size_t index)
{
    size_t band = index / layout->band_panels, within = index % layout->band_panels;
    size_t column = within % layout->grid_columns, row = within / layout->grid_columns;
    int heading = layout->has_heading ? UNIT_HEADING_ROOM * layout->scale : 0;
    return (struct picture_panel){
        .x = layout->left + (int)column * layout->pitch_x,
        .y = (UNIT_MARGIN + UNIT_TITLE_ROOM) * layout->scale + heading + (int)band * layout->band_height +
             (int)row * layout->pitch_y,
        .item = layout->first_item + index / layout->heads,
        .head = layout->first_head + index % layout->heads,
        .is_first_column = column == 0,
        .is_last_row = within + layout->grid_columns >= layout->band_panels,
    };
}
