/* reader.h: the tensors and the modules of a checkpoint as they are read. Private to this folder. */
#ifndef CODEC_CHECKPOINT_READER_H
#define CODEC_CHECKPOINT_READER_H

#include "codec/bytes/outcome.h"
#include "codec/json/tree.h"
#include "codec/tensor/safetensors.h"

/*
 * ---- tensor_table.c ----
 *
 * The tensors of a checkpoint by name, and which of them a description has used.
 */

/* Reads a text that must be a JSON object; what names it in the message. ATTN_ERR_SYNTAX, ATTN_ERR_NO_MEMORY. */
ATTN_MUST_CHECK bool checkpoint_load_json(struct text_span text, const char *what, attn_arena *arena, json_t **tree,
                                          struct outcome *outcome);

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
/*
 * From here on, a failure stays in the outcome, and after it these functions do nothing: a caller looks when it is done.
 *
 * Makes a view of the tensor of that name and notes that it is used. False: there is none, or something has failed.
 */
bool tensor_table_take(struct tensor_table *table, const char *name, attn_tensor *view, struct outcome *outcome);

/*
 * Lists the biases that the files lack beside a used weight, and have in another layer: names has room for most. A kind
 * without the bias has it in no layer.
 */
void tensor_table_find_absent(struct tensor_table *table, const char **names, size_t most, size_t *count,
                              struct outcome *outcome);

/* Makes *tensor a view of its part of that index, of count equal parts along the first axis. */
void tensor_cut(attn_tensor *tensor, const char *name, size_t index, size_t count, struct outcome *outcome);
/* Replaces *tensor by float32 numbers in the arena, each increased by offset. */
void tensor_shift(struct tensor_table *table, attn_tensor *tensor, float offset, struct outcome *outcome);
/* Replaces *tensor by float32 numbers in the arena; those at index i of the first axis are multiplied by factor i. */
void tensor_scale_rows(struct tensor_table *table, attn_tensor *tensor, const attn_tensor *factors, const char *name,
                       struct outcome *outcome);
/*
 * Replaces *tensor, a table, by float32 numbers in the arena: its rows, normalised (LayerNorm) with gain and shift. shift
 * without data: none. All layers of a model have the same table, so the last one is kept.
 */
void tensor_norm_rows(struct tensor_table *table, attn_tensor *tensor, const attn_tensor *gain,
                      const attn_tensor *shift, double eps, const char *name, struct outcome *outcome);
/* Copies the data of *tensor into the arena when it is not aligned to its elements. */
void tensor_align(struct tensor_table *table, attn_tensor *tensor, struct outcome *outcome);

/*
 * ---- module.c ----
 *
 * The tensors and the text of one attention module, or of the block around it.
 */

enum { CHECKPOINT_PATH_MAX = 512, MODULE_TENSORS_MAX = 48, EXPERT_TENSORS_MAX = 1 << 16 };

/* One module of one layer, while its parts are collected. */
struct module {
    struct tensor_table *table;
    const json_t *config;
    struct outcome *outcome;
    char path[CHECKPOINT_PATH_MAX];    /* "bert.encoder.layer.0.attention" */
    char layer[CHECKPOINT_PATH_MAX];   /* "bert.encoder.layer.0"; for blocks */
    char prefix[CHECKPOINT_PATH_MAX];  /* "bert." */
    size_t number;                     /* of the layer, in expressions and in "{n}" of "@" references */
    json_t *normed;                    /* tables that are normalised, by their names; NULL: none */
    float gain_offset;                 /* what is added to the gains of norms */
    struct safetensors_entry *entries; /* in the arena of the table */
    size_t count, room;
    bool has_experts; /* the layer has a mixture of experts */
};

/*
 * Adds weights, options and masks of the template of a module (find.h). The members that are no tensors go to
 * request, an object. Paths of weights begin with base: the path of the module, or that of the layer.
 */
ATTN_MUST_CHECK bool module_add(struct module *module, json_t *template, const char *base, json_t *request);

/*
 * Writes to text the ending of a tensor name that every module of this kind has: that of query or of qkv. False when
 * neither has a name.
 */
bool module_anchor(const json_t *weights, char *text, size_t size);

/* Replaces each "{n}" in the pattern by the number. A path that is too long is cut. */
void module_write_path(const char *pattern, size_t number, char *path, size_t size);

/*
 * ---- origin.c ----
 *
 * What a member of a block's request is made of: a member of config.json, or a tensor.
 */

/*
 * Words for the member at field ("/options/rope/theta"), which both templates of a block make: "rope_theta in config.json",
 * or the name of a tensor. False: there are none.
 */
bool origin_find(const struct module *module, const json_t *const templates[2], const char *field, char *words,
                 size_t size);

/* ---- generation_config.c ---- */

struct checkpoint_model;

/* Adds the end tokens that "eos_token_id" has: an id, or a list of them; NULL: none. */
void checkpoint_add_ends(const json_t *value, struct checkpoint_model *model);

#endif
