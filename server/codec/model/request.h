/*
 * request.h: decodes a request to a whole model: POST /v1/models/{m}/attention, …/gradients and …/tokens.
 *
 *     {"inputs":  {"text": "It was too tired"},
 *      "options": {"layers": "0-5", "return": ["attention", "predictions"]}}
 */
#ifndef CODEC_MODEL_REQUEST_H
#define CODEC_MODEL_REQUEST_H

#include "base/text.h"
#include "codec/model/options.h"
#include "codec/request/envelope.h"

/* What a model can give besides the steps of its layers (ATTN_STEP_LIST). Names are those of options.return. */
#define MODEL_RESULT_LIST(X)                                                                                           \
    X(MODEL_HIDDEN, "hidden")           /* the embeddings, and the output of each chosen layer */                      \
    X(MODEL_OUTPUT, "output")           /* the output of the model under its head */                                   \
    X(MODEL_FEATURES, "features")       /* log-mel features of audio */                                                \
    X(MODEL_LOGITS, "logits")           /* scores of the words of the vocabulary, or of classes */                     \
    X(MODEL_ROLLOUT, "rollout")         /* attn_rollout_layer */                                                       \
    X(MODEL_HEAD_SCORES, "head_scores") /* attn_head_roles */                                                          \
    X(MODEL_EXPERTS, "experts")         /* those that each token chose, and their weights */                           \
    X(MODEL_PREDICTIONS, "predictions") /* the most probable words */                                                  \
    X(MODEL_LOGIT_LENS, "logit_lens")   /* the same from the output of each chosen layer */                            \
    X(MODEL_WORD_SCORES, "word_scores") /* logits, log-probabilities and ranks of options.words */                     \
    X(MODEL_ATTRIBUTION, "attribution") /* what each part of the model adds to the logits of options.words */          \
    X(MODEL_SWEEP, "sweep")             /* options.metric, with options.sweep at each place in turn */                 \
    X(MODEL_CLASSES, "classes")         /* of the model's own head: labels, logits, probabilities; or an answer */     \
    X(MODEL_EMBEDDING, "embedding")     /* one vector for each item, as sentence-transformers pools it */              \
    X(MODEL_WORD_TIMES, "word_times")   /* when each token and word of the decoder is spoken */                        \
    X(MODEL_GENERATED, "generated")     /* the new tokens, which a request for new tokens always gets */               \
    /* Of gradients alone, where "embedding" is the gradient of the vector of each token: */                           \
    X(MODEL_ATTENTION_GRADIENT, "attention_gradient") /* maps times their gradients, over the heads */                 \
    X(MODEL_INTEGRATED, "integrated")                 /* gradients of the vectors on the way from a baseline */

typedef enum {
#define MODEL_RESULT_ENUM(code, name) code,
    MODEL_RESULT_LIST(MODEL_RESULT_ENUM)
#undef MODEL_RESULT_ENUM
        MODEL_RESULT_COUNT
} model_result_kind;

const char *model_result_name(model_result_kind result);

/* The ids of one sequence as the request gives them. */
struct model_ids {
    const int64_t *ids;
    size_t count;
};

/* A head whose context becomes 0. Only a plan knows the last ones, and refuses others, negative ones too. */
struct model_ablation {
    int64_t layer, head;
};

/*
 * A request for tokens has text, pair, ids and the options truncate and special_tokens alone. One for gradients has a metric,
 * and of the results of models "attention", "embedding", "attention_gradient" and "integrated".
 */
typedef enum { MODEL_REQUEST_ATTENTION, MODEL_REQUEST_GRADIENTS, MODEL_REQUEST_TOKENS } model_request_kind;

/* Whether such a request may name the result. */
bool model_result_belongs(model_result_kind result, model_request_kind kind);

/* One list for each item of the batch; NULL: not given. Texts are UTF-8 unless a client lies. */
struct model_inputs {
    size_t batch;
    const struct text_span *text, *pair, *target;
    const struct model_ids *ids, *target_ids;
    const attn_tensor *pixels;     /* (batch, channels, height, width), of the compute type */
    const attn_tensor *audio;      /* (samples) of each item, of the compute type */
    const attn_tensor *features;   /* of audio: (batch, mels, frames), of the compute type */
    const attn_tensor *embeddings; /* (batch, len, d), of the compute type */
};

struct model_request {
    struct model_inputs inputs;
    /*
     * The options that requests to attention have, too: compute, heads, queries, keys, the steps of layers that are
     * wanted, reduction, form, digits, view. It has no inputs.
     */
    struct envelope common;
    uint32_t results; /* bit 1 << model_result_kind for each wanted result */
    attn_selection layers;
    struct index_list layer_list; /* layers as given */
    const struct model_ablation *ablate;
    size_t ablations;
    struct model_intervention_list interventions; /* in the order of the request */
    struct model_intervention sweep;              /* is_swept: it is given */
    struct model_metric metric;
    size_t steps, baseline; /* of "integrated"; baseline: model_baseline */
    size_t predictions_k;
    struct model_word_list words;
    size_t new_tokens; /* 0: nothing is generated */
    struct model_stop_list stop;
    bool truncate, has_special_tokens; /* special_tokens */
};

/*
 * Everything lives in arena, and text must outlive it, too. Failures are those of envelope_decode (envelope.h),
 * and ATTN_ERR_FIELD when there is not exactly one input.
 */
ATTN_MUST_CHECK attn_status model_request_decode(const char *text, size_t length, model_request_kind kind,
                                                 attn_arena *arena, struct model_request *request, attn_error *err);
/* The same for a safetensors file. Pixels and embeddings may be its tensors. body must outlive arena. */
ATTN_MUST_CHECK attn_status model_request_decode_safetensors(const char *body, size_t bytes, model_request_kind kind,
                                                             attn_arena *arena, struct model_request *request,
                                                             attn_error *err);
/* Decodes a request for attention whose text has "options" alone; the inputs stand elsewhere. */
ATTN_MUST_CHECK attn_status model_request_decode_options(const char *text, size_t length,
                                                         const struct model_inputs *inputs, attn_arena *arena,
                                                         struct model_request *request, attn_error *err);

#endif
