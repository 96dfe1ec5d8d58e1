/* description.h: the parts of a model, as read.h describes them. */
#ifndef CODEC_CHECKPOINT_DESCRIPTION_H
#define CODEC_CHECKPOINT_DESCRIPTION_H

#include "codec/request/kept_layer.h"

/* Tensors of a description have any float type; data NULL: absent. Tables and gains are aligned to their elements. */

struct model_norm {
    attn_norm_type type; /* ATTN_NORM_NONE: there is no norm */
    double eps;
    attn_tensor weight, bias; /* (d) */
};

typedef enum {
    MODEL_COUNTS_TOKENS, /* the position of token i is first + i */
    MODEL_COUNTS_WORDS,  /* of a token that is not padding: first + such tokens before it; of padding: first - 1 */
} model_counts;

struct model_embedding {
    attn_tensor words;            /* (vocabulary, d) */
    double scale;                 /* of the words' rows */
    attn_tensor positions, types; /* (rows, d) */
    model_counts counts;
    size_t first; /* the row of the first position */
    struct model_norm norm;
    attn_tensor projection, projection_bias; /* (width, d), layout out_in */
    bool positions_last;                     /* positions are (rows, width), and are added behind the projection */
    /* Of images instead of words: */
    attn_tensor kernel, kernel_bias; /* (d, channels, patch, patch) */
    attn_tensor leading;             /* (rows, d): class token, distillation token */
    size_t image;                    /* height and width of an image in pixels */
};

struct model_block {
    const char *path; /* of its attention module: "bert.encoder.layer.0.attention" */
    size_t layer;
    bool is_cross; /* keys and values are the encoder's output */
    size_t slot;   /* blocks that share their weights have the same, below checkpoint_model.slots */
    struct envelope_source source;
    struct kept_layer_facts facts;
};

struct model_stack {
    const char *name; /* "encoder", "decoder" */
    size_t layers;
    bool is_causal;
    struct model_embedding embedding;
    struct model_block *blocks;
    size_t block_count;
    struct model_norm norm; /* behind the last layer */
    bool norm_in_hidden;    /* "hidden" of the last layer is behind the norm */
};

/* As attn_prediction_head (attn/model.h), on the last stack. */
struct model_head {
    /*
     * "weights.dense.weight", "weights.dense.bias", "weights.norm.weight", "weights.norm.bias", "weights.output.weight",
     * "weights.output.bias"; as far as they exist, in layout out_in. There is no text.
     */
    struct envelope_source source;
    struct kept_layer_facts facts; /* layout and compute alone, for prepared weights */
    const char *activation;        /* of dense: "gelu"; NULL: none */
    attn_norm_type norm;
    double norm_eps, scale, softcap; /* softcap 0: none */
    bool is_of_first;                /* it reads the first token alone, as classes of images do */
    size_t words;                    /* rows of output */
};

struct checkpoint_model {
    const char *type, *architecture; /* "bert", "BertForMaskedLM" or "" */
    struct model_stack stacks[2];    /* an encoder comes before its decoder */
    size_t stack_count;
    bool has_head;
    bool has_classes; /* by its architecture: the model's own head is not run, and has_head is false */
    struct model_head head;
    size_t longest;                    /* tokens; 0: the model has no limit */
    int64_t pad_id, decoder_start_id;  /* -1: none */
    size_t parameters, tensors, slots; /* numbers in all tensors that are used; those tensors */
    size_t copied_bytes;               /* of the tensors that are no views of the files */
};

#endif
