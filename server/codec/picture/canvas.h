/*
 * canvas.h: a picture as rows of pixels, three bytes (red, green, blue) each, and the few things drawn on it.
 *
 * Everything is clipped to the canvas. Colours are 0xRRGGBB.
 */
#ifndef CODEC_PICTURE_CANVAS_H
#define CODEC_PICTURE_CANVAS_H

#include "attn/arena.h"
#include "codec/picture/fonts/glyphs.h"

struct canvas {
    uint8_t *pixels;
    int width, height;
};

struct canvas_box {
    int x, y, width, height;
};

/* White; false without memory. */
bool canvas_take(struct canvas *canvas, int width, int height, attn_arena *arena);
void canvas_fill(struct canvas *canvas, struct canvas_box box, uint32_t rgb);
/* The pixels of box on diagonals that rise to the right, thickness wide and period apart, in the canvas's own frame. */
void canvas_hatch(struct canvas *canvas, struct canvas_box box, int period, int thickness, uint32_t rgb);
/* The line with its box's upper left corner at x, y; turned a quarter to the left, it reads upwards. */
void canvas_ink(struct canvas *canvas, const struct glyph_line *line, int x, int y, bool is_turned, uint32_t rgb);

#endif
