/* stack.h: describes a stack of a model. Private to this folder. */
#ifndef CODEC_CHECKPOINT_STACK_H
#define CODEC_CHECKPOINT_STACK_H

#include "codec/checkpoint/parts.h"

/* The state of checkpoint_read_model. */
struct model_builder {
    struct model_reader reader;
    const json_t *entry; /* of the architecture, with all choices made */
    struct checkpoint_model *model;
};

/* Adds the stack of that name to the model by its template. *width becomes that of its tokens. */
ATTN_MUST_CHECK bool model_make_stack(struct model_builder *builder, const char *name, const json_t *template,
                                      size_t *width);

#endif
