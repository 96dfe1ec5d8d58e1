/*
 * glyphs.h: makes labels, the characters of one line, of text from clients, and turns them into pixels. Each character comes from the first font that has
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

/* ---- labels ---- */

enum { LABEL_ELLIPSIS = 0x2026, LABEL_CHARACTERS_MAX = 48, LABEL_BYTES_MAX = 4 * LABEL_CHARACTERS_MAX + 4 };

/* The same characters as code points and as UTF-8. */
struct label {
    uint32_t character[LABEL_CHARACTERS_MAX + 1];
    size_t count;
    char text[LABEL_BYTES_MAX];
};

/*
 * Makes a label of text. Line feed, tab and carriage return become arrows; other controls become their pictures (U+2400
 * …). Bytes that are not UTF-8 and noncharacters become U+FFFD. Characters without width, and those that only steer the
 * writing direction, are left out. A label of spaces alone shows each as U+2423. A label beyond LABEL_CHARACTERS_MAX
 * ends in an ellipsis.
 */
void picture_text_clean(struct label *label, const char *text);
/* Keeps the first count characters and appends an ellipsis. count < label->count. */
void picture_text_cut(struct label *label, size_t count);

/* ---- pixels ---- */

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
