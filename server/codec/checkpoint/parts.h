/* parts.h: what stands before and behind the layers of a model, read by its templates. Private to this folder. */
#ifndef CODEC_CHECKPOINT_PARTS_H
#define CODEC_CHECKPOINT_PARTS_H

#include "codec/checkpoint/description.h"
#include "codec/checkpoint/tensor_table.h"
#include "codec/json/tree.h"

struct model_reader {
    struct tensor_table table;
    const json_t *config;
    char prefix[256]; /* of the names of tensors: "bert." */
    attn_arena *arena;
    struct outcome *outcome;
};

/* The number that the template has under that name, or the value of its expression. */
double model_number(const struct model_reader *reader, const json_t *template, const char *name, double otherwise);
/* The same, for counts. ATTN_ERR_VALUE: the number is not whole, or not from 0 to max. */
ATTN_MUST_CHECK bool model_count(const struct model_reader *reader, const json_t *template, const char *name,
                                 size_t max, size_t otherwise, size_t *count);

bool model_is_true(const struct model_reader *reader, const json_t *template, const char *name);

/*
 * Takes the first tensor that the file has of the names: a text, or a list. suffix and other (or NULL) are tried behind
 * each. A name stands behind the prefix, or behind a shorter one.
 */
ATTN_MUST_CHECK bool model_take(struct model_reader *reader, json_t *names, const char *suffix, const char *other,
                                attn_tensor *tensor, bool *found);
/* Takes a table of rows, which must exist. Leading axes of length 1 are dropped. columns 0: of any width. */
ATTN_MUST_CHECK bool model_take_table(struct model_reader *reader, json_t *names, size_t columns, attn_tensor *table);
/* Takes name.weight and name.bias, or name.gamma and name.beta. *weight without data: the file has none. */
ATTN_MUST_CHECK bool model_take_pair(struct model_reader *reader, json_t *names, attn_tensor *weight,
                                     attn_tensor *bias);
/* Whether the tensor is absent or a vector of floats. */
bool model_is_vector(const attn_tensor *tensor);

bool model_fail_absent(const struct model_reader *reader, json_t *names, const char *suffix);
bool model_fail_shape(const struct model_reader *reader, json_t *names, const attn_tensor *tensor);
/* A norm of another width than the tokens cannot run. */
ATTN_MUST_CHECK bool model_check_norm(const struct model_reader *reader, const struct model_norm *norm, size_t width);

/* Read the part of that template; template NULL: there is none. */
ATTN_MUST_CHECK bool model_read_norm(struct model_reader *reader, const json_t *template, struct model_norm *norm);
/* *width is that of the tokens behind the embedding. */
ATTN_MUST_CHECK bool model_read_embedding(struct model_reader *reader, const json_t *template,
                                          struct model_embedding *embedding, size_t *width);
/* words are those of the embedding that a tied head shares; width is that of the tokens. *has_head false: no head. */
ATTN_MUST_CHECK bool model_read_head(struct model_reader *reader, const json_t *template, const attn_tensor *words,
                                     size_t width, struct model_head *head, bool *has_head);

#endif
