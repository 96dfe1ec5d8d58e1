/*
 * token_norm.h: a normalisation that stands outside of the layers.
 */
#ifndef ATTN_MODEL_TOKEN_NORM_H
#define ATTN_MODEL_TOKEN_NORM_H

#include "attn/model.h"

/* attn_norm_tokens (model.h), for a caller who has set the floating-point mode. */
ATTN_MUST_CHECK attn_status attn_token_norm_run(const attn_token_norm *norm, const attn_tensor *input,
                                                const attn_runtime *runtime, attn_arena *arena, attn_tensor *output,
                                                attn_error *err);

#endif
