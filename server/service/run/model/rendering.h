/*
 * rendering.h: the answer of a whole model in the form that the client chose: tensors with facts, a picture, or a
 * view. attend_model calls these functions in the order given here, each at its own step.
 */
#ifndef SERVICE_RUN_MODEL_RENDERING_H
#define SERVICE_RUN_MODEL_RENDERING_H

#include "codec/model/picture.h"
#include "codec/model/view.h"
#include "service/call.h"
#include "service/run/model/batch.h"

/* It refers to itself, and so must not be moved. */
struct model_rendering {
    struct picture_options options; /* of a picture */
    model_part_kind part;
    struct model_picture picture;
    struct model_view view;
    struct labels labels[2]; /* of the tokens of each stack, for pictures and views */
};

/* The options are read (rendering_read_options). Call this before the request is tokenized. Pictures and views narrow it to what they show. */
ATTN_MUST_CHECK attn_status model_rendering_prepare(struct call *call, struct model_rendering *rendering,
                                                    const struct checkpoint_model *model,
                                                    struct model_request *request);
/* Whether the answer has outputs and facts, rather than a picture or a view. */
bool model_rendering_has_facts(const struct call *call, const struct model_request *request);
/* Call this after the plan. *bytes is the most that the answer and its writing take. */
ATTN_MUST_CHECK attn_status model_rendering_weigh(struct call *call, struct model_rendering *rendering,
                                                  const struct model_batch *batch, const struct model_request *request,
                                                  const struct model_answer *answer, size_t *bytes);
/* Call this after the run. Appends the answer to call->out. */
ATTN_MUST_CHECK attn_status model_rendering_write(struct call *call, struct model_rendering *rendering,
                                                  const struct model_request *request,
                                                  const struct model_answer *answer);

#endif
