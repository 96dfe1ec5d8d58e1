/* words.h: options.words of a request to a whole model: the words that it scores. */
#ifndef CODEC_MODEL_WORDS_H
#define CODEC_MODEL_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/status.h"
#include "base/text.h"

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

struct reading;
struct node;
/* *to is a struct model_word_list. */
attn_status decode_given_words(struct reading *reading, const struct node *node, void *to);

#endif
