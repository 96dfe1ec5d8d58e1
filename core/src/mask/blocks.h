/*
 * blocks.h: block-sparse masks: the matrix and the patterns of attn_blocks (mask.h). resolve.c calls the checks,
 * and rows.c calls the rest. A query's position p is its position among the keys.
 */
#ifndef ATTN_MASK_BLOCKS_H
#define ATTN_MASK_BLOCKS_H

#include "mask/resolved.h"

/*
 * Checks masks->blocks and the list of global tokens. resolve.c checks the shapes of tensors. watch as in
 * attn_mask_resolve.
 */
ATTN_MUST_CHECK bool attn_blocks_check(const attn_blocks *blocks, const attn_mask *mask, const attn_runtime *watch,
                                       struct attn_check *check);

/* Chunks and prefixes: narrows the range from … to of a query at position p of item b. */
void attn_blocks_narrow(const attn_mask *mask, size_t b, int64_t p, int64_t *from, int64_t *to);

/* Whether the blocks are looked up, because the keys of a query are not one range. */
bool attn_blocks_have_lookup(const attn_mask *mask);

/*
 * allow[n] = whether the blocks let query i, at position p, attend to key from + n, for from <= key < to. Only with
 * lookup.
 */
void attn_blocks_row(const attn_mask *mask, size_t b, size_t h, size_t i, int64_t p, size_t from, size_t to,
                     uint8_t *allow);

/*
 * True only if the blocks hide keys from … to from all of queries i … i + rows, the first at position p. Only with
 * lookup.
 */
bool attn_blocks_hide_tile(const attn_mask *mask, size_t b, size_t h, size_t i, int64_t p, size_t rows, size_t from,
                           size_t to);

/* The cost of attn_blocks_row for this many keys, in floating-point operations that take as long; 0 without lookup. */
double attn_blocks_row_flops(const attn_mask *mask, double keys);

/* An upper bound of the keys that a pattern leaves to the query at position p. */
double attn_blocks_keys(const attn_mask *mask, int64_t p);
/* Pairs that a matrix allows, over batch and heads. watch as in attn_mask_pairs. */
double attn_blocks_matrix_pairs(const attn_mask *mask, const attn_runtime *watch);

#endif
