/* envelope.c: sets the defaults of every request, and answers questions about a decoded one. */
#include "codec/request/envelope.h"

void envelope_set_defaults(struct envelope *envelope, envelope_kind kind)
{
    *envelope = (struct envelope){.form = TENSOR_FORM_NESTED, .reduction.dtype = ATTN_DTYPE_COUNT};
    envelope->request.is_layer = envelope_is_layer(kind);
    attn_options *options = &envelope->request.options;
    options->compute = ATTN_F32;
    if (!envelope_is_gradients(kind))
        options->want = ATTN_STEP_BIT(ATTN_STEP_OUTPUT) | ATTN_STEP_BIT(ATTN_STEP_ATTENTION);
}

const char *envelope_compute_name(attn_dtype compute, bool bf16_products)
{
    return bf16_products ? "bfloat16" : attn_dtype_name(compute);
}

const char *envelope_form_option(const struct envelope *envelope)
{
    const struct envelope_reduction *reduction = &envelope->reduction;
    return envelope->view != ENVELOPE_VIEW_NONE   ? "/options/view"
           : reduction->has_pool                  ? "/options/pool"
           : reduction->top_k > 0                 ? "/options/top_k"
           : reduction->dtype != ATTN_DTYPE_COUNT ? "/options/dtype"
                                                  : NULL;
}
