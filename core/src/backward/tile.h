/*
 * tile.h: one tile of the backward pass: some queries of a head by some keys.
 *
 * The kernel computes the products, and the rows between them. In the products, a row of q, k, v or dO with a number
 * that is not finite is replaced by zeros, because 0 times that number would be NaN in other rows, too. Its contribution
 * to the pairs that the mask allows is added pair by pair.
 */
#ifndef ATTN_BACKWARD_TILE_H
#define ATTN_BACKWARD_TILE_H

#include <assert.h>

#include "backward/backward.h"
#include "base/size.h"

enum {
    /* Queries and keys per tile. Sums are taken per tile, so the bits of a result depend on these sizes. */
    GRADIENT_ROWS = 96,
    GRADIENT_KEYS = 192,
    /* Queries, or keys, that share the range of what they see: whole register tiles. */
    GRADIENT_GROUP = 2 * BACKWARD_ROW_UNIT,
    GRADIENT_STRIDE = GRADIENT_KEYS + 16, /* of tile rows: not a power of two, to avoid cache aliasing */
};
static_assert(GRADIENT_ROWS % BACKWARD_ROW_UNIT == 0 && GRADIENT_ROWS % BACKWARD_COLUMN_UNIT == 0 &&
                  GRADIENT_KEYS % BACKWARD_ROW_UNIT == 0 && GRADIENT_KEYS % BACKWARD_COLUMN_UNIT == 0,
              "a tile is whole units");

struct gradient_tile {
    const struct attn_gradient_heads *heads;
    const struct attn_kernel_type *kernel;
    size_t b, h, kv_head;
    size_t row0, rows, key0, keys;
    struct attn_backward_rows q, k, v, o; /* o: of the gradient of the context */
    attn_span span[GRADIENT_ROWS];        /* the tile's columns that each row may see; allow tells more */
    bool is_whole;                        /* every row sees every column */
    const uint8_t *allow;                 /* (rows, GRADIENT_STRIDE); NULL: what the spans allow */
    /* scratch */
    char *x, *g, *masked;              /* (rows, GRADIENT_STRIDE); masked NULL: the same as g */
    char *k_transposed, *v_transposed; /* (features, GRADIENT_STRIDE) */
    char *grad_k, *grad_v;             /* of the tile's keys, with the strides of k and v */
    char *added;
    uint8_t *allow_copy, *keep;
};

/* The features of a row, in whole vectors. */
static inline size_t gradient_columns(size_t features)
{
    return attn_round_up(features, BACKWARD_COLUMN_UNIT);
}

/* Between rows of numbers that products read or write, and of which features count: not a power of two. */
static inline size_t gradient_stride(size_t features)
{
    return gradient_columns(features) + BACKWARD_COLUMN_UNIT;
}

/* Divides the scratch memory; with memory NULL it only measures. Returns the bytes. */
size_t gradient_tile_lay_out(const struct attn_gradient_heads *heads, const attn_kernel *kernel,
                             struct gradient_tile *tile, char *memory);
/* Loads the tile's keys: key0 … of a key head. */
void gradient_tile_set_keys(struct gradient_tile *tile, size_t b, size_t kv_head, size_t key0);
/* Loads the tile's queries. false: no pair is allowed, so there is nothing to compute. */
bool gradient_tile_set_rows(struct gradient_tile *tile, size_t h, size_t row0);
/* x: the weights after dropout; g: the gradient of scale q·k; masked: that of the masked score. */
void gradient_tile_score(struct gradient_tile *tile);
/*
 * Adds the results of the tile to grad_k and grad_v, and to part, the tile's rows of dq, which are gradient_columns
 * apart. part NULL: not wanted. is_first: part is written, not added to.
 */
void gradient_tile_multiply(const struct gradient_tile *tile, char *part, bool is_first);

#endif
