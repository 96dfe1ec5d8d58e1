/*
 * description.h: the description of a whole model: which tensors of a checkpoint are which part of it.
 *
 * A model has one or two stacks of layers (an encoder, a decoder), and may have a prediction head. A layer is a block:
 * an attention module with its norms, its residual and its feed-forward network. A layer of a decoder with an encoder is
 * two blocks: the attention to its own tokens, and the attention to the encoder's with the feed-forward network.
 *
 * architectures.json describes kinds of models. To the language of find.h, which is that of attention modules, an
 * entry adds:
 *
 *   "block"    in a module: what stands around the attention. Its weights, options and masks are added to those of the
 *              module. Paths of its weights begin at the layer: the module's path up to its first {n}. "feed_forward"
 *              holds {"up", "gate", "down", "norm", "branch_norm", "experts"}. "stack" names the stack, "cross": true says that
 *              keys and values come from the encoder.
 *   a weight   may also be a list: the first that the file has ("" at the end: the part may be absent). Named weights
 *              may have "part": [i, n], one of n equal parts of the rows, and "factors": a vector that multiplies the
 *              rows. "gain_offset": 1 among weights means gains of 1 + w in the file.
 *   "normed"   in a module: {NAME: norm}: the table of that name, which an option names by "@", is normalised row by row
 *   "experts"  {"count", "router", "shared_gate", "layout", "each": {"gate", "up", "down"}}, how many there are by config.json,
 *              and names of tensors. A layer without the router has no experts. A network that all tokens share needs
 *              its gate where one is named. Of each, a text has "{e}" for the number of the expert; an object names tensors of
 *              all experts, the first axis of which counts them: {"weight", "bias", "part"}. They may be packed (mxfp4.h)
 *   "model"    {"stacks": {NAME: {"layers", "groups", "embedding", "norm"}}, "head", "longest", "starts_with_last",
 *              "ignored"}
 *              layers     how many; groups: how many of them have weights of their own, the others share them
 *              embedding  {"words", "scale", "dropped", "positions": {"table" or "sinusoidal", "first", "counts",
 *                         "last"}, "types", "norm", "projection", "patches", "audio"}; audio {"kernels": two
 *                         convolutions, "mels"}; "last": positions are added behind the projection; "dropped": the id of ESM's mask. patches {"kernel", "image", "leading",
 *                         "registers"}: tokens before the patches, of which the registers, the last, have no positions
 *              norm       {"type", "eps", "weights"}; likewise every norm. "last" of an embedding's: it is behind the
 *                         projection
 *              norm_in_hidden  false: transformers shows the output of the last layer before the norm
 *              head       {"dense", "activation", "norm", "tied", "output", "bias", "scale", …}, of words (parts.c)
 *              classes    {ENDING: head}: of a model whose architectures[0] ends in ENDING, in place of "head". "reads":
 *                         "first", "last", "end", "first_and_mean" or "mean" (model_reads); "spans": true for answers to questions
 *              ignored    patterns of tensors that a file may have beside the model: buffers, copies
 *              Names of tensors stand behind the prefix of the modules, or behind a shorter one.
 *   "classes"  beside the entries: the same for those that name no such ending themselves
 *   "heads"    beside the entries: patterns of tensors of heads that are not run. So is a tensor when no used one has the
 *              first part of its name
 *   "refused"  beside the entries: by what they are, the "types" that attnd cannot run, and those of that sort that it "runs"
 *   "unlisted" beside the entries: types that no config.json has at its top, which no message names
 *   "helps"    beside the entries: what a person can do about a member that stops a model, for messages
 *   "nested"   beside the entries: types that hold a model within them, as one of text and images holds one of text.
 *              {"config": the member with its configuration, "model_type": its type when the configuration has none,
 *              "always": true when it is that type whatever the configuration says, "adds": members that its
 *              configuration then has, "within": the part of the names before its tensors, "ignored": patterns of the
 *              tensors of the rest}
 *   "defaults" values of members that a configuration may lack (architecture.h)
 *   "requires" values of the configuration without which attnd cannot run such a model (architecture.h)
 *   "$by"      choices by the configuration, anywhere (architecture.h). In modules they may differ from layer to layer
 *
 * A configuration that codec/gguf makes of a GGUF file has members that no config.json needs: "rope_layout"
 * "interleaved", "gains_hold_one": the gains of norms are 1 + w already, "weight_layout" "out_in".
 */
#ifndef CODEC_CHECKPOINT_DESCRIPTION_H
#define CODEC_CHECKPOINT_DESCRIPTION_H

#include "attn/model.h"
#include "codec/bytes/chunks.h"
#include "codec/checkpoint/find.h"
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
    attn_tensor words; /* (vocabulary, d) */
    double scale;      /* of the words' rows */
    /*
     * The word that stands for a masked token, as ESM has it; -1: none. Its rows are 0, and for m such of n tokens all
     * others are multiplied by 0.88 n / (n - m): 12 % of the tokens were dropped in training.
     */
    int64_t dropped_id;
    attn_tensor positions, types; /* (rows, d) */
    model_counts counts;
    size_t first; /* the row of the first position */
    struct model_norm norm;
    bool norm_last;                          /* behind the projection */
    attn_tensor projection, projection_bias; /* (width, d), layout out_in */
    bool positions_last;                     /* positions are (rows, width), and are added behind the projection */
    /* Of images instead of words, or the first of two convolutions of audio (attn_convolution): */
    attn_tensor kernel, kernel_bias; /* (d, channels, patch, patch), or (d, mels, 3) */
    attn_tensor leading;             /* (rows, d): class token, distillation token, registers */
    size_t image;                    /* height and width of an image in pixels */
    /* Of audio: the second convolution, which halves the frames. A token is a position. data NULL: the model has no audio. */
    attn_tensor second_kernel, second_bias; /* (d, d, 3) */
};

/* Frames of audio that the embedding takes, all of them; a token is two. */
static inline size_t model_audio_frames(const struct model_embedding *embedding)
{
    return 2 * (embedding->positions.shape[0] - embedding->first);
}

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

/* The tokens that a head reads, each for itself. */
typedef enum {
    MODEL_READS_ALL,
    MODEL_READS_FIRST,
    MODEL_READS_LAST, /* the last one that is no padding; of given vectors, the last one */
    MODEL_READS_END,  /* of a decoder, the place of the last end token of the encoder's input */
    MODEL_READS_BOTH, /* the first, and behind it the mean of the others: vectors of twice the width */
    MODEL_READS_MEAN, /* the mean of all */
} model_reads;

/* Whether a mean of tokens is read. */
static inline bool model_reads_mean(model_reads reads)
{
    return reads == MODEL_READS_BOTH || reads == MODEL_READS_MEAN;
}

/* By what classes become probabilities; regression has none. */
typedef enum { MODEL_PROBLEM_ONE_OF, MODEL_PROBLEM_EACH, MODEL_PROBLEM_REGRESSION } model_problem;

/* A head on the last stack. */
struct model_head {
    /*
     * "weights.dense.weight", "weights.dense.bias", "weights.norm.weight", "weights.norm.bias", "weights.output.weight",
     * "weights.output.bias"; as far as they exist, in layout out_in. There is no text.
     */
    struct envelope_source source;
    struct kept_layer_facts facts; /* layout and compute alone, for prepared weights */
    attn_prediction_head numbers;  /* without tensors; the compute type is that of a request */
    model_reads reads;
    size_t words; /* rows of output: words of the vocabulary, or classes */
    bool is_of_classes;
    bool is_of_spans; /* its two classes are starts and ends of answers */
    model_problem problem;
    const char *const *labels; /* of classes, by id2label; NULL in the list: LABEL_n */
    const char *lacks;         /* of a head that is not there: " (the files lack the tensor …)", or "" */
};

enum { MODEL_IGNORED_MAX = 64, MODEL_ENDS_MAX = 64 };

struct checkpoint_model {
    const char *type, *architecture; /* "bert", "BertForMaskedLM" or "" */
    struct model_stack stacks[2];    /* an encoder comes before its decoder */
    size_t stack_count;
    bool has_head;
    bool has_unknown_classes; /* its architecture ends in a head of classes that is not run, and has_head is false */
    struct model_head head;
    const char **ignored; /* names of tensors of heads that are not run, at most MODEL_IGNORED_MAX */
    size_t ignored_count;
    const char **absent; /* biases that the files lack, and have in other layers; at most MODEL_IGNORED_MAX */
    size_t absent_count;
    size_t longest;                           /* tokens; 0: the model has no limit */
    int64_t pad_id, end_id, decoder_start_id; /* -1: none */
    int64_t ends[MODEL_ENDS_MAX];             /* end tokens of both configurations; some may be there twice */
    size_t end_count;
    bool starts_with_last; /* what a decoder reads begins with the last token, and not with decoder_start_id */
    size_t parameters, tensors, slots; /* numbers in all tensors that are used; those tensors */
    size_t copied_bytes;               /* of the tensors that are no views of the files */
};

/* The label of a class, which may be in arena. NULL without memory. */
const char *model_label(const struct model_head *head, size_t class, attn_arena *arena);
/* Appends ["NEGATIVE", …], of a head of classes. */
void model_write_labels(const struct model_head *head, struct chunks *out);
/* The most bytes of that list. */
size_t model_labels_bound(const struct model_head *head);

/* How sentence-transformers makes one vector of the output of all tokens. */
struct model_pooling {
    bool is_there;
    attn_pooling pool;
    bool normalizes;  /* to the length 1 */
    char reason[200]; /* why the folder's pooling cannot run; "": there is none, or it runs */
};

/*
 * Reads modules.json and the config.json of 1_Pooling, each at NULL when the folder has no such file. arena lends memory.
 * ATTN_ERR_NO_MEMORY; all else that is wrong becomes the reason.
 */
ATTN_MUST_CHECK attn_status checkpoint_read_pooling(struct text_span modules, struct text_span config,
                                                    attn_arena *arena, struct model_pooling *pooling, attn_error *err);

struct model_alignment_head {
    size_t layer, head;
};

/* The heads from the decoder to the encoder whose maps tell when a token is spoken. */
struct model_alignment {
    const struct model_alignment_head *heads;
    size_t count;
    char reason[160]; /* why they are unknown; "": count is at least 1 */
};

/*
 * Reads generation_config.json, at NULL when the folder has no such file: adds its end tokens to those of the model, and
 * reads "alignment_heads". A file without them means all heads of the second half of the decoder's layers. The heads live in arena. ATTN_ERR_NO_MEMORY; all else that is wrong
 * becomes the reason.
 */
ATTN_MUST_CHECK attn_status checkpoint_read_generation(struct text_span text, struct checkpoint_model *model,
                                                       attn_arena *arena, struct model_alignment *alignment,
                                                       attn_error *err);

/*
 * Describes the model. Everything lives in arena, and the tensors are views of the checkpoint's, which is sorted.
 *   ATTN_ERR_SYNTAX         config.json is not JSON
 *   ATTN_ERR_FIELD, _VALUE, _SHAPE  the kind of model is unknown or not there, the configuration asks for what attnd
 *                           does not have, a tensor is missing, has another shape, or has no place in the model
 *   ATTN_ERR_NO_MEMORY
 * The message is a sentence that names the member or the tensor.
 */
ATTN_MUST_CHECK attn_status checkpoint_read_model(struct checkpoint *checkpoint, attn_arena *arena,
                                                  struct checkpoint_model *model, attn_error *err);

#endif
