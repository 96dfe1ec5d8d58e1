/*
 * colormap.h: which colour stands for a number: tables of 256 colours whose lightness changes evenly, so that equal
 * steps of a weight look like equal steps.
 */
#ifndef CODEC_PICTURE_COLORMAP_H
#define CODEC_PICTURE_COLORMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Every colour map with its name in requests. */
#define COLORMAP_LIST(X)                                                                                               \
    X(COLORMAP_VIRIDIS, "viridis")                                                                                     \
    X(COLORMAP_CIVIDIS, "cividis") /* the same to people who do not tell red from green */                             \
    X(COLORMAP_GREY, "grey")       /* white is low: for print */

typedef enum {
#define COLORMAP_ENUM(code, name) code,
    COLORMAP_LIST(COLORMAP_ENUM)
#undef COLORMAP_ENUM
        COLORMAP_COUNT
} colormap;

enum { COLORMAP_LEVELS = 256 };

/* 0xRRGGBB of a level; 0 is the lowest value, 255 the highest. */
uint32_t colormap_rgb(colormap map, uint8_t level);
/* The level of value in [low, high]; beyond an end it is that end. Not for NaN. low < high. */
uint8_t colormap_level(double value, double low, double high);
/* COLORMAP_COUNT when no map has that name. */
colormap colormap_from_name(const char *name);

#endif
