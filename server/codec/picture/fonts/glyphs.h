/*
 * glyphs.h: turns a label, the characters of one line, into pixels. Each character comes from the first font that has
 * it.
 *
 * Characters are FreeType's outlines, unhinted, at fractions of a pixel, with the fonts' kerning. A combining mark is
 * centred over the character before it. Right-to-left scripts are drawn in logical order, unjoined. A character that no
 * font has is drawn in dots (ASCII), or as a box that holds the code point.
 */
#ifndef CODEC_PICTURE_FONTS_GLYPHS_H
#define CODEC_PICTURE_FONTS_GLYPHS_H

#include <stdbool.h>
#include <stdint.h>

#include "codec/picture/fonts/arena_blocks.h"
#include "codec/picture/fonts/font_set.h"
#include "codec/picture/fonts/picture_text.h"

/*
 * The faces of one picture. FreeType's faces must not be shared by threads. A font is opened when a label first needs
 * it.
 */
struct glyphs;

/* Returns NULL without memory. fonts and blocks must outlive the glyphs. */
struct glyphs *glyphs_open(const struct font_set *fonts, struct blocks *blocks);
/* Gives all memory back to blocks. */
void glyphs_close(struct glyphs *glyphs);

/* The width of the line in pixels, at size pixels per em. */
int glyphs_width(struct glyphs *glyphs, const struct label *label, int size);
/* Shortens label until it is at most width pixels wide, and puts an ellipsis at its end. */
void glyphs_fit(struct glyphs *glyphs, struct label *label, int size, int width);

/* How much ink (0 … 255) each pixel has, in rows of width bytes. The baseline of the text is row baseline. */
struct glyph_line {
    uint8_t *ink;
    int width, height, baseline;
};
/* Draws a line. Release it by blocks_give(…, line.ink). ink is NULL without memory, and when the line has no ink. */
struct glyph_line glyphs_line(struct glyphs *glyphs, const struct label *label, int size);

#endif
