/*
 * projection.h: how the weights of a layer turn tokens into queries, keys, values and gates: which columns of which
 * matrix.
 *
 * Separate, per-head and fused weights all become a few slices: columns of a weight matrix that give neighbouring
 * columns of the projected tokens. plan.c checks the shapes, layer.c multiplies.
 */
#ifndef ATTN_LAYER_PROJECTION_H
#define ATTN_LAYER_PROJECTION_H

#include "attn/plan.h"
#include "gemm/gemm.h"

typedef enum { PROJECT_Q, PROJECT_K, PROJECT_V, PROJECT_GATE } attn_role;

/*
 * The slices of a role, each of so many columns. Slice s gives columns s * columns … of the projected tokens. It starts
 * at element first + s * step of the weight, rows (in_out) or columns (out_in) w_stride apart,
 * and at element bias_first + s * bias_step of the bias.
 */
typedef struct {
    const attn_affine *affine;
    size_t slices, columns;
    size_t inner; /* features of one token of the input */
    size_t first, step, w_stride;
    size_t bias_first, bias_step;
} attn_projection;

/* The slices of a role, from weights that the plan has checked against dims. */
attn_projection attn_projection_of(const attn_weights *weights, const attn_dims *dims, attn_role role);

/* All columns of the fused weight, in the order in which they lie there, as one slice. */
attn_projection attn_projection_of_fused(const attn_weights *weights, const attn_dims *dims);

/* Columns from each of its heads, of d columns, to the next; 0: they are not evenly spaced. */
size_t attn_projection_head_step(const attn_projection *projection, size_t d);

/* The output projection, of rank 2 or 3: one slice either way. */
attn_projection attn_projection_of_output(const attn_weights *weights, const attn_dims *dims);

/*
 * The slices as products, of numbers of element bytes: tokens has x, y, batch and rows, and y the slices of a row side
 * by side. With the panels of kernel where the weight has some; NULL: without.
 */
void attn_projection_products(const attn_projection *projection, attn_layout layout, size_t element,
                              const attn_kernel *kernel, const struct attn_product *tokens,
                              struct attn_product *products);

#endif
