/*
 * find.h: turns the attention modules of a model's checkpoint into layers to keep.
 *
 * A checkpoint is a set of files in the format of transformers: config.json, and tensors by name in one safetensors
 * file, or in several with an index. Data says which tensors make an attention module and what the module computes.
 * architectures.json has an entry per kind of model. A mapping is such an entry that a user wrote for a model of
 * another kind:
 *
 *       {"modules": [{"path": "layers.{n}.self_attn",
 *                     "weights": {"layout": "out_in", "query": "q_proj", "key": "k_proj", "value": "v_proj",
 *                                 "output": "o_proj"},
 *                     "options": {"num_heads": "$num_attention_heads", "rope": "$rope",
 *                                 "sinks": "@layers.{n}.self_attn.sinks"},
 *                     "masks":   {"causal": true}}]}
 *
 *   path     the path of the module in the names of the tensors, behind any prefix. {n} stands for a number; the first
 *            is the number of the layer.
 *   weights  the weights of a layer. Each is a path within the module, to which .weight and .bias are added, or
 *            {"weight", "bias"} with whole paths. "qkv" with "order" may replace query, key, value. "layout" is as in
 *            requests.
 *   options, masks  those of a layer (docs/decisions.md). "$name" stands for the member of config.json; "$a|b|1e-5" for
 *            the first that exists. A member without a value is left out. "@path" stands for a tensor behind the same
 *            prefix; {n} in it is the number of the layer.
 *            "$a.b" is the member b of the member a. Values computed from the configuration: $rope and
 *            $interleaved_rope, $scale, $window, and $even_window (only even layers have the window, unless layer_types
 *            says more); $layer, the number of the layer; $layer_type, its word in layer_types, attention_layers or
 *            attention_types; $each(a), whether the number is a multiple of a; $architecture, the first of
 *            architectures; $sqrt(a), $rsqrt(a), $inverse(a), $half(a), which is rounded down; $positive(a), a number above 0; $holds(a,word), whether a list or a text with
 *            | between words has the word; $a/b; $scaled_alibi and
 *            $wide_alibi, the slopes of Falcon and of MPT.
 */
#ifndef CODEC_CHECKPOINT_FIND_H
#define CODEC_CHECKPOINT_FIND_H

#include "codec/tensor/safetensors.h"

struct checkpoint {
    struct text_span config;            /* the text of config.json */
    struct safetensors_tensor *tensors; /* the tensors of all files; checkpoint_find_layers sorts them by name */
    size_t tensor_count;
    bool is_widened; /* the file has numbers of fewer bits (codec/gguf): the tensors have memory of their own */
};

/* A layer in the form that safetensors_write takes. */
struct checkpoint_layer {
    const char *name; /* the path of the layer's module: "bert.encoder.layer.0.attention" */
    struct safetensors_entry *entries;
    size_t entry_count;
    const char *request; /* layout, options and masks as JSON */
};

struct checkpoint_layers {
    struct checkpoint_layer *items;
    size_t count;
};

/* Lists the names of the files that an index (model.safetensors.index.json) refers to, each once, in the arena. */
ATTN_MUST_CHECK attn_status checkpoint_read_index(struct text_span text, attn_arena *arena, const char *const **files,
                                                  size_t *count, attn_error *err);

/*
 * Finds all attention modules, by the mapping when there is one (at is not NULL), else by the entry for the configuration's model_type.
 * Names and texts live in the arena; tensors are views of the checkpoint's.
 *   ATTN_ERR_SYNTAX         a text is not JSON
 *   ATTN_ERR_FIELD, _VALUE  the mapping or the configuration lacks a member, or a tensor is missing
 *   ATTN_ERR_NO_MEMORY
 * *is_unknown becomes true when there is no entry, or when the entry fits no tensor; checkpoint_describe then helps to
 * write a mapping.
 */
ATTN_MUST_CHECK attn_status checkpoint_find_layers(struct checkpoint *checkpoint, struct text_span mapping,
                                                   attn_arena *arena, struct checkpoint_layers *layers,
                                                   bool *is_unknown, attn_error *err);

/* Writes the layer as a file. out refers to the tensors. */
void checkpoint_write_layer(const struct checkpoint_layer *layer, struct chunks *out);

/*
 * Appends a list of the tensors to out: tensors whose names differ only in a number share a line. Appends the beginning
 * of a mapping to mapping, for the user to complete.
 */
void checkpoint_describe(const struct checkpoint *checkpoint, struct chunks *out, struct chunks *mapping);

#endif
