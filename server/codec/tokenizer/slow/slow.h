/*
 * slow.h: a tokenizer.json made of the files of transformers' slow tokenizers, for a folder without tokenizer.json.
 *
 *   vocab.txt                               WordPiece: BertTokenizer and its kin
 *   vocab.json, merges.txt                  byte-level BPE: GPT-2, RoBERTa, BART, Qwen 2; CLIP's BPE
 *   spiece.model, tokenizer.model, ...      SentencePiece, Unigram or BPE: T5, ALBERT, XLM-RoBERTa, Llama, Gemma
 *   vocab.json, source.spm or another .model  SentencePiece with ids of its own: Marian, M2M100
 *
 * classes.json says what each class does with its files. The class is that of tokenizer_config.json, else that of the
 * model_type of config.json. docs/models.md lists what differs from the slow tokenizers.
 *
 * "classes" has a row per class:
 *
 *   names, models     of the classes, without "Fast"; the types of config.json whose class it is
 *   form              the files, and the name in "forms" of steps, which the class's own steps replace one by one. The step
 *                     "before" normalizes the whole text, before added tokens are found in it
 *   defaults          settings that apply when tokenizer_config.json does not have them; a form has some, too
 *   single, pair      what is added to a text, and to a pair: A and B are the texts, other letters special tokens: b bos,
 *                     e eos, s sep, c cls, l the language. A digit behind a letter is the type id
 *   head, skipped     tokens before the pieces of SentencePiece, and how many pieces at the front they replace
 *   tail, languages   special tokens behind the pieces, and behind those of vocab.json
 *   only              settings that are refused unless they have this value
 *   has_sentinels     <extra_id_0> … behind the vocabulary, backwards
 *   has_legacy        "legacy": false adds a space before the text alone, not behind special tokens
 *   adds_by_settings  add_bos_token and add_eos_token say what is added; single and pair have both
 *   cleans_text       quotes, spaces and accents are replaced before all else
 *
 * A step with "if" is left out unless the flag is set. "$flag" is true or false. A flag is a property of the class, a
 * setting, or one of those in forms.c. "$name" may also be one of "lists".
 */
#ifndef CODEC_TOKENIZER_SLOW_SLOW_H
#define CODEC_TOKENIZER_SLOW_SLOW_H

#include "attn/arena.h"
#include "base/text.h"

enum slow_file {
    SLOW_SETTINGS, /* tokenizer_config.json */
    SLOW_SPECIAL,  /* special_tokens_map.json */
    SLOW_ADDED,    /* added_tokens.json */
    SLOW_LINES,    /* vocab.txt */
    SLOW_VOCAB,    /* vocab.json */
    SLOW_MERGES,   /* merges.txt */
    SLOW_PIECES,   /* the model of SentencePiece */
    SLOW_TARGET,   /* that of targets: Marian has one per language */
    SLOW_FILES
};

/* The names that the files may have. The first that a folder has counts. */
struct slow_name {
    const char *name;
    enum slow_file file;
};

extern const struct slow_name slow_names[];
extern const size_t slow_name_count;

/* at NULL: the folder does not have the file. */
struct slow_file_text {
    struct text_span text;
    const char *name;
};

struct slow_files {
    struct slow_file_text files[SLOW_FILES];
    struct text_span config; /* config.json of the model */
};

/* The name of the file that has the vocabulary. NULL: there is none. */
const char *slow_vocabulary_name(const struct slow_files *files);

/* Whether targets are cut by a tokenizer of their own. *target has its files: SLOW_TARGET stands for SLOW_PIECES. */
bool slow_has_target(const struct slow_files *files, struct slow_files *target);
/* Whether targets are cut by target.spm, which the folder lacks. */
bool slow_lacks_target(const struct slow_files *files);

/*
 * Makes the text of a tokenizer.json. All memory is taken from arena: about eight times the bytes of the files. Messages
 * begin with the name of a file.
 *   ATTN_ERR_SYNTAX            a file is not what it should be
 *   ATTN_ERR_FIELD, _VALUE     a file or a token is missing, or the class is not supported
 *   ATTN_ERR_TOO_LARGE         too many tokens
 *   ATTN_ERR_NO_MEMORY, ATTN_ERR_CANCELLED
 */
ATTN_MUST_CHECK attn_status slow_convert(const struct slow_files *files, attn_arena *arena, struct text_span *json,
                                         attn_error *err);

#endif
