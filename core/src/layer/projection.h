/*
 * projection.h: the weights of a layer as slices of columns, which turn tokens into queries, keys, values and gates.
 *
 * Separate, per-head and fused weights all become a few slices: columns of a weight matrix that give neighbouring
 * columns of the projected tokens. plan.c checks the shapes, run.c multiplies.
 */
#ifndef ATTN_LAYER_PROJECTION_H
#define ATTN_LAYER_PROJECTION_H

#include "gemm/gemm.h"

typedef enum { PROJECT_Q, PROJECT_K, PROJECT_V, PROJECT_GATE, PROJECT_RELATIVE_KEY, PROJECT_RELATIVE_QUERY } attn_role;

/*
 * The slices of a role. Each has the same number of columns; slice s gives columns s * columns … of the projected
 * tokens. It starts at element first + s * step of the weight, and at element bias_first + s * bias_step of the bias.
 * Rows (in_out) or columns (out_in) of the weight are w_stride apart.
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

/* All columns of the fused weight, in their order, as one slice. */
attn_projection attn_projection_of_fused(const attn_weights *weights, const attn_dims *dims);

/* The distance in columns from one head, which has d columns, to the next; 0: heads are not evenly spaced. */
size_t attn_projection_head_step(const attn_projection *projection, size_t d);

/* A weight of rank 2 that turns tokens of inner features into columns features, as one slice. */
attn_projection attn_projection_of_matrix(const attn_affine *affine, attn_layout layout, size_t inner, size_t columns);

/* The output projection: one slice for rank 2 and for rank 3. */
attn_projection attn_projection_of_output(const attn_weights *weights, const attn_dims *dims);

/* The largest attn_narrow_inner of all weights of a layer and its feed-forward network. */
size_t attn_projection_narrow_inner(const attn_weights *weights, attn_dtype compute);

/*
 * Turns the slices into products; a number of tokens and biases has element bytes. tokens has x, y, batch and rows; a row of y has the
 * slices one after the other. The products use the panels of kernel if the weight has them. kernel NULL: no panels.
 */
void attn_projection_products(const attn_projection *projection, attn_layout layout, size_t element,
                              const attn_kernel *kernel, const struct attn_product *tokens,
                              struct attn_product *products);

#endif
