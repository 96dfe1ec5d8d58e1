/*
 * picture_text.h: text from a client made fit to be drawn: valid UTF-8, no controls, no longer than a label may be.
 */
#ifndef CODEC_PICTURE_FONTS_PICTURE_TEXT_H
#define CODEC_PICTURE_FONTS_PICTURE_TEXT_H

#include <stddef.h>
#include <stdint.h>

enum { LABEL_ELLIPSIS = 0x2026, LABEL_CHARACTERS_MAX = 48, LABEL_BYTES_MAX = 4 * LABEL_CHARACTERS_MAX + 4 };

/* Characters as code points and as UTF-8, the same ones. */
struct label {
    uint32_t character[LABEL_CHARACTERS_MAX + 1];
    size_t count;
    char text[LABEL_BYTES_MAX];
};

/*
 * text as it can be shown. Line feed, tab and carriage return become arrows, other controls their pictures (U+2400 …),
 * bytes that are not UTF-8 and noncharacters U+FFFD; what has no width or only steers the writing direction is left
 * out; a label of spaces alone shows them as U+2423. Beyond LABEL_CHARACTERS_MAX it ends in an ellipsis.
 */
void picture_text_clean(struct label *label, const char *text);
/* Keeps the first count characters and puts an ellipsis behind them; count < label->count. */
void picture_text_cut(struct label *label, size_t count);

#endif
