/*
 * font_set.h: the font files for the labels of pictures. They are mapped into memory once, at start.
 *
 * The set is read-only after the start, so threads share it. Each picture opens its own faces on the same bytes
 * (glyphs.h).
 */
#ifndef CODEC_PICTURE_FONTS_FONT_SET_H
#define CODEC_PICTURE_FONTS_FONT_SET_H

#include <stdbool.h>
#include <stddef.h>

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

#endif
