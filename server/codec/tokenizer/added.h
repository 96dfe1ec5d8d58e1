/* added.h: tokens beside those of the model, which are found in the text before everything else. */
#ifndef CODEC_TOKENIZER_ADDED_H
#define CODEC_TOKENIZER_ADDED_H

#include "codec/tokenizer/model/step_kinds.h"
#include "codec/tokenizer/model/trie.h"

struct added_token {
    uint32_t id;
    struct text_span content;
    struct text_span normalized_text; /* what the normalizers make of it; it is found as this when normalized */
    bool single_word, lstrip, rstrip, normalized, special;
};

struct added {
    struct added_token *tokens;
    size_t count;
    /* Values are indices of tokens: those found before the normalizers, and those found after. */
    struct trie plain, normalized;
    bool has_plain, has_normalized;
};

/* Loads the list "added_tokens". Tokens that the model does not have join the vocabulary under their ids. */
attn_status added_load(struct loading *loading, const struct node *list, const struct steps *normalizers,
                       struct vocabulary *vocabulary, struct added *added);

/* Splits the pieces of text at the tokens: the leftmost, then the longest first. */
void added_split(struct draft *draft, const struct added *added, bool is_normalized);
/* The token with that id; NULL: there is none. */
const struct added_token *added_find(const struct added *added, uint32_t id);

#endif
