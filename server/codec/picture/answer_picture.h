/*
 * answer_picture.h: a result as a picture of its attention maps: what picture.h needs, from request and result.
 */
#ifndef CODEC_PICTURE_ANSWER_PICTURE_H
#define CODEC_PICTURE_ANSWER_PICTURE_H

#include "codec/answer/answer_media.h"
#include "codec/picture/picture.h"

/*
 * Before planning: the picture needs the weights and what the mask allowed, whatever options.return says.
 * ATTN_ERR_FIELD when the options ask for another form of the maps (pool, top_k, dtype, view).
 */
ATTN_MUST_CHECK attn_status answer_picture_prepare(struct envelope *envelope, attn_error *err);

/*
 * Makes the picture of an answer that is planned: all but picture->options, which are the caller's, and the numbers,
 * which answer_picture_fill adds. Labels come from the request's tokens, numbers of heads, rows and columns from its
 * selections. The plan must outlive the picture. ATTN_ERR_NO_MEMORY.
 */
ATTN_MUST_CHECK attn_status answer_picture_make(const struct answer *answer, attn_arena *arena, struct picture *picture,
                                                attn_error *err);
/* Adds the numbers of the result, which must outlive the picture. */
void answer_picture_fill(const attn_result *result, struct picture *picture);

#endif
