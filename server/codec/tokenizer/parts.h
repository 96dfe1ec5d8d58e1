/* parts.h: a tokenizer as its parts, for loading and use. */
#ifndef CODEC_TOKENIZER_PARTS_H
#define CODEC_TOKENIZER_PARTS_H

#include "codec/tokenizer/encoding.h"
#include "codec/tokenizer/model/kinds.h"

/* ---- added.c: tokens beside those of the model, which are found in the text before everything else ---- */

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

/* ---- postprocess.c: which tokens are added around the texts, and how offsets are trimmed ---- */

enum { PART_TEXT, PART_PAIR, PART_SPECIAL };

/* A text or an added token. */
struct template_part {
    uint8_t what;
    uint32_t id; /* of the added token */
    uint32_t type_id;
};

struct template
{
    struct template_part *parts;
    size_t count;
    size_t added; /* parts that are added tokens */
};

struct trim {
    bool add_prefix_space;
};

struct postprocessor {
    struct template single, pair;
    struct trim *trims;
    size_t trim_count;
};

/* post_processor may have no JSON. */
attn_status postprocess_load(struct loading *loading, const struct node *node, struct postprocessor *postprocessor);
/* Trims spaces off the offsets of the tokens of a draft. */
void postprocess_trim(const struct postprocessor *postprocessor, struct draft *draft, struct tokenizer_token *tokens,
                      size_t count);

/* ---- charsmap.c: the normalizer Precompiled, a table of sentencepiece that replaces characters and graphemes ---- */

struct charsmap;

struct charsmap_option {
    const struct charsmap *map; /* NULL: nothing is replaced */
    bool longest;               /* as sentencepiece: the longest key counts wherever it stands */
};

/* Decodes the base64 text "precompiled_charsmap" to a const struct charsmap *, and checks it. */
decode_function charsmap_decode;
/* The options are a struct charsmap_option. */
void charsmap_edit(struct draft *draft, const void *options);

/* ---- show.c: how long tokens are in an answer ---- */

enum { LENGTHS_MAX = 512 };

/* How many tokens have that length as a string of JSON. The last count is of all longer ones, the longest of which has longest. */
struct token_lengths {
    uint32_t counts[LENGTHS_MAX + 1];
    size_t longest;
};

struct tokenizer;
/* Counts the lengths of the spellings, and of what tokenizer_show_id makes of them. */
void show_count(struct tokenizer *tokenizer);

/* ---- the tokenizer ---- */

struct tokenizer {
    struct vocabulary vocabulary;
    const struct model_kind *model_kind;
    const void *model;
    struct added added;
    struct steps before, normalizers, pre_tokenizers, decoders; /* before: of the whole text, with its added tokens */
    struct postprocessor postprocessor;
    struct token_lengths spelled, shown;
};

/* ---- decoders.c ---- */

/* Runs the steps, until one fails. */
void decoders_run(const struct steps *decoders, struct decoding *decoding);
/* The byte that a token of byte fallback ("<0xE4>") stands for. False: it is another token. */
bool decoder_read_byte(struct text_span text, char *byte);

#endif
