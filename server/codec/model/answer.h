/*
 * answer.h: writes the answer of a whole model, as JSON or as a file of tensors; and finds its attention by part. A model
 * with an encoder and a decoder has three parts, others have one.
 */
#ifndef CODEC_MODEL_ANSWER_H
#define CODEC_MODEL_ANSWER_H

#include "attn/plan.h"
#include "attn/runtime.h"
#include "attn/tensor.h"
#include "codec/bytes/chunks.h"
#include "codec/bytes/media.h"
#include "codec/tensor/write.h"

enum { MODEL_OUTPUTS_MAX = 104, MODEL_FACTS_MAX = 8 };

enum { MODEL_SPELLINGS_MAX = 2 };

/* Words of ids, under a name of the same object ("predictions.tokens"). */
struct model_spelling {
    const char *name;
    struct text_span (*spell)(void *context, int64_t id); /* good until the next call; at is NULL without a word */
    void *context;
    size_t row_bytes; /* the most that the words of a row of ids, the last axis, take as strings of JSON with commas */
};

/* A member of the same object that is no tensor, under a name such as "classes.labels". */
struct model_beside {
    const char *name;                                 /* NULL: there is none */
    void (*write)(void *context, struct chunks *out); /* appends its value as JSON, of at most bound bytes */
    void *context;
    size_t bound;
};

/*
 * One tensor of the answer. A name with a dot ("predictions.ids") is a member of an object; the outputs of one object
 * stand side by side. With spellings, the answer has the words of the ids too, under other names of the same object: JSON
 * in its place, a file in its metadata. The same holds for beside.
 */
struct model_output {
    const char *name; /* as long as the answer */
    attn_tensor tensor;
    bool has_scores;                                      /* -infinity, of hidden keys, is written as null */
    struct model_spelling spellings[MODEL_SPELLINGS_MAX]; /* name NULL: there are no further words */
    struct model_beside beside;
};

/* A member beside "outputs" and "shapes": its name, and its value as JSON text. */
struct model_fact {
    const char *name, *json;
};

/* What a part of the model shows. */
struct model_selections {
    attn_selection layers, heads, queries, keys;
};

enum { MODEL_PARTS_MAX = 3 };

struct model_answer {
    /* of the encoder or the only stack, the decoder, the cross-attention */
    struct model_selections shown[MODEL_PARTS_MAX];
    struct model_output outputs[MODEL_OUTPUTS_MAX];
    size_t output_count;
    struct model_fact facts[MODEL_FACTS_MAX];
    size_t fact_count;
    tensor_form form;
    int digits; /* tensor/write.h */
};

/* Adds an output or a fact. There is always room: the callers' own lists are shorter. */
struct model_output *model_answer_add(struct model_answer *answer, const char *name);
void model_answer_add_fact(struct model_answer *answer, const char *name, const char *json);

/* The longest answer in bytes, from the shapes of the outputs and the facts so far. media: JSON or safetensors. */
size_t model_answer_bound(const struct model_answer *answer, enum media media);
/* The output that takes most bytes; NULL without any. */
const struct model_output *model_answer_largest(const struct model_answer *answer);
/* Appends the answer to out. Without memory out->is_ok becomes false. */
void model_answer_write(const struct model_answer *answer, enum media media, const attn_runtime *runtime,
                        struct chunks *out);

/* Each part with the prefix of its outputs, and its name in views. */
#define MODEL_PART_LIST(X)                                                                                             \
    X(MODEL_PART_ONLY, "", NULL) /* of a model of one stack */                                                         \
    X(MODEL_PART_ENCODER, "encoder_", "encoder")                                                                       \
    X(MODEL_PART_DECODER, "decoder_", "decoder")                                                                       \
    X(MODEL_PART_CROSS, "cross_", "cross")

typedef enum {
#define MODEL_PART_ENUM(code, prefix, name) code,
    MODEL_PART_LIST(MODEL_PART_ENUM)
#undef MODEL_PART_ENUM
        MODEL_PART_COUNT
} model_part_kind;

/* "encoder", "decoder" or "cross"; NULL for MODEL_PART_ONLY. */
const char *model_part_name(model_part_kind kind);
/* The part's tensor of that name, such as "attention". NULL: the answer has none. */
const attn_tensor *model_part_output(const struct model_answer *answer, model_part_kind kind, const char *name);
/* The stack of the queries and of the keys: 1 is the decoder, 0 is the encoder or the only stack. */
size_t model_part_query_stack(model_part_kind kind);
size_t model_part_key_stack(model_part_kind kind);

/* What the part shows. */
const struct model_selections *model_part_shown(const struct model_answer *answer, model_part_kind kind);

/* The map of the first batch item without its axis: (layers, heads, queries, keys) of (layers, batch, heads, …). */
attn_tensor model_part_first_item(const attn_tensor *output);

#endif
