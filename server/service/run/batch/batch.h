/* batch.h: the inputs of a request to a model, one for each item: ids of tokens, an image, audio, or vectors. */
#ifndef SERVICE_RUN_MODEL_BATCH_H
#define SERVICE_RUN_MODEL_BATCH_H

#include "codec/bytes/outcome.h"
#include "codec/model/request.h"
#include "service/registry/model/version.h"

/* The input of one stack for one item. */
struct model_sequence {
    size_t count;               /* tokens; 0: the stack does not run */
    const int64_t *ids, *types; /* ids NULL: the request gives vectors, an image or audio; types NULL: all 0 */
    bool has_label; /* label is the token behind the last one: of a text that a decoder reads, moved right */
    int64_t label;
    attn_tensor vectors;  /* (count, d) of the compute type; data NULL: none */
    attn_tensor pixels;   /* (channels, height, width) of the compute type; data NULL: none */
    attn_tensor audio;    /* (samples) of the compute type; data NULL: none */
    attn_tensor features; /* (mels, frames) of the compute type; data NULL: none */
};

struct model_item {
    struct model_sequence of[2]; /* by stack */
};

struct model_batch {
    const struct model_version *version;
    const struct model_inputs *inputs;
    struct model_item *items; /* inputs->batch of them */
    /* Of each item, by stack: as many as the sequence has; NULL: the request does not give a text. */
    const struct tokenizer_token **tokens[2];
    /* Of each item, by stack: what a reader should see of each token; NULL: it has no tokens, or nobody knows them. */
    const struct text_span **shown[2];
};

/*
 * Makes the batch in arena. version and request must outlive it.
 *
 * A request for attention gets what the model can run. A second stack runs on inputs.target, whose text always gets the
 * special tokens and is moved right by one behind decoder_start_token_id, or on inputs.target_ids as given. A request
 * for tokens may have no token or too many of them, and needs a tokenizer.
 *
 *   ATTN_ERR_FIELD      the model does not take such an input, or has no tokenizer
 *   ATTN_ERR_VALUE      a text that the tokenizer refuses, that gives no token, or more than the model takes (unless
 *                       truncate), likewise audio; samples that are not finite; ids out of range
 *   ATTN_ERR_SHAPE      pixels or features of another size, embeddings of another width
 *   ATTN_ERR_NO_MEMORY, ATTN_ERR_CANCELLED
 * Messages name the input, and do not repeat the text.
 */
ATTN_MUST_CHECK attn_status model_batch_make(struct model_batch *batch, const struct model_version *version,
                                             const struct model_request *request, model_request_kind kind,
                                             attn_arena *arena, attn_error *err);

/*
 * Replaces the sequence of an item by ids, which must outlive the batch: without offsets, and with what a reader should
 * see of them. False: a failure that the outcome remembers.
 */
bool model_batch_set_ids(struct model_batch *batch, struct outcome *outcome, size_t stack, size_t item,
                         const int64_t *ids, size_t count);

/*
 * Whether the second stack runs: the request gives a target, or the model ends in a head of classes, whose decoder then
 * reads the input again behind decoder_start_token_id.
 */
bool model_batch_has_target(const struct model_version *version, const struct model_inputs *inputs);
/* Whether a stack has tokens: the first has none when the request gives vectors, images or audio. */
bool model_batch_has_tokens(const struct model_batch *batch);
/* The spelling of token i of the item; at NULL: there is none. The model must have a tokenizer. */
struct text_span model_batch_word(const struct model_batch *batch, size_t stack, size_t item, size_t i);
/*
 * Appends what the answer says about tokens: {"ids", "text", "shown", "offsets"}, each a list of one row for each item. A
 * model without a tokenizer has no "text" and no "shown". Ids as given have no "offsets". With two stacks, {"encoder", "decoder"} of these;
 * without a target, "encoder" alone.
 */
void model_batch_write_tokens(const struct model_batch *batch, struct chunks *out);
/* The most bytes that tokens, columns and lengths take. */
size_t model_batch_tokens_bound(const struct model_batch *batch);
/* Appends [number of tokens of the first item, …]; with two stacks, {"encoder", "decoder"} as above. */
void model_batch_write_lengths(const struct model_batch *batch, struct chunks *out);
/* Adds a hint (hints_add) for each text with words that the tokenizer does not know. */
void model_batch_add_hints(const struct model_batch *batch, size_t *count, struct chunks *out);
/* A copy of the text for a label. A NUL in it becomes U+FFFD, as in the labels of requests. NULL without memory. */
const char *model_batch_label(struct text_span shown, attn_arena *arena);

/*
 * Appends the members of the answer to a request for tokens: "ids", "tokens", "shown", "lengths", and for texts "offsets", "special",
 * "type_ids" and "segments", each a list with an element for each item.
 */
void model_batch_write_columns(const struct model_batch *batch, struct chunks *out);

#endif
