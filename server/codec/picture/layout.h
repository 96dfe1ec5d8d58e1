/* layout.h: the place of every part of a picture, in whole pixels. */
#ifndef CODEC_PICTURE_LAYOUT_H
#define CODEC_PICTURE_LAYOUT_H

#include "codec/picture/fonts/glyphs.h"
#include "codec/picture/image.h"

/* Lengths in units. A unit is scale pixels. */
enum {
    UNIT_MARGIN = 16,
    UNIT_TITLE = 12, /* TITLE, LABEL and SMALL are text sizes */
    UNIT_TITLE_GAP = 9,
    UNIT_LABEL = 11,
    UNIT_SMALL = 10,
    UNIT_TITLE_ROOM = 22, /* a line of text, with the space up to the part it names */
    UNIT_HEADING_ROOM = 24,
    UNIT_AXIS_ROOM = 20,
    UNIT_CAPTION_ROOM = 20,
    UNIT_LABEL_GAP = 6,
    UNIT_LABEL_PITCH = 14,
    UNIT_LABEL_WIDTH_MAX = 120,
    UNIT_PANEL_GAP = 14,
    UNIT_BAND_GAP = 20,
    UNIT_BAR_GAP = 22,
    UNIT_BAR_WIDTH = 10,
    UNIT_BAR_ROOM = 64, /* room for bar, ticks and legend */
    UNIT_LEGEND_ROOM = 18,
    UNIT_NUMBER_CELL = 34, /* cells this wide and half as high show their number */
    UNIT_GAP_CELL = 12     /* cells of at least this size have a hairline between them */
};

/* The labels of one side. Every step-th row or column has a label. */
struct picture_ticks {
    size_t step;
    int room;       /* the size of the longest label across the axis, in pixels */
    bool is_turned; /* the labels read upwards */
};

struct picture_layout {
    int scale, width, height;
    size_t first_item, items, first_head, heads;   /* the part of the map that is shown; of a model, items are layers */
    size_t bands, band_panels;                     /* a band is a group of panels with labels of its own */
    size_t grid_columns, grid_rows;                /* the grid of panels in a band */
    size_t rows, columns, pool_rows, pool_columns; /* the cells of a panel, and how many weights each pools */
    int cell_width, cell_height, cell_gap;         /* the cell sizes include the gap */
    int panel_width, panel_height, pitch_x, pitch_y;
    size_t cell_rows, cell_columns; /* the most weights of the whole map that a cell shows */
    bool has_heading;               /* each band has a heading such as "batch 1" */
    bool has_row_titles;            /* each row of panels is a layer, and has a title such as "layer 3" */
    bool names_items;               /* a panel's title names the batch item or layer, too */
    struct picture_ticks query_ticks, key_ticks;
    int left, band_height; /* x of the first panel; distance from band to band */
    int bar_left, bar_top, bar_height;
};

/*
 * Plans the picture at scale pixels per unit. Without glyphs every label counts as the longest possible, so the picture
 * is at least as large as with them. image.h lists the errors.
 */
ATTN_MUST_CHECK attn_status picture_layout_make(const struct picture *picture, int scale, struct glyphs *glyphs,
                                                struct picture_layout *layout, attn_error *err);

/*
 * The upper left corner of a panel, and the item and head that it shows, as indices into the map. Panels are counted
 * through all bands.
 */
struct picture_panel {
    int x, y;
    size_t item, head;
    bool is_first_column, is_last_row; /* in its band; such a panel carries the labels */
};
struct picture_panel picture_layout_panel(const struct picture_layout *layout, size_t index);

/*
 * Fits the label of row or column i of an item into UNIT_LABEL_WIDTH_MAX. i counts rows or columns of the map, not
 * pooled cells.
 */
void picture_layout_label(const struct picture_layout *layout, const struct picture_axis *axis, size_t item, size_t i,
                          struct glyphs *glyphs, struct label *label);

#endif
