/* picture_text.h: makes text from a client fit to be drawn: valid UTF-8, no controls, limited length. */
#ifndef CODEC_PICTURE_FONTS_PICTURE_TEXT_H
#define CODEC_PICTURE_FONTS_PICTURE_TEXT_H

#include <stddef.h>
#include <stdint.h>

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

#endif
