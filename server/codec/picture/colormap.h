/*
 * colormap.h: the colour of a number. Each table has 256 colours whose lightness changes evenly, so that equal steps of
 * a weight look like equal steps.
 */
#ifndef CODEC_PICTURE_COLORMAP_H
#define CODEC_PICTURE_COLORMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Every colour map with its name in requests. */
#define COLORMAP_LIST(X)                                                                                               \
    X(COLORMAP_VIRIDIS, "viridis")                                                                                     \
    X(COLORMAP_CIVIDIS, "cividis") /* looks the same with red-green colour blindness */                                \
    X(COLORMAP_GREY, "grey")       /* low values are white, for print */

typedef enum {
#define COLORMAP_ENUM(code, name) code,
    COLORMAP_LIST(COLORMAP_ENUM)
#undef COLORMAP_ENUM
        COLORMAP_COUNT
} colormap;

enum { COLORMAP_LEVELS = 256 };

/* 0xRRGGBB of a level. 0 is the lowest value, 255 the highest. */
uint32_t colormap_rgb(colormap map, uint8_t level);
/*
 * The level of value in [low, high]. A value beyond an end gets the level of that end. low < high; value must not be
 * NaN.
 */
uint8_t colormap_level(double value, double low, double high);
/* Returns COLORMAP_COUNT when no map has that name. */
colormap colormap_from_name(const char *name);

#endif
