/* rendering.h: pictures of the results of layers and of models. */
#ifndef SERVICE_RUN_RENDERING_H
#define SERVICE_RUN_RENDERING_H

#include "codec/picture/image.h"
#include "codec/picture/options.h"
#include "service/call.h"

/*
 * What the pictures of layers and of models share: the parameters of the query, which only pictures have; the most bytes
 * that the picture and its writing take; and the writing.
 */
ATTN_MUST_CHECK attn_status rendering_read_options(struct call *call, picture_kind kind,
                                                   struct picture_options *options);
ATTN_MUST_CHECK attn_status rendering_weigh_picture(struct call *call, const struct picture *picture, size_t *bytes);
ATTN_MUST_CHECK attn_status rendering_write_picture(struct call *call, const struct picture *picture);

#endif
