/* kinds.h: the models, which turn a piece of text into tokens: WordPiece, BPE and Unigram. */
#ifndef CODEC_TOKENIZER_MODEL_KINDS_H
#define CODEC_TOKENIZER_MODEL_KINDS_H

#include "codec/tokenizer/model/step_kinds.h"

struct model_token {
    uint32_t id;
    uint32_t begin, end; /* bytes of the draft's text */
    bool is_surface;     /* the token is spelled as these bytes, not as the vocabulary spells it */
    bool is_unknown;
};

/* Tokens that a text gets. The buffers are those of a model, kept from piece to piece. */
struct model_run {
    struct draft *draft;
    const struct vocabulary *vocabulary;
    struct model_token *tokens;
    size_t count, capacity;
    void *buffers[2];
    size_t buffer_capacities[2];
};

void model_add_token(struct model_run *run, struct model_token token);

struct model_kind {
    const char *name;
    /* Loads from the model's object, after its vocabulary; *model lives in the reading's arena. */
    attn_status (*load)(struct loading *loading, const struct node *node, const void **model);
    /* Appends the tokens of draft->text.bytes[begin .. end), which is not empty. */
    void (*tokenize)(const void *model, struct model_run *run, size_t begin, size_t end);
    /* What stands behind the spelling of a token that ends a word, "</w>". NULL: nothing does. */
    struct text_span (*suffix)(const void *model);
};

extern const struct model_kind model_wordpiece, model_bpe, model_unigram;

/* The memory that the list of merges of BPE takes. */
size_t merges_bytes(const struct loading *loading);

/* The id of a token that an option names; VOCABULARY_NONE when it is not in the vocabulary, or not given. */
uint32_t model_find_token(const struct loading *loading, struct text_span text);

/* The ids of "<0x00>" to "<0xFF>". */
struct model_bytes {
    uint32_t ids[256];
};
void model_find_bytes(const struct vocabulary *vocabulary, struct model_bytes *bytes);
/* Whether each of these bytes has a token. */
bool model_has_bytes(const struct model_bytes *bytes, const char *text, size_t length);

/* Fails because of a text that the model has no token for. */
void model_fail_unknown(struct model_run *run);

#endif
