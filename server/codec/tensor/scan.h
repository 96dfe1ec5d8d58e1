/*
 * scan.h: reads a tensor from JSON text, straight into its buffer.
 *
 * A JSON tree would take tens of bytes per number, and would round each number to double. So arrays that begin with a
 * number are lifted out of the text before the tree is made (skim.h). This file reads each of them once, in the type
 * that the core needs.
 */
#ifndef CODEC_TENSOR_SCAN_H
#define CODEC_TENSOR_SCAN_H

#include <stdbool.h>

#include "attn/arena.h"
#include "attn/tensor.h"
#include "codec/json/skim.h"

/* What a tensor of floats may hold besides numbers, and what a refusal says of words. Zero: nothing. */
struct tensor_rules {
    bool null_hides;         /* null is -Infinity: an answer writes a hidden score so */
    bool takes_bare;         /* NaN, Infinity and -Infinity may stand without quotes, as in Triton's JSON */
    const char *texts_place; /* where texts belong */
};

/* Where numbers belong that a mask of flags refuses. */
#define TENSOR_BIAS_PLACE "numbers that are added to the scores are masks.bias"

/*
 * Reads nested arrays into a row-major tensor of dtype in arena. For ATTN_F32, ATTN_F64 and ATTN_I64, elements are
 * numbers and words in quotes: NaN, Infinity, -Infinity, nan, inf, -inf; true and false are refused. For ATTN_BOOL,
 * elements are true, false, 1, 0. Every row is compared with the first row of its level as it is read. pointer is the JSON pointer of the
 * array in the request ("/inputs/query"). Errors append the indices of the element ("/inputs/query/1/0"):
 *   ATTN_ERR_SYNTAX    not JSON. *at is the offset in text->text; the caller adds line and column
 *   ATTN_ERR_FIELD     an element of another type (a string, null, an object; true or false unless dtype is ATTN_BOOL)
 *   ATTN_ERR_SHAPE     a row of another length (pointer of the first such row, expected and received lengths), or more
 *                      than ATTN_REQUEST_RANK levels
 *   ATTN_ERR_VALUE     a number that dtype cannot hold: beyond its range (the message names the wider type and the
 *                      infinity that a client may send instead), a fraction for ATTN_I64, a number other than 0 and 1 for ATTN_BOOL
 *   ATTN_ERR_NO_MEMORY
 */
ATTN_MUST_CHECK attn_status tensor_scan(const struct lifted_text *text, attn_dtype dtype,
                                        const struct tensor_rules *rules, const char *pointer, attn_arena *arena,
                                        attn_tensor *tensor, size_t *at, attn_error *err);

#endif
