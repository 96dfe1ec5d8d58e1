/*
 * glyphs.h: a label as pixels: the characters of one line, from the first font that has each.
 *
 * FreeType's outlines, unhinted, on fractions of a pixel, with the fonts' kerning. A combining mark is centred over the
 * character before it. Right-to-left scripts are drawn in logical order, unjoined. What no font has is drawn in dots
 * (ASCII) or as a box that holds the code point.
 */
#ifndef CODEC_PICTURE_FONTS_GLYPHS_H
#define CODEC_PICTURE_FONTS_GLYPHS_H

#include "codec/picture/fonts/arena_blocks.h"
#include "codec/picture/fonts/font_set.h"
#include "codec/picture/fonts/picture_text.h"

/* Faces of one picture: FreeType's are not for several threads. Fonts that no label needs are not opened. */
struct glyphs;

/* NULL without memory. fonts and blocks outlive it. */
struct glyphs *glyphs_open(const struct font_set *fonts, struct blocks *blocks);
/* Gives all memory back to blocks. */
void glyphs_close(struct glyphs *glyphs);

/* How far the line reaches, in pixels, at size pixels an em. */
int glyphs_width(struct glyphs *glyphs, const struct label *label, int size);
/* Shortens label until it is at most width pixels wide, with an ellipsis at its end. */
void glyphs_fit(struct glyphs *glyphs, struct label *label, int size, int width);

/* How much ink (0 … 255) each pixel has; rows of width bytes. The writing stands on row baseline. */
struct glyph_line {
    uint8_t *ink;
    int width, height, baseline;
};
/* A line to be given back by blocks_give(…, line.ink); ink is NULL without memory, or when there is nothing to see. */
struct glyph_line glyphs_line(struct glyphs *glyphs, const struct label *label, int size);

#endif
