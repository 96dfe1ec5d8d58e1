/* dot_font.h: a font of 5 by 7 dots for ASCII, for characters that no font file has. */
#ifndef CODEC_PICTURE_FONTS_DOT_FONT_H
#define CODEC_PICTURE_FONTS_DOT_FONT_H

#include <stdbool.h>
#include <stdint.h>

enum { DOT_FONT_WIDTH = 5, DOT_FONT_HEIGHT = 7 };

/* Whether the character has dots of its own. */
bool dot_font_has(uint32_t character);
/* Whether the dot in column x (from the left) and row y (from the top) is set; the character has dots. */
bool dot_font_at(uint32_t character, int x, int y);

#endif
