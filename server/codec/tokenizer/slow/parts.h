/* parts.h: what the files of a slow tokenizer say, while a tokenizer.json is made of them. */
#ifndef CODEC_TOKENIZER_SLOW_PARTS_H
#define CODEC_TOKENIZER_SLOW_PARTS_H

#include "codec/bytes/chunks.h"
#include "codec/bytes/outcome.h"
#include "codec/json/tree.h"
#include "codec/tokenizer/model/compose.h"
#include "codec/tokenizer/model/vocabulary.h"
#include "codec/tokenizer/slow/slow.h"

/* ---- sentencepiece.c: a model of SentencePiece, a message of protocol buffers (sentencepiece_model.proto) ---- */

enum { SENTENCEPIECE_UNIGRAM = 1, SENTENCEPIECE_BPE = 2 };

struct sentencepiece {
    struct compose_token *pieces; /* by id; their texts lie in the file: no NUL ends them */
    size_t count, room;           /* room: of the table */
    uint64_t model_type;
    bool byte_fallback;
    bool add_dummy_prefix, remove_extra_whitespaces;
    struct text_span charsmap; /* of the normaliser; length 0: none */
};

/*
 * Reads a file. The pieces live in the arena, and all texts in the file.
 *   ATTN_ERR_SYNTAX     it is no model of SentencePiece
 *   ATTN_ERR_VALUE      it is of a type that is not supported
 *   ATTN_ERR_TOO_LARGE  too many pieces
 *   ATTN_ERR_NO_MEMORY
 */
ATTN_MUST_CHECK bool sentencepiece_read(struct text_span file, struct sentencepiece *model, struct outcome *outcome);

/* ---- all that is known ---- */

/* The order of role_names (tokens.c). */
enum slow_role { ROLE_BOS, ROLE_EOS, ROLE_UNK, ROLE_SEP, ROLE_PAD, ROLE_CLS, ROLE_MASK, ROLE_LANG, ROLES };

/* A token that is found in the text before everything else. */
struct slow_token {
    struct text_span text;
    uint32_t id;
    bool lstrip, rstrip, single_word, normalized, special;
};

struct slow {
    const struct slow_files *files;
    json_t *table, *class, *form; /* classes.json, and the rows of the class and of its form */
    struct outcome *outcome;      /* its arena has what is kept, and remembers the first failure */
    attn_arena *scratch;          /* for what is given back at once */
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

/* ---- vocabulary.c: each reads the files of a form into vocabulary, scores and model ---- */

bool slow_read_lines(struct slow *slow);
bool slow_read_json(struct slow *slow);
bool slow_read_pieces(struct slow *slow); /* which have the ids of their places, behind the head of the class */
bool slow_read_pieces_and_json(struct slow *slow); /* which have the ids of vocab.json */
/* Takes the next line off the front, without its end. */
bool slow_take_line(struct text_span *rest, struct text_span *line);
/* Records a failure whose message begins with the file's name. Returns false. */
bool slow_fail(const struct slow *slow, enum slow_file file, attn_status status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* ---- tokens.c ---- */

/*
 * The setting of tokenizer_config.json, else of special_tokens_map.json, else the default of the class or of its form.
 * NULL: there is none.
 */
const json_t *slow_setting(const struct slow *slow, const char *name);
bool slow_is_set(const struct slow *slow, const char *name);
/* Whether the class has the property, which no setting changes. */
bool slow_class_is(const struct slow *slow, const char *property);
/* NULL: no added token has the text. */
const struct slow_token *slow_token_find(const struct slow *slow, struct text_span text);
/* Finds the roles and the tokens that are found in texts. */
bool slow_find_tokens(struct slow *slow);

/* ---- forms.c ---- */

/* The member "added_tokens", with a comma behind it. */
bool slow_write_added(const struct slow *slow, struct chunks *out);
/* The steps of the class or of its form, with a comma behind them. */
void slow_write_steps(const struct slow *slow, struct chunks *out);
/* Each writes the model, and the end of the file. */
bool slow_write_wordpiece(const struct slow *slow, struct chunks *out);
bool slow_write_byte_level(const struct slow *slow, struct chunks *out);
bool slow_write_pieces(const struct slow *slow, struct chunks *out);

#endif
