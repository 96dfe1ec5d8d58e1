/*
 * model_words.h: what other programs call the members of a request to a model, and what they are called here.
 */
#ifndef CODEC_MODEL_MODEL_WORDS_H
#define CODEC_MODEL_MODEL_WORDS_H

#include "codec/json/node.h"

/* Ends with a row without a word. */
extern const struct foreign_word model_foreign_words[];

#endif
