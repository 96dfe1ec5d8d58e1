/* draw.h: draws the parts of a picture with a pen. A pen knows one format, PNG or SVG. */
#ifndef CODEC_PICTURE_DRAW_H
#define CODEC_PICTURE_DRAW_H

#include "attn/runtime.h"
#include "codec/picture/fonts/arena_blocks.h"
#include "codec/picture/fonts/glyphs.h"
#include "codec/picture/layout.h"

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
    double low, high;
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
    struct blocks *blocks; /* is_short: some text was not drawn, because memory was short */
    struct glyphs *glyphs;
};

/* The fill colour of a cell. */
uint32_t picture_cell_rgb(const struct pen *pen, const struct picture_cells *cells, size_t at);
struct canvas_box picture_cell_box(const struct pen *pen, const struct picture_panel *panel,
                                   const struct picture_cells *cells, size_t row, size_t column);
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
