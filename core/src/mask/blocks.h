/*
 * blocks.h: inside of this room: the document of a key or a query, and block-sparse masks: the matrix and the patterns
 * of attn_blocks (mask.h). resolve.c calls the checks, and rows.c calls the rest. A query's position p is its position
 * among the keys.
 */
#ifndef ATTN_MASK_BLOCKS_H
#define ATTN_MASK_BLOCKS_H

#include "mask/resolved.h"

/* How many of count ascending numbers, which are stride apart, are below limit. */
static inline size_t attn_count_below(const int64_t *numbers, ptrdiff_t stride, size_t count, int64_t limit)
{
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (numbers[(ptrdiff_t)middle * stride] < limit)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Only for masks with documents, as the next one. The ids of neighbours are documents_key_stride[1] apart. */
static inline const int64_t *attn_document_of_key(const attn_mask *mask, size_t b, size_t j)
{
    return mask->documents_key + (ptrdiff_t)b * mask->documents_key_stride[0] +
           (ptrdiff_t)j * mask->documents_key_stride[1];
}

static inline int64_t attn_document_of_query(const attn_mask *mask, size_t b, size_t i)
{
    return mask->documents_query[(ptrdiff_t)b * mask->documents_query_stride[0] +
                                 (ptrdiff_t)i * mask->documents_query_stride[1]];
}

/* Checks masks->blocks and the global tokens; resolve.c checks shapes. watch as in attn_mask_resolve. */
ATTN_MUST_CHECK bool attn_blocks_check(const attn_blocks *blocks, const attn_mask *mask, const attn_runtime *watch,
                                       struct attn_check *check);

/* Chunks and prefixes: narrows the range from … to of a query at position p of item b. */
void attn_blocks_narrow(const attn_mask *mask, size_t b, int64_t p, int64_t *from, int64_t *to);

/* Whether the blocks are looked up, because the keys of a query are not one range. */
bool attn_blocks_have_lookup(const attn_mask *mask);

/* allow[n] = whether query i, at position p, may attend to key from + n, for from <= key < to. Only with lookup. */
void attn_blocks_row(const attn_mask *mask, size_t b, size_t h, size_t i, int64_t p, size_t from, size_t to,
                     uint8_t *allow);

/* True only if keys from … to are hidden from queries i … i + rows, the first at position p. Only with lookup. */
bool attn_blocks_hide_tile(const attn_mask *mask, size_t b, size_t h, size_t i, int64_t p, size_t rows, size_t from,
                           size_t to);

/* The cost of attn_blocks_row for this many keys, in floating-point operations that take as long; 0 without lookup. */
double attn_blocks_row_flops(const attn_mask *mask, double keys);

/* An upper bound of the keys that a pattern leaves to the query at position p. */
double attn_blocks_keys(const attn_mask *mask, int64_t p);
/* Pairs that a matrix allows, over batch and heads. watch as in attn_mask_pairs. */
double attn_blocks_matrix_pairs(const attn_mask *mask, const attn_runtime *watch);

#endif
