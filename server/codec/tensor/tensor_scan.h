/*
 * tensor_scan.h: a tensor out of JSON text, straight into its buffer.
 *
 * A JSON tree would take tens of bytes per number and round each to double. So arrays that begin with a number are
 * lifted out of the text before the tree is made (skim.h). Each is read here once, in the type that the core needs.
 */
#ifndef CODEC_TENSOR_TENSOR_SCAN_H
#define CODEC_TENSOR_TENSOR_SCAN_H

#include "attn/arena.h"
#include "attn/tensor.h"
#include "codec/json/skim.h"

/*
 * Reads nested arrays of numbers and the strings "NaN", "Infinity", "-Infinity" into a row-major tensor of dtype in
 * arena: ATTN_F32, ATTN_F64, ATTN_I64; or of true, false, 1, 0 into one of ATTN_BOOL. true and false are no numbers.
 * Every row is checked against the shape of the first as it comes.
 * pointer is the JSON pointer of the array in the request ("/inputs/query"); errors extend it with the indices of the
 * element ("/inputs/query/1/0"):
 *   ATTN_ERR_SYNTAX    not JSON (line and column are left to the caller: *at is the offset in text->text)
 *   ATTN_ERR_FIELD     an element that is not a number (a string, null, an object, but for ATTN_BOOL true or false)
 *   ATTN_ERR_SHAPE     a ragged row (pointer of the first row that disagrees, expected and received lengths), or more
 *                      than ATTN_MAX_RANK levels
 *   ATTN_ERR_VALUE     a number that dtype cannot hold: beyond its range (send "Infinity" if that is meant), a
 *                      fraction for ATTN_I64, anything but 0, 1, true, false for ATTN_BOOL
 *   ATTN_ERR_NO_MEMORY
 */
ATTN_MUST_CHECK attn_status tensor_scan(const struct lifted_text *text, attn_dtype dtype, const char *pointer,
                                        attn_arena *arena, attn_tensor *tensor, size_t *at, attn_error *err);

#endif
