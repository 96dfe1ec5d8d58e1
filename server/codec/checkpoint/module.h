/* module.h: the tensors and the text of one attention module, or of the block around it. Private to this folder. */
#ifndef CODEC_CHECKPOINT_MODULE_H
#define CODEC_CHECKPOINT_MODULE_H

#include "codec/checkpoint/tensor_table.h"
#include "codec/json/tree.h"

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

#endif
