/* draw.h: draws the parts of a picture with a pen. A pen knows one format, PNG or SVG. */
#ifndef CODEC_PICTURE_DRAW_H
#define CODEC_PICTURE_DRAW_H

#include "codec/picture/canvas.h"
#include "codec/picture/cells.h"

/* The colours beside those of the colour map. No colour map contains them. */
#define RGB_INK    0x1F2328U /* titles, labels */
#define RGB_QUIET  0x656D76U /* names of axes, ticks, captions */
#define RGB_FRAME  0xAFB8C1U
#define RGB_MASKED 0xEEF1F6U
#define RGB_HATCH  0xC2CAD6U
#define RGB_NAN    0xD1242FU
enum { UNIT_HATCH = 6 }; /* the distance from one diagonal to the next */

typedef enum { ANCHOR_START, ANCHOR_MIDDLE, ANCHOR_END } pen_anchor;

/* One line of text. anchor says whether x, y is the start, the middle or the end of the baseline. */
struct pen_text {
    const struct label *label;
    int x, y, size;
    pen_anchor anchor;
    bool is_turned; /* reads upwards */
    uint32_t rgb;
};

struct pen {
    void (*fill)(struct pen *pen, struct canvas_box box, uint32_t rgb);
    void (*hatch)(struct pen *pen, struct canvas_box box);
    void (*text)(struct pen *pen, const struct pen_text *text);
    /* Draws all cells of a panel. Returns false without memory, and when runtime says stop. */
    bool (*panel)(struct pen *pen, const struct picture_panel *panel, const struct picture_cells *cells);
    const struct picture *picture;
    const struct picture_layout *layout;
    const struct picture_range *range;
    struct glyphs *glyphs;
    const attn_runtime *runtime;
};

/* The fill colour of a cell. */
uint32_t picture_cell_rgb(const struct pen *pen, const struct picture_cells *cells, size_t at);
struct canvas_box picture_cell_box(const struct pen *pen, const struct picture_panel *panel,
                                   const struct picture_cells *cells, size_t row, size_t column);
/* Writes numbers into cells that are large enough. A pen calls this after it filled the cells. */
void picture_draw_numbers(struct pen *pen, const struct picture_panel *panel, const struct picture_cells *cells);

/* Finds the range of the weights that are shown. Returns false when runtime says stop. */
bool picture_find_range(const struct picture *picture, const struct picture_layout *layout, const attn_runtime *runtime,
                        struct picture_cells *cells, struct picture_range *range);

/* Draws the whole picture with pen. */
ATTN_MUST_CHECK attn_status picture_draw(struct pen *pen, struct picture_cells *cells, attn_error *err);

/* Records why the drawing ended early: runtime said stop, or else memory was short. */
attn_status picture_fail_stopped(const attn_runtime *runtime, attn_error *err);

#endif
