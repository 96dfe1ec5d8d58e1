/*
 * kinds.h: the steps of a tokenizer, in tables of kinds, and how tokenizer.json names them: an object with "type" and
 * the options of its kind. A Sequence becomes its steps.
 */
#ifndef CODEC_TOKENIZER_MODEL_KINDS_H
#define CODEC_TOKENIZER_MODEL_KINDS_H

#include "base/text.h"
#include "codec/json/node.h"
#include "codec/json/pieces.h"
#include "codec/tokenizer/model/vocabulary.h"
#include "codec/tokenizer/text/draft.h"

/*
 * The state of loading. Its reading's arena keeps what the tokenizer needs, and its skim has the text. The two long
 * members of the model are read in pieces, and are empty in the tree.
 */
struct loading {
    struct reading reading;
    attn_arena *scratch;                  /* has the JSON */
    struct json_collection vocab, merges; /* text.at NULL: the model has no such member */
    const struct vocabulary *vocabulary;
};

/* A list of texts that decoders change. A step writes all of them anew, one behind the other. */
struct decoding {
    struct outcome outcome; /* after a failure, nothing more is written */
    struct pace pace;
    struct text_span *texts;
    size_t count;
    char *written;
    size_t written_bytes, capacity;
    struct pattern_search search;
};

/* The scope of kinds and members that Hugging Face's tokenizers does not have: texts of slow.h alone may name them. */
enum { STEP_OF_SLOW = MEMBER_ALWAYS + 1 };

struct step_kind {
    const char *name;
    const struct member *members; /* its options */
    size_t member_count;
    size_t bytes; /* of the struct that they are decoded to, which is zeroed before */
    /* Checks and completes the options. NULL: nothing to do. */
    attn_status (*settle)(struct loading *loading, const struct node *node, void *options);
    /* One of them, by the table. */
    void (*edit)(struct draft *draft, const void *options);
    draft_edit *rewrite; /* of each piece */
    draft_find *remove;  /* splits at what it finds */
    void (*decode)(struct decoding *decoding, const void *options);
    void (*write)(struct decoding *decoding, size_t i, struct text_span text, const void *options); /* text i anew */
    unsigned scope;                                                                                 /* as of a member */
};

/* A row of the table of a struct's options, and the three members of a kind for such a table, NAME_members. */
#define STEP_OPTION(options, name, decode) STEP_OPTION_OF(options, name, decode, MEMBER_ALWAYS)
#define STEP_OPTION_OF(options, name, decode, scope)                                                                   \
    {                                                                                                                  \
#name, decode, offsetof(struct options, name), scope                                                           \
    }
#define STEP_OPTIONS(options) options##_members, ARRAY_LENGTH(options##_members), sizeof(struct options)

struct step {
    const struct step_kind *kind;
    const void *options;
};

struct steps {
    struct step *items;
    size_t count;
};

struct step_table {
    const struct step_kind *kinds;
    size_t count;
    const char *what; /* "normalizer" */
    const char *list; /* the member of a Sequence that has its steps */
};

/* Decodes the steps of a node, whose json may be NULL: none. A kind that is not in the table is refused by name. */
attn_status steps_load(struct loading *loading, const struct node *node, const struct step_table *table,
                       struct steps *steps);

/* Edits the draft by the steps, until one fails. */
void steps_edit(const struct steps *steps, struct draft *draft);

/* The trie of texts, in the reading's arena. */
attn_status loading_trie(struct loading *loading, const struct text_span *texts, size_t count, struct trie *trie);
/* Has all items of one of the long members taken (json/pieces.h). */
attn_status loading_each(struct loading *loading, const struct json_collection *member, const struct json_taker *taker,
                         void *context);
/* Fails: jansson stopped at that byte of the text. */
attn_status loading_fail_json(struct loading *loading, const json_error_t *error, size_t at);

extern const struct step_table normalizer_table, pre_tokenizer_table, post_processor_table, decoder_table;

/* ---- decoders of options, for tables of members ---- */

/* The item of a list that is in place i of a piece, which begins at the index. */
struct node step_item(const struct node *list, const json_t *piece, size_t index, size_t i);

decode_function step_text;      /* struct text_span, copied, NUL-terminated; U+0000 is refused */
decode_function step_character; /* uint32_t */
decode_function step_count;     /* uint32_t */
decode_function step_behavior;  /* enum draft_behavior */
decode_function step_pattern;   /* const struct pattern * */
decode_function step_token;     /* struct step_token_id */
decode_function step_ignored;   /* nothing: the option has no effect here */

/* ["[SEP]", 3] */
struct step_token_id {
    uint32_t id;
};

/* The options of Replace, which a normalizer and a decoder have. */
struct step_replace {
    const struct pattern *pattern;
    struct text_span content;
};
extern const struct member step_replace_members[2];
attn_status step_settle_replace(struct loading *loading, const struct node *node, void *options);
/* Fails with what the step needs, unless it is there. */
attn_status step_needs(struct loading *loading, const struct node *node, bool is_there, const char *what);

/* ---- the models, which turn a piece of text into tokens: WordPiece, BPE and Unigram ---- */

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

/*
 * words.c: the vocabulary of a model, as JSON has it: an object of ids by token, or a list of tokens with their scores.
 *
 * Reads loading->vocab, which is the text of the node, into a vocabulary with ids below size, or more if the text has
 * them. The result lives in the reading's arena. An id far above the number of tokens is refused, because memory is taken
 * for each id.
 */
attn_status words_load(struct loading *loading, const struct node *node, size_t size, struct vocabulary *vocabulary);

#endif
