/* parts.h: what stands before and behind the layers of a model, read by its templates. Private to this folder. */
#ifndef CODEC_CHECKPOINT_PARTS_H
#define CODEC_CHECKPOINT_PARTS_H

#include "codec/checkpoint/description.h"
#include "codec/checkpoint/reader.h"

struct model_reader {
    struct tensor_table table;
    const json_t *config;
    char prefix[256]; /* of the names of tensors: "bert." */
    attn_arena *arena;
    struct outcome *outcome;
};

/* A count that the template has under that name, or the value of its expression. ATTN_ERR_VALUE: the number is not whole, or not from 0 to max. */
ATTN_MUST_CHECK bool model_count(const struct model_reader *reader, const json_t *template, const char *name,
                                 size_t max, size_t otherwise, size_t *count);

/* A norm of another width than the tokens cannot run. */
ATTN_MUST_CHECK bool model_check_norm(const struct model_reader *reader, const struct model_norm *norm, size_t width);

/* Read the part of that template; template NULL: there is none. */
ATTN_MUST_CHECK bool model_read_norm(struct model_reader *reader, const json_t *template, struct model_norm *norm);
/* *width is that of the tokens behind the embedding. */
ATTN_MUST_CHECK bool model_read_embedding(struct model_reader *reader, const json_t *template,
                                          struct model_embedding *embedding, size_t *width);
/* words are those of the embedding that a tied head shares; width is that of the tokens. *has_head false: no head; head->lacks says why. */
ATTN_MUST_CHECK bool model_read_head(struct model_reader *reader, const json_t *template, const attn_tensor *words,
                                     size_t width, struct model_head *head, bool *has_head);
/* What the head of that template reads. */
model_reads model_reads_of(const json_t *template);
/* Makes the head one of classes: what it reads by the template, problem_type and labels by the configuration. */
ATTN_MUST_CHECK bool model_read_classes(struct model_reader *reader, const json_t *template, struct model_head *head);

#endif
