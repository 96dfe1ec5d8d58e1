/*
 * words.h: the vocabulary: words of PyTorch, transformers, ONNX, JAX, Keras, FlashAttention and others, and the words
 * here. A refusal says the word here, and the difference where there is one.
 *
 * A new word is a word in a row, or a row. `tests/api/words/run.py --update` writes the tables into docs/semantics.md
 * and docs/models.md, and a test asks a server for each word.
 */
#ifndef CODEC_WORDS_WORDS_H
#define CODEC_WORDS_WORDS_H

#include "codec/json/habit.h"

/* Of requests to attention and to layers, and of requests to whole models. Each ends with a row without words. */
extern const struct foreign_word request_words[], model_words[];

#endif
