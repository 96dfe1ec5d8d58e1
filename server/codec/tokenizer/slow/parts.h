/* parts.h: what the files of a slow tokenizer say, while a tokenizer.json is made of them. */
#ifndef CODEC_TOKENIZER_SLOW_PARTS_H
#define CODEC_TOKENIZER_SLOW_PARTS_H

#include "codec/bytes/chunks.h"
#include "codec/bytes/outcome.h"
#include "codec/json/tree.h"
#include "codec/tokenizer/model/compose.h"
#include "codec/tokenizer/model/vocabulary.h"
#include "codec/tokenizer/slow/slow.h"

/* ---- classes.c: what each class of slow tokenizers does with its files ---- */

enum slow_form {
    SLOW_WORDPIECE,  /* vocab.txt */
    SLOW_BYTE_LEVEL, /* vocab.json and merges.txt: bytes as visible characters */
    SLOW_CLIP,       /* the same with </w> behind words */
    SLOW_SPM,        /* SentencePiece with the ids of its pieces, behind the tokens of head */
    SLOW_SPM_VOCAB   /* SentencePiece with the ids of vocab.json */
};

struct slow_class {
    const char *names;  /* of the classes, without "Fast" */
    const char *models; /* the types of config.json whose class it is; "" for none */
    enum slow_form form;
    const char *tokens; /* the special tokens by default: "unk=[UNK] …"; ~ behind one: it takes the space before it */
    /*
     * What is added to a text, and to a pair: A and B are the texts, other letters special tokens: b bos, e eos, s sep,
     * c cls, l the language. A digit behind a letter is the type id.
     */
    const char *single, *pair;
    const char *head;        /* SLOW_SPM: tokens before the pieces; "" for none */
    unsigned skipped;        /* SLOW_SPM: pieces at the front that the head replaces */
    const char *tail;        /* tokens behind the pieces, or behind those of vocab.json */
    const char *normalizers; /* steps before those of the model, as JSON, each with a comma behind it; "" for none */
    bool has_sentinels;      /* <extra_id_0> … behind the vocabulary, backwards */
    bool lowers_by_default;  /* do_lower_case, when tokenizer_config.json does not say it */
    bool has_legacy;         /* "legacy": false adds a space before the text alone, not behind special tokens */
    bool adds_by_settings;   /* add_bos_token and add_eos_token say what is added; single and pair have both */
    bool bos_by_default;     /* add_bos_token, when tokenizer_config.json does not say it */
};

/* NULL: no class has the name. */
const struct slow_class *slow_class_find(struct text_span name);
/* NULL: there is no rule for that type of model. */
const struct slow_class *slow_class_of_model(struct text_span model_type);

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

/* ---- vocabulary.c ---- */

/* Reads the file of the class's form into vocabulary, scores and model. */
bool slow_read_vocabulary(struct slow *slow);
/* Takes the next line off the front, without its end. */
bool slow_take_line(struct text_span *rest, struct text_span *line);
/* Records a failure whose message begins with the file's name. Returns false. */
bool slow_fail(const struct slow *slow, enum slow_file file, attn_status status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* ---- tokens.c ---- */

/* The setting of tokenizer_config.json, else of special_tokens_map.json. NULL: there is none, or it is null. */
const json_t *slow_setting(const struct slow *slow, const char *name);
bool slow_is_set(const struct slow *slow, const char *name, bool otherwise);
/* NULL: no added token has the text. */
const struct slow_token *slow_token_find(const struct slow *slow, struct text_span text);
/* Finds the roles and the tokens that are found in texts. */
bool slow_find_tokens(struct slow *slow);

/* ---- common.c ---- */

const char *slow_bool_text(bool value);
/* The token of the role. NULL: there is none. */
const struct slow_token *slow_token_of(const struct slow *slow, enum slow_role role);
/* Each writes members of the file, or of its model, with a comma behind them. */
bool slow_write_added(const struct slow *slow, struct chunks *out);
void slow_write_post_processor(const struct slow *slow, struct chunks *out);
/* The members "unk_token", with a comma before it, and "vocab". */
void slow_write_unknown(const struct slow *slow, struct chunks *out);
void slow_write_ids(const struct slow *slow, struct chunks *out);

/* ---- forms.c: each writes all that is behind the post-processor ---- */

bool slow_write_wordpiece(const struct slow *slow, struct chunks *out);
bool slow_write_byte_level(const struct slow *slow, struct chunks *out);
bool slow_write_pieces(const struct slow *slow, struct chunks *out);

#endif
