/*
 * encoding.h: text to the ids of a model and back, by the tokenizer.json that comes with the model.
 *
 * It gives the tokens that Hugging Face's tokenizers gives, from version 1.0 of the file: normalizers, pre-tokenizers,
 * WordPiece, BPE or Unigram, a post-processor, a decoder and added tokens. What a file asks for and is not there is
 * refused by name while it loads. The members "truncation" and "padding" are ignored, as transformers does: the caller
 * gives the length.
 */
#ifndef CODEC_TOKENIZER_ENCODING_H
#define CODEC_TOKENIZER_ENCODING_H

#include <stdint.h>

#include "attn/arena.h"
#include "base/text.h"

/* Constant after loading: any thread may use it. */
struct tokenizer;

/*
 * Loads text[0 .. length). The tokenizer lives in arena, whose bytes are its size. scratch lends memory for the JSON: about
 * a megabyte for the vocabulary and the merges, which are read in pieces, and twelve times the length of all else. It has
 * them back on return. Messages begin with the JSON pointer of the place.
 *   ATTN_ERR_SYNTAX            the text is not JSON, or a table in it is not what it should be
 *   ATTN_ERR_FIELD, _VALUE     something is missing, contradicts itself or is not supported
 *   ATTN_ERR_TOO_LARGE         more tokens, or longer ones, than this code takes
 *   ATTN_ERR_NO_MEMORY, ATTN_ERR_CANCELLED
 */
ATTN_MUST_CHECK attn_status tokenizer_load(const char *text, size_t length, attn_arena *arena, attn_arena *scratch,
                                           const struct tokenizer **tokenizer, attn_error *err);
/* Loads a text that slow_convert made. It may have members and steps that Hugging Face's tokenizers does not have. */
ATTN_MUST_CHECK attn_status tokenizer_load_slow(struct text_span text, attn_arena *arena, attn_arena *scratch,
                                                const struct tokenizer **tokenizer, attn_error *err);

/* One more than the highest id. */
uint32_t tokenizer_vocabulary_size(const struct tokenizer *tokenizer);
/* The token's spelling in the vocabulary; a NUL stands behind it. at is NULL when no token has the id. */
struct text_span tokenizer_token(const struct tokenizer *tokenizer, uint32_t id);
/*
 * The most bytes that the spellings of count different ids, or what tokenizer_show_id makes of them, take as strings of JSON
 * with commas. An id without a token is null, and may stand there several times.
 */
size_t tokenizer_words_bound(const struct tokenizer *tokenizer, bool are_shown, size_t count);

enum { TOKENIZER_NO_SEGMENT = 2 };

struct tokenizer_token {
    uint32_t id;
    uint32_t begin, end; /* code points of its text; 0, 0 for a token that the post-processor added */
    uint32_t type_id;
    uint8_t segment;       /* 0: of the text; 1: of the pair; TOKENIZER_NO_SEGMENT: added by the post-processor */
    bool is_special;       /* added by the post-processor; not a special token that the text spells out */
    bool is_unknown;       /* the model's unknown token stands for this place */
    struct text_span text; /* the vocabulary's spelling, or what an unknown or added token stands for */
};

struct tokenizer_input {
    struct text_span text;
    struct text_span pair; /* at NULL: there is none */
    bool add_special;      /* let the post-processor add its tokens */
    size_t max_length;     /* tokens, added ones included; 0: no limit */
    bool truncate;         /* shorten the longest text first, as transformers' "longest_first"; otherwise refuse */
};

struct tokenizer_output {
    struct tokenizer_token *tokens;
    size_t count;
};

/*
 * Encodes a text, or a pair of texts. The output lives in arena and refers to the tokenizer. scratch lends memory: about
 * 150 bytes per byte of text. When scratch is arena, this memory is taken for good. Time grows with the length, up to a
 * logarithm; scratch is asked whether the work is cancelled. Messages name the text: "the text", "the pair".
 *   ATTN_ERR_SYNTAX     a text is not UTF-8
 *   ATTN_ERR_VALUE      a text holds U+0000, or characters that the model has no token for; a pattern needs too many
 *                       steps; max_length has no place for the added tokens
 *   ATTN_ERR_TOO_LARGE  more than max_length tokens
 *   ATTN_ERR_NO_MEMORY, ATTN_ERR_CANCELLED
 */
ATTN_MUST_CHECK attn_status tokenizer_encode(const struct tokenizer *tokenizer, const struct tokenizer_input *input,
                                             attn_arena *arena, attn_arena *scratch, struct tokenizer_output *output,
                                             attn_error *err);

/*
 * The text that ids stand for, NUL-terminated, in arena. Ids without a token are left out, and special tokens when
 * skip_special. scratch lends memory. When scratch is arena, this memory is taken for good.
 *   ATTN_ERR_VALUE      a pattern needs too many steps
 *   ATTN_ERR_NO_MEMORY, ATTN_ERR_CANCELLED
 */
ATTN_MUST_CHECK attn_status tokenizer_decode(const struct tokenizer *tokenizer, const uint32_t *ids, size_t count,
                                             bool skip_special, attn_arena *arena, attn_arena *scratch,
                                             struct text_span *text, attn_error *err);

enum { TOKENIZER_SHOWN_MAX = 1024 };

/*
 * What a reader should see of a token: show.c.
 *
 *   of a text   the characters that its offsets cut out of the text
 *   of an id    what the decoder makes of it behind other tokens, or as the first; without the space that WordPiece sets
 *               between words
 *
 * Bytes that are only a part of a character are written as \xE4. Added tokens, and those that the post-processor added,
 * keep their spelling, and so do those that the decoder makes much longer. A token that covers no character of its text is
 * shown as its id is. A text may hold U+0000.
 *
 * tokens, count and input are those of tokenizer_encode; shown has room for count, and refers to the tokenizer, to the
 * texts and to arena.
 *   ATTN_ERR_NO_MEMORY, ATTN_ERR_CANCELLED
 */
ATTN_MUST_CHECK attn_status tokenizer_show_text(const struct tokenizer *tokenizer, const struct tokenizer_input *input,
                                                const struct tokenizer_token *tokens, size_t count, attn_arena *arena,
                                                struct text_span *shown, attn_error *err);
ATTN_MUST_CHECK attn_status tokenizer_show_ids(const struct tokenizer *tokenizer, const int64_t *ids, size_t count,
                                               attn_arena *arena, struct text_span *shown, attn_error *err);
/*
 * One id, in room or in the tokenizer. shown->at is NULL when no token has the id. scratch has its memory back on return.
 * False: there is not enough memory, and shown is the spelling.
 */
bool tokenizer_show_id(const struct tokenizer *tokenizer, uint32_t id, bool is_first, attn_arena *scratch,
                       char room[TOKENIZER_SHOWN_MAX], struct text_span *shown);

#endif
