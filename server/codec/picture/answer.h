/* answer.h: a picture of the attention maps of a result. It takes what image.h needs from request and result. */
#ifndef CODEC_PICTURE_ANSWER_H
#define CODEC_PICTURE_ANSWER_H

#include "codec/answer/forms.h"
#include "codec/picture/image.h"

/*
 * Call this before planning. It asks for the weights and for what the mask allows, because the picture needs both,
 * whatever options.return says. ATTN_ERR_FIELD when the options ask for another form of the maps (pool, top_k, dtype,
 * view).
 */
ATTN_MUST_CHECK attn_status answer_picture_prepare(struct envelope *envelope, attn_error *err);

/*
 * Makes the picture of a planned answer. The caller sets picture->options, and answer_picture_fill adds the numbers.
 * Labels come from the request's tokens; the numbers of heads, rows and columns come from its selections. The plan must
 * outlive the picture. ATTN_ERR_NO_MEMORY.
 */
ATTN_MUST_CHECK attn_status answer_picture_make(const struct answer *answer, attn_arena *arena, struct picture *picture,
                                                attn_error *err);
/* Adds the numbers of the result. The result must outlive the picture. */
void answer_picture_fill(const attn_result *result, struct picture *picture);

#endif
