/*
 * picture.h: attention maps as labelled heat maps, PNG or SVG.
 *
 * A panel for each head, wrapped into a grid, and a band of panels for each batch item; queries run down, keys across.
 * One scale of colours for all panels, from 0 (or the lowest weight, when one is negative) to the highest; what the
 * mask hid is hatched, which no colour map has; NaN is red. Few cells have their number written in them.
 *
 * Sizes. A cell is square, 1 to 56 units wide, unless a map is so flat that it would be a line. A map with more rows or
 * columns than a panel has pixels is pooled: a pixel is the largest of the weights it stands for, and the picture says
 * so. Labels that are longer than their room end in an ellipsis; where they would touch, every second, fifth, … is
 * written. Panels shrink until the picture has at most PICTURE_PIXELS_MAX; more than PICTURE_PANELS_MAX are refused.
 *
 * The same request gives the same bytes, as long as the fonts are the same.
 */
#ifndef CODEC_PICTURE_PICTURE_H
#define CODEC_PICTURE_PICTURE_H

#include "attn/runtime.h"
#include "attn/tensor.h"
#include "codec/bytes/chunks.h"
#include "codec/picture/fonts/font_set.h"
#include "codec/picture/picture_options.h"

enum { PICTURE_PANELS_MAX = 256, PICTURE_PIXELS_MAX = 1 << 24 };

/* What stands beside the rows or below the columns. */
struct picture_axis {
    const char *const *labels; /* UTF-8, (batch, count) or (count); NULL: the positions' numbers */
    size_t count;              /* labels of one batch item; more than any number below */
    bool is_per_item;          /* labels has a list for each batch item */
    const size_t *numbers;     /* positions that were selected, one for each row or column; NULL: 0, 1, 2, … */
};

struct picture {
    const attn_tensor *weights; /* float32 or float64, (batch, heads, rows, columns), any strides */
    const attn_tensor *allowed; /* bool of the same shape: false = masked; NULL: nothing is */
    struct picture_axis queries, keys;
    const size_t *head_numbers; /* of the heads in weights; NULL: 0, 1, 2, … */
    struct picture_options options;
};

/*
 * What a picture takes at most: bytes of the answer, and memory beside it. Looks at the shapes of weights and whether
 * there is an allowed, not at their data, so it can be asked before anything is computed. Fails like the writing.
 */
struct picture_cost {
    size_t bytes, memory_bytes;
};
ATTN_MUST_CHECK attn_status picture_png_cost(const struct picture *picture, struct picture_cost *cost, attn_error *err);
ATTN_MUST_CHECK attn_status picture_svg_cost(const struct picture *picture, struct picture_cost *cost, attn_error *err);

/*
 * Appends the picture to out, with memory from its arena. runtime is asked every few milliseconds whether to go on;
 * the calling thread does all the work.
 *   ATTN_ERR_VALUE      options name a head or batch item that there is not (field "?head", "?batch")
 *   ATTN_ERR_SHAPE      nothing to draw: a dimension is 0
 *   ATTN_ERR_TOO_LARGE  too many panels, or too many pixels however small they are
 *   ATTN_ERR_NO_MEMORY, ATTN_ERR_CANCELLED  what is in out is then no picture
 */
ATTN_MUST_CHECK attn_status picture_write_png(const struct picture *picture, const struct font_set *fonts,
                                              const attn_runtime *runtime, struct chunks *out, attn_error *err);
/* Text stays text. Up to 16384 cells have a tooltip each; with more, each head is an embedded image. No scripts. */
ATTN_MUST_CHECK attn_status picture_write_svg(const struct picture *picture, const struct font_set *fonts,
                                              const attn_runtime *runtime, struct chunks *out, attn_error *err);

#endif
