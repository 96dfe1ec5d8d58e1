/*
 * font_set.h: the font files that labels of pictures are drawn from, mapped into memory once at start.
 *
 * Read-only after that, so threads share it; each picture opens its own faces on the same bytes (glyphs.h).
 */
#ifndef CODEC_PICTURE_FONTS_FONT_SET_H
#define CODEC_PICTURE_FONTS_FONT_SET_H

#include <stdbool.h>
#include <stddef.h>

enum { FONT_SET_MAX = 8 };

struct font_file {
    const char *path; /* within the set */
    const unsigned char *data;
    size_t bytes;
};

/* In the order in which a character is looked up. */
struct font_set {
    struct font_file file[FONT_SET_MAX];
    size_t count;
    char *paths; /* what the paths point into */
};

/*
 * Opens the files of list ("a.ttf,b.ttf") in order; "auto" among them stands for those of the known places that are
 * there: DejaVu Sans (Latin, Turkish, Cyrillic, Greek …) and WenQuanYi Micro Hei (Chinese, Japanese, Korean). A
 * file that is named but cannot be opened as a font is an error: false, and message says which and why. No font at all
 * is fine: labels are then drawn from a built-in one, which knows ASCII.
 */
bool font_set_open(struct font_set *set, const char *list, char *message, size_t message_size);
void font_set_close(struct font_set *set);

#endif
