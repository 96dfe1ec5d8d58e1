/* drawing.h: how a picture is drawn: its layout, the pens, and PNG. Private to this folder. */
#ifndef CODEC_PICTURE_DRAWING_H
#define CODEC_PICTURE_DRAWING_H

#include <stdint.h>

#include "attn/runtime.h"
#include "codec/picture/fonts/fonts.h"
#include "codec/picture/image.h"

/* ---- layout.c: the place of every part of a picture, in whole pixels ---- */

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
    UNIT_BAR_ROOM = 64,       /* room for bar, ticks and legend */
    UNIT_SWEEP_BAR_ROOM = 80, /* the same of a sweep, whose legend has "unchanged" */
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
    int captions;                   /* lines below the panels */
    bool names_items;               /* a panel's title names the batch item or layer, too */
    struct picture_ticks query_ticks, key_ticks;
    int left, band_height;                        /* x of the first panel; distance from band to band */
    int bar_left, bar_top, bar_height, bar_width; /* the width with ticks and legend */
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

/* ---- draw.c: draws the parts of a picture with a pen. A pen knows one format, PNG or SVG ---- */

/* The colours beside those of the colour map. No colour map contains them. */
#define RGB_INK    0x1F2328U /* titles, labels */
#define RGB_QUIET  0x656D76U /* names of axes, ticks, captions */
#define RGB_FRAME  0xAFB8C1U
#define RGB_MASKED 0xEEF1F6U
#define RGB_HATCH  0xC2CAD6U
#define RGB_NAN    0xD1242FU
enum { UNIT_HATCH = 6 }; /* the distance from one diagonal to the next */

struct canvas_box {
    int x, y, width, height;
};

typedef enum { ANCHOR_START, ANCHOR_MIDDLE, ANCHOR_END } pen_anchor;

/* One line of text. anchor says whether x, y is the start, the middle or the end of the baseline. */
struct pen_text {
    const struct label *label;
    int x, y, size;
    pen_anchor anchor;
    bool is_turned; /* reads upwards */
    uint32_t rgb;
};

typedef enum { CELL_MASKED, CELL_NUMBER, CELL_NAN } cell_kind;

/*
 * A layout has rows * columns cells. A pooled cell is the maximum of its weights: NaN if any is NaN, masked if all are
 * masked.
 */
struct picture_cells {
    double *value;
    uint8_t *kind; /* a cell_kind per cell */
};

/* The range of the colours, and which special cells occur in the picture. */
struct picture_range {
    double low, high; /* of a sweep as far from the metric of the unchanged run */
    bool has_masked, has_nan;
};

/* What a format adds to the drawing. A larger struct of the format begins with its pen. */
struct pen {
    /* Takes memory and writes what comes before the drawing; layout and range are known. False without memory. */
    bool (*begin)(struct pen *pen);
    void (*fill)(struct pen *pen, struct canvas_box box, uint32_t rgb);
    void (*hatch)(struct pen *pen, struct canvas_box box);
    void (*text)(struct pen *pen, const struct pen_text *text);
    /* Draws all cells of a panel. Returns false without memory, and when runtime says stop. */
    bool (*panel)(struct pen *pen, const struct picture_panel *panel, const struct picture_cells *cells);
    /* Writes what comes behind the drawing. Returns false as panel does. */
    bool (*end)(struct pen *pen);
    const struct picture *picture;
    const attn_runtime *runtime;
    struct chunks *out;
    /* set by picture_draw: */
    const struct picture_layout *layout;
    struct picture_range range;
    colormap colormap;
    struct blocks *blocks; /* is_short: some text was not drawn, because memory was short */
    struct glyphs *glyphs;
};

/* The fill colour of a cell. */
uint32_t picture_cell_rgb(const struct pen *pen, const struct picture_cells *cells, size_t at);
struct canvas_box picture_cell_box(const struct pen *pen, const struct picture_panel *panel,
                                   const struct picture_cells *cells, size_t row, size_t column);
/* Writes the number with so many significant digits, or "NaN", "Infinity", "-Infinity". Returns text. */
enum { PICTURE_NUMBER_BYTES = 32 };
const char *picture_write_number(char text[PICTURE_NUMBER_BYTES], int digits, double value);
/* The significant digits that the ends of the range need to differ. */
int picture_range_digits(const struct picture_range *range);
/* Writes numbers into cells that are large enough. A pen calls this after it filled the cells. */
void picture_draw_numbers(struct pen *pen, const struct picture_panel *panel, const struct picture_cells *cells);

/* Draws the whole picture with the pen, at scale pixels per unit. */
ATTN_MUST_CHECK attn_status picture_draw(struct pen *pen, int scale, const struct font_set *fonts, attn_error *err);

enum { PICTURE_GLYPHS_BYTES = 4 << 20 }; /* the most memory of the glyphs of a picture */

/* ---- png.c: rows of pixels as a PNG file (ISO/IEC 15948), by libpng ---- */

/* Receives the next bytes of the file. Returning false ends the writing. */
typedef bool png_sink(void *context, const void *bytes, size_t length);

struct png_image {
    const uint8_t *pixels; /* three bytes per pixel, red first; no gaps between rows */
    size_t width, height;
    int scale; /* the density in the file is 96 dots per inch times scale; 0: none is written */
};

/*
 * Writes the file of an image to sink. libpng's memory comes from blocks. Returns false without memory, when sink
 * returns false, and when runtime says stop; runtime is asked between rows.
 */
bool png_write_rgb(const struct png_image *image, const attn_runtime *runtime, struct blocks *blocks, png_sink *sink,
                   void *context);
/* The longest file in bytes, and the bytes that are taken from the arena meanwhile. */
size_t png_bytes_bound(size_t width, size_t height);
enum { PNG_WRITE_MEMORY_BYTES = 1 << 20 };

#endif
