/* token_labels.h: the labels of tokens as texts, for answers that show labels beside numbers. */
#ifndef CODEC_ANSWER_TOKEN_LABELS_H
#define CODEC_ANSWER_TOKEN_LABELS_H

#include "codec/request/envelope.h"

/* Labels of one side; the texts live in the arena. */
struct labels {
    const char *const *texts; /* UTF-8, (batch, count) or (count); NULL: the request has none */
    size_t count;             /* labels of one batch item */
    bool is_per_item;         /* each batch item has a list in texts */
};

/* Reads the labels back from their JSON. A NUL in a label becomes U+FFFD. The only failure is ATTN_ERR_NO_MEMORY. */
ATTN_MUST_CHECK attn_status labels_read(const struct envelope_tokens *tokens, attn_arena *arena, struct labels *labels,
                                        attn_error *err);

/* The length of the longest label in bytes, as JSON text or as UTF-8. It is known without reading the labels. */
size_t labels_longest(const struct envelope_tokens *tokens);

/* The label of position i in batch item b. NULL when the side has no labels. */
const char *labels_at(const struct labels *labels, size_t b, size_t i);

#endif
