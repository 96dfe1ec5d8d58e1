/*
 * picture_layout.h: where everything of a picture goes, in whole pixels.
 */
#ifndef CODEC_PICTURE_PICTURE_LAYOUT_H
#define CODEC_PICTURE_PICTURE_LAYOUT_H

#include "codec/picture/fonts/glyphs.h"
#include "codec/picture/picture.h"

/* Lengths in units; a unit is scale pixels. */
enum {
    UNIT_MARGIN = 16,
    UNIT_TITLE = 12, /* sizes of writing */
    UNIT_TITLE_GAP = 9,
    UNIT_LABEL = 11,
    UNIT_SMALL = 10,
    UNIT_TITLE_ROOM = 22, /* a line of writing and the space to what it belongs to */
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
    UNIT_BAR_ROOM = 64, /* bar, ticks and legend */
    UNIT_LEGEND_ROOM = 18,
    UNIT_NUMBER_CELL = 34, /* cells this wide and half as high have their number in them */
    UNIT_GAP_CELL = 12     /* cells this large have a hairline between them */
};

/* The labels of one side: every step-th row or column has one. */
struct picture_ticks {
    size_t step;
    int room;       /* pixels across the axis that the longest takes */
    bool is_turned; /* written upwards */
};

struct picture_layout {
    int scale, width, height;
    size_t first_item, items, first_head, heads;   /* what of the map is shown */
    size_t bands, band_panels;                     /* groups of panels with labels of their own */
    size_t grid_columns, grid_rows;                /* of a band */
    size_t rows, columns, pool_rows, pool_columns; /* cells of a panel, and what each stands for */
    int cell_width, cell_height, cell_gap;         /* the gap is part of the cell */
    int panel_width, panel_height, pitch_x, pitch_y;
    bool has_heading; /* "batch 1" over a band */
    struct picture_ticks query_ticks, key_ticks;
    int left, band_height; /* of the first panel; from one band to the next */
    int bar_left, bar_top, bar_height;
};

/*
 * Plans the picture at scale pixels a unit. Without glyphs every label is as long as it may be, and the picture no
 * smaller than with them. Errors as picture.h says.
 */
ATTN_MUST_CHECK attn_status picture_layout_make(const struct picture *picture, int scale, struct glyphs *glyphs,
                                                struct picture_layout *layout, attn_error *err);

/* The upper left corner of a panel, counted through all bands, and what it shows (indices into the map). */
struct picture_panel {
    int x, y;
    size_t item, head;
    bool is_first_column, is_last_row; /* of its band: it carries the labels */
};
struct picture_panel picture_layout_panel(const struct picture_layout *layout, size_t index);

/* The label of row or column i (of the map, not of the pooled cells) of an item, at most UNIT_LABEL_WIDTH_MAX wide. */
void picture_layout_label(const struct picture_layout *layout, const struct picture_axis *axis, size_t item, size_t i,
                          struct glyphs *glyphs, struct label *label);

#endif
