/*
 * tensor_table.h: the tensors of a checkpoint by name, and which of them a description has used. Private to this folder.
 */
#ifndef CODEC_CHECKPOINT_TENSOR_TABLE_H
#define CODEC_CHECKPOINT_TENSOR_TABLE_H

#include "codec/bytes/outcome.h"
#include "codec/json/tree.h"
#include "codec/tensor/safetensors.h"

/* Reads a text that must be a JSON object; what names it in the message. ATTN_ERR_SYNTAX, ATTN_ERR_NO_MEMORY. */
ATTN_MUST_CHECK bool checkpoint_load_json(const char *text, size_t length, const char *what, attn_arena *arena,
                                          json_t **tree, struct outcome *outcome);

struct tensor_table {
    struct safetensors_tensor *tensors; /* sorted by name */
    size_t count;
    bool *is_used; /* one for each tensor */
    attn_arena *arena;
    size_t copied_bytes;       /* of the tensors that had to be copied into arena */
    attn_tensor table, normed; /* what tensor_norm_rows had last, and what it made of it */
};

/* Sorts the tensors by name. ATTN_ERR_NO_MEMORY, and ATTN_ERR_VALUE: two tensors have the same name. */
ATTN_MUST_CHECK bool tensor_table_open(struct tensor_table *table, struct safetensors_tensor *tensors, size_t count,
                                       attn_arena *arena, struct outcome *outcome);
/* Whether there is a tensor of that name. */
bool tensor_table_has(const struct tensor_table *table, const char *name);
/* Makes a view of the tensor of that name and notes that it is used. *found false: there is none. */
ATTN_MUST_CHECK bool tensor_table_take(struct tensor_table *table, const char *name, attn_tensor *view, bool *found,
                                       struct outcome *outcome);

/* Makes *tensor a view of its part of that index, of count equal parts along the first axis. */
ATTN_MUST_CHECK bool tensor_cut(attn_tensor *tensor, const char *name, size_t index, size_t count,
                                struct outcome *outcome);
/* Replaces *tensor by float32 numbers in the arena, each increased by offset. */
ATTN_MUST_CHECK bool tensor_shift(struct tensor_table *table, attn_tensor *tensor, float offset,
                                  struct outcome *outcome);
/* Replaces *tensor by float32 numbers in the arena; those at index i of the first axis are multiplied by factor i. */
ATTN_MUST_CHECK bool tensor_scale_rows(struct tensor_table *table, attn_tensor *tensor, const attn_tensor *factors,
                                       const char *name, struct outcome *outcome);
/*
 * Replaces *tensor, a table, by float32 numbers in the arena: its rows, normalised (LayerNorm) with gain and shift. shift
 * without data: none. All layers of a model have the same table, so the last one is kept.
 */
ATTN_MUST_CHECK bool tensor_norm_rows(struct tensor_table *table, attn_tensor *tensor, const attn_tensor *gain,
                                      const attn_tensor *shift, double eps, const char *name, struct outcome *outcome);
/* Copies the data of *tensor into the arena when it is not aligned to its elements. */
ATTN_MUST_CHECK bool tensor_align(struct tensor_table *table, attn_tensor *tensor, struct outcome *outcome);

#endif
