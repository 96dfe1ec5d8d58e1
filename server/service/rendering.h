/*
 * rendering.h: a result in the media type that the client chose: text, tensors in a file, or a picture. A service calls
 * these functions in their order here, each at its own step of the computation.
 */
#ifndef SERVICE_RENDERING_H
#define SERVICE_RENDERING_H

#include "codec/picture/picture.h"
#include "codec/picture/picture_options.h"
#include "service/work.h"

struct rendering {
    struct picture picture; /* of pictures alone; laid out once it is weighed */
    size_t bytes;           /* at most so many take the answer and its writing, once it is weighed */
};

/* Reads the parameters of the query: only pictures have any. */
ATTN_MUST_CHECK attn_status rendering_begin(struct call *call, struct rendering *rendering);
/* Once the request is decoded: a picture shows steps of its own choice, and refuses other forms of maps. */
ATTN_MUST_CHECK attn_status rendering_choose_steps(struct call *call, struct envelope *envelope);
/* Once it is planned: whether the request can be answered in this form, and in how many bytes. */
ATTN_MUST_CHECK attn_status rendering_weigh(struct call *call, struct rendering *rendering, const struct work *work);
/* Once it is computed: appends the answer to call->out. */
ATTN_MUST_CHECK attn_status rendering_write(struct call *call, struct rendering *rendering, const struct work *work);

#endif
