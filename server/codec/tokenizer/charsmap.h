/* charsmap.h: the normalizer Precompiled: a table of sentencepiece that replaces characters and graphemes. */
#ifndef CODEC_TOKENIZER_CHARSMAP_H
#define CODEC_TOKENIZER_CHARSMAP_H

#include "codec/tokenizer/model/step_kinds.h"

struct charsmap;

struct charsmap_option {
    const struct charsmap *map; /* NULL: nothing is replaced */
};

/* Decodes the base64 text "precompiled_charsmap" to a const struct charsmap *, and checks it. */
decode_function charsmap_decode;
/* The options are a struct charsmap_option. */
void charsmap_edit(struct draft *draft, const void *options);

#endif
