/* part.h: the attention of a model by part. A model with an encoder and a decoder has three, others have one. */
#ifndef CODEC_MODEL_PART_H
#define CODEC_MODEL_PART_H

#include "codec/model/answer.h"

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
