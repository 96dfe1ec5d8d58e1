/*
 * checkpoint.h: the attention modules of a model's checkpoint as layers to keep.
 *
 * A checkpoint is what transformers writes: config.json, and tensors by name in one safetensors file or several with an
 * index. Which tensors are an attention module, and what it computes, is data: architectures.json has an entry for each
 * kind of model, and a mapping is such an entry that somebody wrote for a model of another kind:
 *
 *     {"modules": [{"path": "layers.{n}.self_attn",
 *                   "weights": {"layout": "out_in", "query": "q_proj", "key": "k_proj", "value": "v_proj",
 *                               "output": "o_proj"},
 *                   "options": {"num_heads": "$num_attention_heads", "rope": "$rope",
 *                               "sinks": "@layers.{n}.self_attn.sinks"},
 *                   "masks":   {"causal": true}}]}
 *
 *   path     of the module in the names of the tensors, behind any prefix; {n} is a number, the first that of the layer
 *   weights  of a layer, each the path within the module of what has .weight and .bias, or {"weight", "bias"} with
 *            whole paths; "qkv" with "order" instead of query, key, value; "layout"
 *   options, masks  of a layer (server/README.md). "$name" stands for the member of config.json; of "$a|b|1e-5" the
 *            first that is there. What is not there is left out. "@path" stands for a tensor, behind the same prefix,
 *            and {n} in it for the number of the layer.
 *            Worked out from the configuration: $rope, $window, $even_window (in even layers alone where no layer_types
 *            say more), $scale.
 */
#ifndef CODEC_CHECKPOINT_CHECKPOINT_H
#define CODEC_CHECKPOINT_CHECKPOINT_H

#include "codec/tensor/safetensors.h"

struct checkpoint {
    const char *config; /* the text of config.json */
    size_t config_length;
    struct safetensors_tensor *tensors; /* of all files; checkpoint_modules sorts them by name */
    size_t tensor_count;
};

struct checkpoint_text {
    const char *at; /* NULL: none */
    size_t length;
};

/* A layer: what safetensors_write takes. */
struct checkpoint_layer {
    const char *name; /* the path of its module: "bert.encoder.layer.0.attention" */
    struct safetensors_entry *entries;
    size_t entry_count;
    const char *request; /* JSON: layout, options, masks */
};

struct checkpoint_layers {
    struct checkpoint_layer *items;
    size_t count;
};

/* The names of the files that an index (model.safetensors.index.json) refers to, each once; in the arena. */
ATTN_MUST_CHECK attn_status checkpoint_read_index(const char *text, size_t length, attn_arena *arena,
                                                  const char *const **files, size_t *count, attn_error *err);

/*
 * All attention modules, by the mapping when there is one, else by the entry of the configuration's model_type. Names
 * and texts live in the arena, tensors are views of the checkpoint's.
 *   ATTN_ERR_SYNTAX a text is not JSON; ATTN_ERR_FIELD, _VALUE the mapping or the configuration lacks something, or a
 *   tensor is not there; ATTN_ERR_NO_MEMORY. *is_unknown: there is no entry, or the entry fits no tensor, and
 *   checkpoint_describe helps on.
 */
ATTN_MUST_CHECK attn_status checkpoint_find_layers(struct checkpoint *checkpoint, struct checkpoint_text mapping,
                                                   attn_arena *arena, struct checkpoint_layers *layers,
                                                   bool *is_unknown, attn_error *err);

/* The layer as a file. out refers to the tensors. */
void checkpoint_write_layer(const struct checkpoint_layer *layer, struct chunks *out);

/*
 * Appends the tensors that there are, one line for those that differ in a number alone, and to mapping the beginning of
 * a mapping, to be filled in.
 */
void checkpoint_describe(const struct checkpoint *checkpoint, struct chunks *out, struct chunks *mapping);

#endif
