/* parts.h: a tokenizer as its parts, for loading and use. */
#ifndef CODEC_TOKENIZER_PARTS_H
#define CODEC_TOKENIZER_PARTS_H

#include "codec/tokenizer/added.h"
#include "codec/tokenizer/model/kinds.h"
#include "codec/tokenizer/postprocess.h"

struct tokenizer {
    struct vocabulary vocabulary;
    const struct model_kind *model_kind;
    const void *model;
    struct added added;
    struct steps normalizers, pre_tokenizers, decoders;
    struct postprocessor postprocessor;
};

/* The byte that a token of byte fallback ("<0xE4>") stands for. False: it is another token. */
bool decoder_read_byte(struct text_span text, char *byte);

#endif
