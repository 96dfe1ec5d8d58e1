/*
 * compose.h: the normal forms of Unicode (UAX 15), with the origins that unicode-normalization-alignments gives them: a
 * composed character has the origin of its first part, the parts of a character have its origin.
 */
#ifndef CODEC_TOKENIZER_TEXT_COMPOSE_H
#define CODEC_TOKENIZER_TEXT_COMPOSE_H

#include "codec/tokenizer/text/draft.h"

enum compose_form { COMPOSE_NFC, COMPOSE_NFD, COMPOSE_NFKC, COMPOSE_NFKD };

void compose_edit(struct draft *draft, enum compose_form form);

#endif
