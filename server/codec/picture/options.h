/*
 * options.h: how a picture shall look, from the parameters of a query string.
 *
 *   head      a number, or "all" (default)     batch     a number, or "all" (default)
 *   colormap  viridis (default), cividis, grey scale     pixels for a unit of length, 1 … 4; default 2, or 1 where 2
 *                                                        is too large (SVG: 1)
 *
 * A picture of a whole model shows one batch item, and has two parameters more:
 *
 *   batch     a number; default 0              layer     a number, or "all" (default)
 *   part      encoder, decoder, cross: which attention of a model with an encoder and a decoder
 */
#ifndef CODEC_PICTURE_OPTIONS_H
#define CODEC_PICTURE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attn/status.h"
#include "base/text.h"

/*
 * Every colour map with its name in requests. Each has 256 colours whose lightness changes evenly, so that equal steps
 * of a weight look like equal steps.
 */
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

#define PICTURE_ALL SIZE_MAX
enum { PICTURE_SCALE_MAX = 4 };

typedef enum { PICTURE_OF_LAYER, PICTURE_OF_MODEL } picture_kind;
typedef enum { PICTURE_PART_DEFAULT, PICTURE_PART_ENCODER, PICTURE_PART_DECODER, PICTURE_PART_CROSS } picture_part;

struct picture_options {
    picture_kind kind;
    size_t head, batch, layer; /* a number as the request counts, or PICTURE_ALL */
    picture_part part;
    colormap colormap;
    int scale; /* 0: the default of the format */
};

struct picture_options picture_options_default(picture_kind kind);
/* Whether a parameter of such a picture has that name. */
bool picture_options_has(picture_kind kind, const char *name);
/*
 * Reads count parameters into *options.
 *   ATTN_ERR_FIELD  an unknown name, or a name that comes twice
 *   ATTN_ERR_VALUE  a value that is not listed above
 * The field of an error is the name behind a question mark ("?head"). The message says what was expected and what came.
 */
ATTN_MUST_CHECK attn_status picture_options_read(picture_kind kind, const struct text_pair *parameters, size_t count,
                                                 struct picture_options *options, attn_error *err);
/* ATTN_ERR_VALUE: no map has the number that the parameter of that name gives. expected says which there are. */
ATTN_MUST_CHECK attn_status picture_options_fail_number(const char *name, size_t number, const char *expected,
                                                        attn_error *err);

#endif
