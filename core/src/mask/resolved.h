/* resolved.h: masks resolved against the dimensions of one computation, and what they allow. */
#ifndef ATTN_MASK_RESOLVED_H
#define ATTN_MASK_RESOLVED_H

#include <assert.h>

#include "base/check.h"

typedef struct {
    size_t batch, heads, q_len, kv_len;
    bool causal, has_window;
    int64_t left, right;   /* of the window */
    int64_t base_offset;   /* without offset[] */
    const int64_t *offset; /* per batch item with offset_stride 0 or 1; NULL: base_offset alone */
    size_t offset_stride;
    const int64_t *kv_lengths, *q_lengths; /* NULL: none; the stride is 0 or 1 */
    size_t kv_lengths_stride, q_lengths_stride;
    const uint8_t *padding;
    ptrdiff_t padding_stride[2]; /* b, j */
    const uint8_t *attend;
    ptrdiff_t attend_stride[4]; /* b, h, i, j */
    const void *bias;
    ptrdiff_t bias_stride[4];
    const void *scores; /* inputs.scores, of the compute type, (batch, heads, q_len, kv_len) without gaps; NULL: none */
    size_t bias_as_mask;                                          /* finite numbers of bias up to ATTN_BIAS_AS_MASK */
    double bias_lowest;                                           /* the lowest finite one */
    const int64_t *documents_query, *documents_key;               /* NULL: none */
    ptrdiff_t documents_query_stride[2], documents_key_stride[2]; /* b, position */
    bool documents_are_sorted;                                    /* of the keys: then a document is one range */
    attn_blocks blocks;
    size_t q_blocks, kv_blocks;
    ptrdiff_t blocks_stride[4]; /* of the matrix: b, h, block of queries, block of keys */
} attn_mask;

static_assert(sizeof(attn_mask) <= sizeof((attn_mask_facts *)NULL)->resolved, "a plan has room for its masks");

/* The masks of a plan. */
static inline const attn_mask *attn_mask_of(const attn_plan *plan)
{
    return (const attn_mask *)(const void *)&plan->mask.resolved;
}

/* Puts them into the plan. */
void attn_mask_put(const attn_mask *mask, attn_plan *plan);

/*
 * Checks every mask against (batch, heads, q_len, kv_len) and the compute type, and resolves broadcasts into strides.
 * The tensors of masks must outlive *mask. Errors name the member ("masks.attend"): ATTN_ERR_SHAPE when it does not
 * broadcast, ATTN_ERR_VALUE when a length is negative or too long, or a bias is NaN or +infinity. watch is asked while
 * many numbers are read whether the work is cancelled; NULL: it is never. Then the status is ATTN_ERR_CANCELLED, or
 * *mask is of no use.
 */
ATTN_MUST_CHECK bool attn_mask_resolve(const attn_masks *masks, size_t batch, size_t heads, size_t q_len, size_t kv_len,
                                       attn_dtype compute, const attn_runtime *watch, attn_mask *mask,
                                       struct attn_check *check);

/* The offset of item b: key j stands at position j, query i at i + offset. */
int64_t attn_mask_offset(const attn_mask *mask, size_t b);
/* The range of keys that query i of item b may attend to. Keys in it may still be hidden by a mask that is looked up. */
attn_span attn_mask_span(const attn_mask *mask, size_t b, size_t i);
/* Whether any mask is looked up besides the span: attend, padding, bias, scores, unsorted documents, or blocks. */
bool attn_mask_has_lookup(const attn_mask *mask);
/*
 * allow[n] = whether query i may attend to key from + n, for from <= key < to; returns whether it may to any. span is
 * the result of attn_mask_span for the query.
 */
bool attn_mask_row(const attn_mask *mask, attn_dtype compute, size_t b, size_t h, size_t i, attn_span span, size_t from,
                   size_t to, uint8_t *allow);
/* True only if none of queries i … i + rows may attend to any of keys from … to; cheaper than asking for each row. */
bool attn_mask_hides_tile(const attn_mask *mask, size_t b, size_t h, size_t i, size_t rows, size_t from, size_t to);
/*
 * An upper bound of the allowed pairs of a query and a key, over batch and heads, from spans and blocks. When watch (NULL:
 * none) says that the work is cancelled, the sum ends early and is of no use.
 */
double attn_mask_pairs(const attn_mask *mask, const attn_runtime *watch);
/*
 * The cost of looking the mask up once for every query, in tiles of 512 keys of its span. The unit is floating-point
 * operations of a large product that takes as long. 0 where nothing is looked up. Drawn blocks and small blocks are
 * expensive: a row of a bigbird with 64 random blocks takes microseconds. watch as in attn_mask_pairs.
 */
double attn_mask_lookup_flops(const attn_mask *mask, const attn_runtime *watch);
/* Whether query i may attend to key j: slow and simple. */
bool attn_mask_allows(const attn_mask *mask, attn_dtype compute, size_t b, size_t h, size_t i, size_t j);

/*
 * ---- inside of this room ----
 *
 * The document of a key or a query, and block-sparse masks: the matrix and the patterns of attn_blocks (mask.h).
 * resolve.c calls the checks, and rows.c calls the rest. A query's position p is its position among the keys.
 */

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
