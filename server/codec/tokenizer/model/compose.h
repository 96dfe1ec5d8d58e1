/*
 * compose.h: parts of a tokenizer.json, made of a list of tokens as SentencePiece and GGUF files have it.
 *
 * Functions append JSON to out. Texts of tokens may lie anywhere; they must be UTF-8 and need no NUL behind them.
 */
#ifndef CODEC_TOKENIZER_MODEL_COMPOSE_H
#define CODEC_TOKENIZER_MODEL_COMPOSE_H

#include "codec/bytes/chunks.h"

/* The kinds have the numbers that both formats give them. */
enum compose_kind {
    COMPOSE_NORMAL = 1,
    COMPOSE_UNKNOWN,
    COMPOSE_CONTROL,
    COMPOSE_USER_DEFINED,
    COMPOSE_UNUSED,
    COMPOSE_BYTE
};

struct compose_token {
    struct text_span text;
    float score;
    enum compose_kind kind;
};

/* A token that is added around texts, and its letter in templates. */
struct compose_special {
    char letter;
    struct text_span text;
    uint32_t id;
};

/*
 * The post-processor TemplateProcessing, which adds tokens around one text and around a pair: "cAs", "cAsB1s1". A and B are
 * the texts, other letters are specials, and a letter of none of them adds nothing. A 1 behind a letter is the type id.
 */
void compose_template(const char *single, const char *pair, const struct compose_special *specials, size_t count,
                      struct chunks *out);
/* {"the": 0, …}: the id of a token is its index. */
void compose_vocabulary(const struct compose_token *tokens, size_t count, struct chunks *out);
/*
 * The list of "added_tokens": unknown, control and user-defined tokens, which are found in a text before all others.
 * User-defined ones are no special tokens.
 */
void compose_added_tokens(const struct compose_token *tokens, size_t count, struct chunks *out);
/*
 * The list of merges that makes a BPE of scores, as transformers' converter makes it: each pair of tokens whose texts
 * together are a normal token; the highest score of that token comes first, then the longest left side, the longest right
 * side, and the lowest ids. scratch lends memory, about 40 bytes for each token and each pair.
 *   ATTN_ERR_NO_MEMORY
 *   ATTN_ERR_TOO_LARGE  tokens are so long that the search would take seconds
 */
ATTN_MUST_CHECK attn_status compose_merges(const struct compose_token *tokens, size_t count, attn_arena *scratch,
                                           struct chunks *out, attn_error *err);

#endif
