/*
 * picture_options.h: how a picture shall look, from the parameters of a query string.
 *
 *   head      a number, or "all" (default)     batch     a number, or "all" (default)
 *   colormap  viridis (default), cividis, grey scale     pixels for a unit of length, 1 … 4; default 2 (SVG: 1)
 */
#ifndef CODEC_PICTURE_PICTURE_OPTIONS_H
#define CODEC_PICTURE_PICTURE_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "attn/status.h"
#include "base/text.h"
#include "codec/picture/colormap.h"

#define PICTURE_ALL SIZE_MAX
enum { PICTURE_SCALE_MAX = 4 };

struct picture_options {
    size_t head, batch; /* a number as the request counts, or PICTURE_ALL */
    colormap colormap;
    int scale; /* 0: the default of the format */
};

struct picture_options picture_options_default(void);
/* Whether a picture parameter has that name. */
bool picture_options_has(const char *name);
/*
 * Reads count parameters into *options.
 *   ATTN_ERR_FIELD  an unknown name, or a name that comes twice
 *   ATTN_ERR_VALUE  a value that is not listed above
 * The field of an error is the name behind a question mark ("?head"). The message says what was expected and what came.
 */
ATTN_MUST_CHECK attn_status picture_options_read(const struct text_pair *parameters, size_t count,
                                                 struct picture_options *options, attn_error *err);

#endif
