/* parts.h: what the files of a slow tokenizer say, while a tokenizer.json is made of them. */
#ifndef CODEC_TOKENIZER_SLOW_PARTS_H
#define CODEC_TOKENIZER_SLOW_PARTS_H

#include "codec/bytes/chunks.h"
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

/* ---- common.c ---- */

const char *slow_bool_text(bool value);
/* The token of the role. NULL: there is none. */
const struct slow_token *slow_token_of(const struct slow *slow, enum slow_role role);
/* Each writes members of the file, or of its model, with a comma behind them. */
attn_status slow_write_added(const struct slow *slow, struct chunks *out);
void slow_write_post_processor(const struct slow *slow, struct chunks *out);
/* The members "unk_token", with a comma before it, and "vocab". */
void slow_write_unknown(const struct slow *slow, struct chunks *out);
void slow_write_ids(const struct slow *slow, struct chunks *out);

/* ---- the forms: each writes all that is behind the post-processor ---- */

void slow_write_wordpiece(const struct slow *slow, struct chunks *out);
attn_status slow_write_byte_level(const struct slow *slow, struct chunks *out);
attn_status slow_write_pieces(const struct slow *slow, struct chunks *out);
/* The steps of BasicTokenizer. An accent goes when letters are lowered, unless the settings say otherwise. */
void slow_write_bert_normalizer(struct chunks *out, bool lowers, bool strips, bool is_spaced);

#endif
