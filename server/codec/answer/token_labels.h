/*
 * token_labels.h: the labels of tokens as texts, for answers that show them beside numbers.
 */
#ifndef CODEC_ANSWER_TOKEN_LABELS_H
#define CODEC_ANSWER_TOKEN_LABELS_H

#include "codec/request/envelope.h"

/* Labels of one side; the texts live in the arena. */
struct labels {
    const char *const *texts; /* UTF-8, (batch, count) or (count); NULL: the request has none */
    size_t count;             /* labels of one batch item */
    bool is_per_item;         /* texts has a list for each batch item */
};

/* Reads the labels back from their JSON. A NUL in a label becomes U+FFFD. ATTN_ERR_NO_MEMORY is all that can fail. */
ATTN_MUST_CHECK attn_status labels_read(const struct envelope_tokens *tokens, attn_arena *arena, struct labels *labels,
                                        attn_error *err);

/* The longest label in bytes, as JSON text or as UTF-8. Nothing is read for it. */
size_t labels_longest(const struct envelope_tokens *tokens);

/* Of position i in batch item b; NULL when there are none. */
const char *labels_at(const struct labels *labels, size_t b, size_t i);

#endif
