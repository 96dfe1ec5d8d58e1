/* options.h: options.words, stop, interventions, sweep, metric and baseline of a request to a whole model. */
#ifndef CODEC_MODEL_OPTIONS_H
#define CODEC_MODEL_OPTIONS_H

#include "base/text.h"
#include "codec/tensor/index_list.h"

/* ---- the words that it scores ---- */

/* A text of one token, or an id. */
struct model_word {
    struct text_span text; /* at NULL: id */
    int64_t id;
};

struct model_word_list {
    const struct model_word *items; /* in the arena of the request; NULL without words */
    size_t count;
    bool is_next; /* the word that follows each token; of an encoder, the token itself */
};

/* Copies a string, because the tree is closed before the text is used. */
attn_status decode_string(struct reading *reading, const struct node *node, const char *wanted, struct text_span *text);
/* *to is a struct model_word_list. */
attn_status decode_given_words(struct reading *reading, const struct node *node, void *to);

/* ---- where generation stops ---- */

/* A text that the new tokens spell, or the id of one of them. */
struct model_stop_list {
    const struct model_word *items; /* in the arena of the request */
    size_t count;
};

/* *to is a struct model_stop_list. One text or id stands for a list of one. */
attn_status decode_stops(struct reading *reading, const struct node *node, void *to);

/*
 * ---- what is changed while it runs ----
 *
 *     {"at": "context", "layers": [3], "heads": [0], "queries": [-1], "do": "replace", "from": 1}
 */

/* Where, in the order of a layer. */
#define MODEL_PLACE_LIST(X)                                                                                            \
    X(MODEL_AT_HIDDEN, "hidden")                     /* the residual: 0 the embeddings, n behind block n */            \
    X(MODEL_AT_ATTENTION, "attention")               /* weights */                                                     \
    X(MODEL_AT_CONTEXT, "context")                   /* of each head, before the output projection */                  \
    X(MODEL_AT_ATTENTION_OUTPUT, "attention_output") /* what the attention adds to the residual */                     \
    X(MODEL_AT_FEED_FORWARD, "feed_forward")         /* what the feed-forward network adds */

/* What is done. */
#define MODEL_ACT_LIST(X)                                                                                              \
    X(MODEL_DO_ZERO, "zero")                                                                                           \
    X(MODEL_DO_MEAN, "mean")       /* over the positions of the item */                                                \
    X(MODEL_DO_SCALE, "scale")     /* times factor */                                                                  \
    X(MODEL_DO_ADD, "add")         /* factor times value */                                                            \
    X(MODEL_DO_REPLACE, "replace") /* by value, or by the number of another item */                                    \
    X(MODEL_DO_MASK, "mask")       /* keys are hidden before the softmax */

#define MODEL_WORD_ENUM(code, name) code,
typedef enum { MODEL_PLACE_LIST(MODEL_WORD_ENUM) MODEL_PLACE_COUNT } model_place;
typedef enum { MODEL_ACT_LIST(MODEL_WORD_ENUM) MODEL_ACT_COUNT } model_act;
#undef MODEL_WORD_ENUM

/* What a sweep goes over: layers, and one of the others. */
#define MODEL_AXIS_LIST(X)                                                                                             \
    X(MODEL_OVER_LAYER, "layer")                                                                                       \
    X(MODEL_OVER_QUERY, "query")                                                                                       \
    X(MODEL_OVER_HEAD, "head")

#define MODEL_WORD_ENUM(code, name) code,
typedef enum { MODEL_AXIS_LIST(MODEL_WORD_ENUM) MODEL_AXIS_COUNT } model_axis;
#undef MODEL_WORD_ENUM

const char *model_axis_name(model_axis axis);
const char *model_place_name(model_place place);
const char *model_act_name(model_act act);

struct model_intervention {
    size_t at, act;   /* model_place, model_act */
    const char *part; /* "encoder", "decoder", "cross"; NULL: not given */
    struct index_list layers, heads, queries, keys, items, from_queries; /* no ranges: not given */
    double factor;                                                       /* 1 when it is not given */
    const attn_tensor *value;                                            /* of rank 1 and the compute type, or NULL */
    int64_t from;
    bool has_from;
    bool is_swept; /* "over": made at each place in turn */
    size_t over;   /* model_axis */
};

struct model_intervention_list {
    const struct model_intervention *items; /* in the arena of the request */
    size_t count;
};

/* *to is a struct model_intervention_list. Refused are members that do not go with the place or with what is done. */
attn_status decode_interventions(struct reading *reading, const struct node *node, void *to);
/*
 * *to is a struct model_intervention, with "over":
 *
 *     {"at": "hidden", "over": ["layer", "query"], "do": "replace", "from": 1}
 */
attn_status decode_sweep(struct reading *reading, const struct node *node, void *to);

/* What is measured: the log-probability of a word, or the difference of the logits of two. */
struct model_metric {
    struct model_word_list words; /* items NULL: not given */
    int64_t query;                /* -1 when it is not given */
    bool has_query;
};

/* Where integrated gradients begin. */
#define MODEL_BASELINE_LIST(X)                                                                                         \
    X(MODEL_BASELINE_ZERO, "zero") /* vectors of 0 */                                                                  \
    X(MODEL_BASELINE_PAD, "pad")   /* those of the padding token */

#define MODEL_WORD_ENUM(code, name) code,
typedef enum { MODEL_BASELINE_LIST(MODEL_WORD_ENUM) MODEL_BASELINE_COUNT } model_baseline;
#undef MODEL_WORD_ENUM

const char *model_baseline_name(model_baseline baseline);

attn_status decode_baseline(struct reading *reading, const struct node *node, void *to);
attn_status decode_metric(struct reading *reading, const struct node *node, void *to);

#endif
