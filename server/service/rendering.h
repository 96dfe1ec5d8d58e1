/*
 * rendering.h: a result in the media type that the client chose, step by step beside the computation: text, tensors in
 * a file, or a picture.
 */
#ifndef SERVICE_RENDERING_H
#define SERVICE_RENDERING_H

#include "codec/picture/picture_options.h"
#include "service/attend.h"

struct rendering {
    struct picture_options picture;
    size_t bytes; /* that the answer may have, and take besides; once it is weighed */
};

/* Reads the parameters of the query: only pictures have any. */
ATTN_MUST_CHECK attn_status rendering_begin(struct call *call, struct rendering *rendering);
/* Once the request is decoded: what the form of the answer asks of it. */
ATTN_MUST_CHECK attn_status rendering_prepare(struct call *call, const struct rendering *rendering,
                                              struct attend_work *work);
/* Once it is planned: whether it can be answered so, and in how many bytes. */
ATTN_MUST_CHECK attn_status rendering_weigh(struct call *call, struct rendering *rendering,
                                            const struct attend_work *work);
/* Once it is computed: appends the answer to call->out, and fills in the time it took. */
ATTN_MUST_CHECK attn_status rendering_write(struct call *call, const struct rendering *rendering,
                                            const struct attend_work *work);

#endif
