/*
 * envelope.c: what an envelope is before anything is decoded into it.
 */
#include "codec/request/envelope.h"

void envelope_set_defaults(struct envelope *envelope, envelope_kind kind)
{
    *envelope = (struct envelope){.form = TENSOR_FORM_NESTED, .reduction.dtype = ATTN_DTYPE_COUNT};
    envelope->request.is_layer = envelope_is_layer(kind);
    attn_options *options = &envelope->request.options;
    options->compute = ATTN_F32;
    if (!envelope_is_gradients(kind))
        options->want = (uint32_t)1 << ATTN_STEP_OUTPUT | (uint32_t)1 << ATTN_STEP_ATTENTION;
}
