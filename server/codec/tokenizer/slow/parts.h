/* parts.h: what the files of a slow tokenizer say, while a tokenizer.json is made of them. */
#ifndef CODEC_TOKENIZER_SLOW_PARTS_H
#define CODEC_TOKENIZER_SLOW_PARTS_H

#include "codec/json/tree.h"
#include "codec/tokenizer/model/vocabulary.h"
#include "codec/tokenizer/slow/classes.h"
#include "codec/tokenizer/slow/sentencepiece.h"
#include "codec/tokenizer/slow/slow.h"

/* The letters of slow_class.single, in the order of slow_role_names. */
enum slow_role { ROLE_BOS, ROLE_EOS, ROLE_UNK, ROLE_SEP, ROLE_PAD, ROLE_CLS, ROLE_MASK, ROLE_LANG, ROLES };

/* A token that is found in the text before everything else. */
struct slow_token {
    struct text_span text;
    uint32_t id;
    bool lstrip, rstrip, single_word, normalized, special;
};

struct slow {
    const struct slow_files *files;
    const struct slow_class *class;
    attn_arena *arena, *scratch; /* scratch: for what is given back at once */
    attn_error *err;
    json_t *trees[SLOW_VOCAB];    /* of the settings, the special and the added tokens; NULL: no such file */
    struct vocabulary vocabulary; /* of the files, without added tokens */
    double *scores;               /* by id; forms with SentencePiece */
    struct sentencepiece model;   /* likewise */
    struct slow_token *tokens;
    size_t token_count, token_room;
    struct vocabulary places;      /* the places in tokens, by text */
    struct vocabulary others;      /* the additional special tokens */
    uint32_t next_id;              /* one more than the highest id of all tokens */
    struct text_span roles[ROLES]; /* length 0: there is none */
};

/* The score of tokens that are never found in a text (unigram.c). */
#define SLOW_NEVER (-1e30)

/* ---- vocabulary.c ---- */

/* Reads the file of the class's form into vocabulary, scores and model. */
attn_status slow_read_vocabulary(struct slow *slow);
/* Records a failure whose message begins with the file's name. Returns status. */
attn_status slow_fail(const struct slow *slow, enum slow_file file, attn_status status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* ---- tokens.c ---- */

/* The setting of tokenizer_config.json, else of special_tokens_map.json. NULL: there is none, or it is null. */
const json_t *slow_setting(const struct slow *slow, const char *name);
bool slow_is_set(const struct slow *slow, const char *name, bool otherwise);
/* NULL: no added token has the text. */
const struct slow_token *slow_token_find(const struct slow *slow, struct text_span text);
/* Finds the roles and the tokens that are found in texts. */
attn_status slow_find_tokens(struct slow *slow);

#endif
