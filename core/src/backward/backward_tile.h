/*
 * backward_tile.h: one tile of the backward pass: some queries of a head by some keys.
 *
 * The BLAS computes the products, and the kernel computes the rows between them. In the products, a row of q, k, v or
 * dO with a number that is not finite is replaced by zeros, because 0 times that number would be NaN in other rows,
 * too. Its contribution to the pairs that the mask allows is added pair by pair.
 */
#ifndef ATTN_BACKWARD_BACKWARD_TILE_H
#define ATTN_BACKWARD_BACKWARD_TILE_H

#include "attn/runtime.h"
#include "backward/backward_job.h"

enum {
    /* Queries and keys per tile. Sums are taken per tile, so the bits of a result depend on these sizes. */
    GRADIENT_ROWS = 128,
    GRADIENT_KEYS = 256,
    GRADIENT_STRIDE = GRADIENT_KEYS + 16, /* of tile rows: not a power of two, to avoid cache aliasing */
};

/* Rows of an operand, ready for a product. */
struct gradient_rows {
    const char *data;
    size_t stride;
    const char *original; /* the rows before the copy */
    size_t original_stride;
    const uint8_t *is_non_finite; /* NULL: all rows are finite */
};

struct gradient_tile {
    const struct attn_gradient_heads *heads;
    const attn_kernel *kernel;
    size_t b, h, kv_head;
    size_t row0, rows, key0, keys;
    struct gradient_rows q, k, v, o; /* o: of the gradient of the context */
    const uint8_t *allow;            /* (rows, GRADIENT_STRIDE); NULL: every pair is allowed */
    /* scratch */
    char *x, *g, *masked; /* (rows, GRADIENT_STRIDE); masked NULL: the same as g */
    char *q_copy, *k_copy, *v_copy, *o_copy;
    char *grad_k, *grad_v; /* of the tile's keys */
    char *added;
    uint8_t *allow_copy, *keep;
};

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
 * Adds the results of the tile to grad_k and grad_v, and to part, the tile's rows of dq, d_k numbers each. NULL: not
 * wanted.
 */
void gradient_tile_multiply(const struct gradient_tile *tile, char *part);

#endif
