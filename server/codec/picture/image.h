/*
 * image.h: attention maps, and sweeps of a model, as labelled heat maps, in PNG or SVG.
 *
 * Each head has a panel; the panels wrap into a grid. Each batch item has a band of panels. A picture of a model shows
 * several layers of one batch item instead: layers run down, heads across. In a panel queries run down, keys across. All panels share one scale of colours. It runs from 0, or from the lowest weight when that is negative, to
 * the highest weight. Masked cells are hatched, which no colour map is; NaN is red. Large cells have their number
 * written in them.
 *
 * Sizes: a cell is square, 1 to 56 units wide. Cells of a very flat map are stretched, so that the map is more than a
 * line. A map with more rows or columns than a panel has pixels is pooled: each pixel shows the maximum of its weights,
 * and the picture says so. Labels longer than their room end in an ellipsis. Where labels would touch, only every
 * second, fifth, … is written. Panels shrink until the picture has at most PICTURE_PIXELS_MAX. More than
 * PICTURE_PANELS_MAX panels are refused.
 *
 * The picture of a sweep has one panel: layers run down, tokens or heads across. The scale of colours is as long below the
 * metric of the unchanged run as above it.
 *
 * The same request gives the same bytes, as long as the fonts are the same.
 */
#ifndef CODEC_PICTURE_IMAGE_H
#define CODEC_PICTURE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attn/runtime.h"
#include "attn/status.h"
#include "attn/tensor.h"
#include "base/text.h"
#include "codec/answer/forms.h"
#include "codec/bytes/chunks.h"
#include "codec/picture/fonts/fonts.h"

/*
 * ---- options.c ----
 *
 * How a picture shall look, from the parameters of a query string.
 *
 *   head      a number, or "all" (default)     batch     a number, or "all" (default)
 *   colormap  viridis (default of maps), cividis,        scale     pixels for a unit of length, 1 … 4; default 2, or 1
 *             grey, signed (default of sweeps)                     where 2 is too large (SVG: 1)
 *
 * A picture of a whole model shows one batch item, and has two parameters more:
 *
 *   batch     a number; default 0              layer     a number, or "all" (default)
 *   part      encoder, decoder, cross: which attention of a model with an encoder and a decoder
 */

/*
 * Every colour map with its name in requests. Each has 256 colours whose lightness changes evenly, of signed away from
 * the middle, so that equal steps of a weight look like equal steps.
 */
#define COLORMAP_LIST(X)                                                                                               \
    X(COLORMAP_VIRIDIS, "viridis")                                                                                     \
    X(COLORMAP_CIVIDIS, "cividis") /* looks the same with red-green colour blindness */                                \
    X(COLORMAP_GREY, "grey")       /* low values are white, for print */                                               \
    X(COLORMAP_SIGNED, "signed")   /* the middle is light: blue below it, brown above */

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
    colormap colormap; /* COLORMAP_COUNT: the default of what is drawn */
    int scale;         /* 0: the default of the format */
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

/* ---- a picture ---- */

enum { PICTURE_PANELS_MAX = 1024, PICTURE_PIXELS_MAX = 1 << 24 };

/* The labels beside the rows or below the columns. */
struct picture_axis {
    const char *const *labels; /* UTF-8, (batch, count) or (count); NULL: positions are written as numbers */
    size_t count;              /* labels of one batch item; every number below is smaller */
    bool is_per_item;          /* each batch item has a list in labels */
    const size_t *numbers;     /* the selected positions, one per row or column; NULL: 0, 1, 2, … */
};

/* What a sweep has in place of a head, queries and keys. */
struct picture_sweep {
    const char *metric;  /* UTF-8: what a number is */
    const char *act;     /* what is done at each place */
    const char *columns; /* the name of the axis */
    double unchanged;    /* the metric of the run without it */
};

struct picture {
    /* float32 or float64, (batch, heads, rows, columns), of a model (layers, heads, rows, columns), any strides */
    const attn_tensor *weights;
    const attn_tensor *allowed; /* bool of the same shape: false = masked; NULL: no cell is masked */
    struct picture_axis queries, keys;
    const size_t *head_numbers;        /* the numbers of the heads in weights; NULL: 0, 1, 2, … */
    const size_t *layer_numbers;       /* of a model: the numbers of the layers in weights; NULL: 0, 1, 2, … */
    size_t whole_rows, whole_columns;  /* of the map from which weights was pooled by maximum; 0: it was not */
    const struct picture_sweep *sweep; /* weights is (1, 1, layers, columns) of a sweep; NULL: these are maps */
    struct picture_options options;    /* of a model: batch is the item that weights shows, layer is not read */
};

/*
 * The upper limit of a picture's cost: bytes of the answer, and memory beside it. It depends only on the shape of
 * weights and on whether allowed is set, so it is known before anything is computed. Errors are those of the writing.
 */
struct picture_cost {
    size_t bytes, memory_bytes;
};
ATTN_MUST_CHECK attn_status picture_png_cost(const struct picture *picture, struct picture_cost *cost, attn_error *err);
ATTN_MUST_CHECK attn_status picture_svg_cost(const struct picture *picture, struct picture_cost *cost, attn_error *err);

/*
 * Appends the picture to out, with memory from the arena of out. The calling thread does all the work, and asks runtime
 * every few milliseconds whether to go on.
 *   ATTN_ERR_VALUE      options name a head or batch item that does not exist (field "?head", "?batch")
 *   ATTN_ERR_SHAPE      nothing to draw: a dimension is 0
 *   ATTN_ERR_TOO_LARGE  too many panels, or too many pixels even with the smallest panels
 *   ATTN_ERR_NO_MEMORY, ATTN_ERR_CANCELLED  out then holds an incomplete picture
 */
ATTN_MUST_CHECK attn_status picture_write_png(const struct picture *picture, const struct font_set *fonts,
                                              const attn_runtime *runtime, struct chunks *out, attn_error *err);
/* Text stays text. Up to 16384 cells have a tooltip each; beyond that, each head is an embedded image. No scripts. */
ATTN_MUST_CHECK attn_status picture_write_svg(const struct picture *picture, const struct font_set *fonts,
                                              const attn_runtime *runtime, struct chunks *out, attn_error *err);

/* ---- answer.c: takes what a picture needs from request and result ---- */

/*
 * Call this before planning. It asks for the weights and for what the mask allows, because the picture needs both,
 * whatever options.return says. ATTN_ERR_FIELD when the options ask for another form of the maps (pool, top_k, dtype,
 * view).
 */
ATTN_MUST_CHECK attn_status answer_picture_prepare(struct envelope *envelope, attn_error *err);

/*
 * Makes the picture of a planned answer. The caller sets picture->options, and answer_picture_fill adds the numbers.
 * Labels come from the request's tokens; the numbers of heads, rows and columns come from its selections. The plan must
 * outlive the picture. ATTN_ERR_NO_MEMORY.
 */
ATTN_MUST_CHECK attn_status answer_picture_make(const struct answer *answer, attn_arena *arena, struct picture *picture,
                                                attn_error *err);
/* Adds the numbers of the result. The result must outlive the picture. */
void answer_picture_fill(const attn_result *result, struct picture *picture);

#endif
