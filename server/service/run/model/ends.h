/*
 * ends.h: the two ends of a model for one item: embeddings and the final norm, head and predictions. Private to
 * the job.
 */
#ifndef SERVICE_RUN_MODEL_ENDS_H
#define SERVICE_RUN_MODEL_ENDS_H

#include "service/run/model/job.h"

/* *hidden becomes (count, width), in the arena. Errors name the input ("/inputs/ids"). */
ATTN_MUST_CHECK attn_status model_embed(struct model_job *job, const struct model_stack *stack,
                                        const struct model_sequence *sequence, attn_tensor *hidden);
/* The width of the stack's embeddings. */
size_t model_width(const struct model_stack *stack);
/* The bytes of model_embed for so many tokens. */
double model_embed_bytes(const struct model_job *job, const struct model_stack *stack, size_t count);

/* *normed = norm(hidden) by the stack's final norm, in the arena; hidden itself without such a norm. */
ATTN_MUST_CHECK attn_status model_norm(struct model_job *job, const struct model_stack *stack,
                                       const attn_tensor *hidden, attn_tensor *normed);

/* The rows that logits and predictions of an item have: the selected queries, or one for classes of images. */
size_t model_head_rows(const struct model_job *job, size_t count);
double model_head_bytes(const struct model_job *job, size_t count);
double model_head_flops(const struct model_job *job, size_t count);
/* Scores normed token vectors (count, d), and writes what is wanted: logits and words, at [layer][item] or [item]. */
ATTN_MUST_CHECK attn_status model_predict(struct model_job *job, const attn_tensor *normed, size_t layer, size_t item,
                                          const struct model_words *words, struct model_output *logits);

#endif
