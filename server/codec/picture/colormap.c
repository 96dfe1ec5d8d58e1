/*
 * colormap.c: the tables of colours.
 *
 *   viridis  S. van der Walt, N. Smith (2015), for matplotlib; public domain by CC0. The 256 colours of matplotlib's
 *            _cm_listed.py, rounded to eight bits.
 *   cividis  J. Nuñez, C. Anderton, R. Renslow, "Optimizing colormaps with consideration for color vision deficiency",
 *            PLOS ONE 13(7), 2018; from the same file, CC0.
 *   grey     CIE 1976 L* falling evenly from 100 to 0, as sRGB (IEC 61966-2-1).
 */
#include "codec/picture/colormap.h"

#include <assert.h>
#include <string.h>

static const uint32_t tables[COLORMAP_COUNT][COLORMAP_LEVELS] = {
#include "codec/picture/colormap.inc"
};

static const char *const names[COLORMAP_COUNT] = {
#define COLORMAP_NAME(code, name) name,
    COLORMAP_LIST(COLORMAP_NAME)
#undef COLORMAP_NAME
};

uint32_t colormap_rgb(colormap map, uint8_t level)
{
    assert(map < COLORMAP_COUNT);
    return tables[map][level];
}

uint8_t colormap_level(double value, double low, double high)
{
    assert(low < high);
    if (value <= low)
        return 0;
    if (value >= high)
        return COLORMAP_LEVELS - 1;
    return (uint8_t)((value - low) / (high - low) * (COLORMAP_LEVELS - 1) + 0.5);
}

colormap colormap_from_name(const char *name)
{
    int map = 0;
    while (map < COLORMAP_COUNT && strcmp(names[map], name) != 0)
        map++;
    return (colormap)map;
}
