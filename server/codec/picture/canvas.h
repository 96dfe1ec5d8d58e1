/*
 * canvas.h: a picture as rows of pixels, and the few shapes that are drawn on it. A pixel has three bytes: red, green,
 * blue.
 *
 * Every shape is clipped to the canvas. Colours are 0xRRGGBB.
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

/* Takes a white canvas from arena. False without memory. */
bool canvas_take(struct canvas *canvas, int width, int height, attn_arena *arena);
void canvas_fill(struct canvas *canvas, struct canvas_box box, uint32_t rgb);
/*
 * Draws diagonals inside box that rise to the right. They are thickness wide and period apart, and keep their places on
 * the canvas, so that the diagonals of neighbouring boxes meet.
 */
void canvas_hatch(struct canvas *canvas, struct canvas_box box, int period, int thickness, uint32_t rgb);
/* Draws the line of glyphs. The upper left corner of its box is at x, y. A turned line reads upwards. */
void canvas_ink(struct canvas *canvas, const struct glyph_line *line, int x, int y, bool is_turned, uint32_t rgb);

#endif
