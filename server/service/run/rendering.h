/*
 * rendering.h: writes a result in the media type that the client chose: text, tensors in a file, or a picture. A
 * service calls these functions in the order given here, each at its own step of the computation.
 */
#ifndef SERVICE_RUN_RENDERING_H
#define SERVICE_RUN_RENDERING_H

#include "codec/picture/image.h"
#include "codec/picture/options.h"
#include "service/run/work.h"

/*
 * What the pictures of layers and of models share: the parameters of the query, which only pictures have; the most bytes
 * that the picture and its writing take; and the writing.
 */
ATTN_MUST_CHECK attn_status rendering_read_options(struct call *call, picture_kind kind,
                                                   struct picture_options *options);
ATTN_MUST_CHECK attn_status rendering_weigh_picture(struct call *call, const struct picture *picture, size_t *bytes);
ATTN_MUST_CHECK attn_status rendering_write_picture(struct call *call, const struct picture *picture);

struct rendering {
    struct picture picture; /* only for pictures; laid out by rendering_weigh */
    size_t bytes;           /* set by rendering_weigh: the most bytes that the answer and its writing take */
};

/* Reads the parameters of the query. Only pictures have parameters. */
ATTN_MUST_CHECK attn_status rendering_begin(struct call *call, struct rendering *rendering);
/* Call this after the request is decoded. A picture shows steps of its own choice, and refuses other forms of maps. */
ATTN_MUST_CHECK attn_status rendering_choose_steps(struct call *call, struct envelope *envelope);
/* Call this after the plan. Checks that the request can be answered in this form, and computes the bytes it takes. */
ATTN_MUST_CHECK attn_status rendering_weigh(struct call *call, struct rendering *rendering, const struct work *work);
/* Call this after the computation. Appends the answer to call->out. */
ATTN_MUST_CHECK attn_status rendering_write(struct call *call, struct rendering *rendering, const struct work *work);

#endif
