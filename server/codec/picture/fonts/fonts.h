/* fonts.h: the fonts of labels, and labels as pixels. */
#ifndef CODEC_PICTURE_FONTS_FONTS_H
#define CODEC_PICTURE_FONTS_FONTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attn/arena.h"

/*
 * ---- font_set.c ----
 *
 * The font files for the labels of pictures. They are mapped into memory once, at start.
 *
 * The set is read-only after the start, so threads share it. Each picture opens its own faces on the same bytes
 * (glyphs.c).
 */

enum { FONT_SET_MAX = 8 };

struct font_file {
    const char *path; /* points into the paths of the set */
    const unsigned char *data;
    size_t bytes;
    struct mapping *mapping; /* torn when the file was truncated: its characters are drawn as without it */
};

/* A character is looked up in the order of the files. */
struct font_set {
    struct font_file file[FONT_SET_MAX];
    size_t count;
    char *paths; /* the text that each path points into */
};

/*
 * Opens the files of list ("a.ttf,b.ttf") in order. "auto" stands for DejaVu Sans (Latin, Turkish, Cyrillic, Greek …)
 * and WenQuanYi Micro Hei (Chinese, Japanese, Korean), as far as the known places have them. Returns false when a named
 * file cannot be opened as a font; message then says which file and why. A set without fonts is valid: labels are then
 * drawn with a built-in font for ASCII.
 */
bool font_set_open(struct font_set *set, const char *list, char *message, size_t message_size);
void font_set_close(struct font_set *set);

/*
 * ---- arena_blocks.c ----
 *
 * Malloc, realloc and free over an arena, for libraries that free as they go (FreeType, libpng's zlib).
 *
 * Sizes are rounded up to a power of two. A freed block serves the next request of its size. The arena releases all
 * memory at its end. Like the arena, blocks serve one thread at a time.
 */

enum { BLOCKS_CLASSES = 40 };

struct blocks {
    attn_arena *arena;
    void *free_list[BLOCKS_CLASSES]; /* free_list[class] holds blocks of 64 << class bytes */
    bool is_short;                   /* a block was refused, so a later failure means that memory is short */
};

struct blocks blocks_begin(attn_arena *arena);
/* Returns NULL without memory; then blocks->is_short is true. */
void *blocks_take(struct blocks *blocks, size_t bytes);
/* Copies the content into a block of another size. On NULL the old block stays valid. block may be NULL. */
void *blocks_resize(struct blocks *blocks, void *block, size_t bytes);
/* Frees a block. block may be NULL. */
void blocks_give(struct blocks *blocks, void *block);

/*
 * ---- glyphs.c ----
 *
 * Makes labels, the characters of one line, of text from clients, and turns them into pixels. Each character comes from the first font that has
 * it.
 *
 * Characters are FreeType's outlines, unhinted, at fractions of a pixel, with the fonts' kerning. A combining mark is
 * centred over the character before it. Right-to-left scripts are drawn in logical order, unjoined. A character that no
 * font has is drawn in dots (ASCII), or as a box that holds the code point.
 */

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
