/*
 * step_kinds.h: the steps of a tokenizer, in tables of kinds, and how tokenizer.json names them: an object with "type" and
 * the options of its kind. A Sequence becomes its steps.
 */
#ifndef CODEC_TOKENIZER_MODEL_STEP_KINDS_H
#define CODEC_TOKENIZER_MODEL_STEP_KINDS_H

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
    attn_arena *arena;
    struct pace pace;
    struct text_span *texts;
    size_t count;
    char *written;
    size_t written_bytes, capacity;
    struct pattern_search search;
    attn_status status; /* once it is not ATTN_OK, nothing more is written */
    attn_error *err;
};

static inline bool decoding_has_failed(const struct decoding *decoding)
{
    return decoding->status != ATTN_OK;
}

struct step_kind {
    const char *name;
    const struct member *members; /* its options */
    size_t member_count;
    size_t bytes; /* of the struct that they are decoded to, which is zeroed before */
    /* Checks and completes the options. NULL: nothing to do. */
    attn_status (*settle)(struct loading *loading, const struct node *node, void *options);
    /* One of them, by the table. */
    void (*edit)(struct draft *draft, const void *options);
    void (*decode)(struct decoding *decoding, const void *options);
};

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

/* Has all items of one of the long members taken (json/pieces.h). */
attn_status loading_each(struct loading *loading, const struct json_collection *member, const struct json_taker *taker,
                         void *context);
/* Fails: jansson stopped at that byte of the text. */
attn_status loading_fail_json(struct loading *loading, const json_error_t *error, size_t at);

extern const struct step_table normalizer_table, pre_tokenizer_table, post_processor_table, decoder_table;

/* ---- decoders of options, for tables of members ---- */

/* A child for path and JSON; none of its arrays are markers. */
struct node step_member(const struct node *parent, const char *name);
struct node step_element(const struct node *parent, size_t index);
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

#endif
