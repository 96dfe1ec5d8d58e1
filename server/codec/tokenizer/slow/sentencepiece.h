/*
 * sentencepiece.h: reads a model of SentencePiece, a message of protocol buffers (sentencepiece_model.proto).
 */
#ifndef CODEC_TOKENIZER_SLOW_SENTENCEPIECE_H
#define CODEC_TOKENIZER_SLOW_SENTENCEPIECE_H

#include "attn/arena.h"
#include "base/text.h"

enum piece_type { PIECE_NORMAL = 1, PIECE_UNKNOWN, PIECE_CONTROL, PIECE_USER, PIECE_UNUSED, PIECE_BYTE };
enum { SENTENCEPIECE_UNIGRAM = 1, SENTENCEPIECE_BPE = 2 };

struct sentencepiece_piece {
    struct text_span text; /* in the file: no NUL ends it */
    float score;
    enum piece_type type;
};

struct sentencepiece {
    struct sentencepiece_piece *pieces; /* by id */
    size_t count, room;                 /* room: of the table */
    uint64_t model_type;
    bool byte_fallback;
    bool add_dummy_prefix, remove_extra_whitespaces;
    struct text_span charsmap; /* of the normaliser; length 0: none */
};

/*
 * Reads a file. The pieces live in arena, and all texts in the file.
 *   ATTN_ERR_SYNTAX     it is no model of SentencePiece
 *   ATTN_ERR_VALUE      it is of a type that is not supported
 *   ATTN_ERR_TOO_LARGE  too many pieces
 *   ATTN_ERR_NO_MEMORY
 */
ATTN_MUST_CHECK attn_status sentencepiece_read(struct text_span file, attn_arena *arena, struct sentencepiece *model,
                                               attn_error *err);

#endif
