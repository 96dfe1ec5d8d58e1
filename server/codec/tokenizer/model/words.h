/* words.h: the vocabulary of a model, as JSON has it: an object of ids by token, or a list of tokens with their scores. */
#ifndef CODEC_TOKENIZER_MODEL_WORDS_H
#define CODEC_TOKENIZER_MODEL_WORDS_H

#include "codec/tokenizer/model/step_kinds.h"

/*
 * Reads loading->vocab, which is the text of the node, into a vocabulary with ids below size, or more if the text has
 * them. The result lives in the reading's arena. An id far above the number of tokens is refused, because memory is taken
 * for each id.
 */
attn_status words_load(struct loading *loading, const struct node *node, size_t size, struct vocabulary *vocabulary);

#endif
