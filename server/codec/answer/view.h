/*
 * view.h: writes the attention map in the form that another program reads (options.view).
 */
#ifndef CODEC_ANSWER_VIEW_H
#define CODEC_ANSWER_VIEW_H

#include "codec/answer/answer.h"

/* ATTN_ERR_SHAPE: the view cannot show these dimensions. */
ATTN_MUST_CHECK attn_status answer_check_view(const struct answer *answer, attn_error *err);
/* Appends the text. Without memory out->is_ok becomes false. */
void answer_write_view(const struct answer *answer, const attn_runtime *runtime, struct chunks *out);
/* The longest text, in bytes; SIZE_MAX when that exceeds size_t. */
size_t answer_view_bound(const struct answer *answer);

#endif
