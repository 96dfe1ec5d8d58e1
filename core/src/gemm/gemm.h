/*
 * gemm.h: the large products of a layer, y = x W + b, cut into tasks. The kernel multiplies where it is faster than the
 * BLAS.
 */
#ifndef ATTN_GEMM_GEMM_H
#define ATTN_GEMM_GEMM_H

#include "attn/plan.h"
#include "attn/runtime.h"

/*
 * x (batch, rows, inner) and y (batch, rows, y_stride), both without gaps between the items of the batch; the first
 * columns numbers of each row of y are written. W as attn_layout says, its rows (in_out) or columns (out_in) w_stride
 * apart; bias of columns numbers, or NULL; panels of the runtime's kernel from the one with the first column on, in
 * which it comes after skip others, or NULL with skip 0.
 */
struct attn_product {
    const char *x, *w, *bias, *panels;
    char *y;
    size_t batch, rows, columns, inner, w_stride, y_stride, skip;
    /* filled in by attn_products_run */
    bool by_kernel;
    size_t block_rows, block_columns, row_blocks, column_blocks, first_task;
};

/*
 * The panels of a weight from the one with a column on, counted over all matrices of rank 3, and how many others *skip
 * come before it there; NULL, and 0: it has none for this kernel and layout.
 */
const void *attn_panels_from(const attn_kernel *kernel, attn_layout layout, const attn_tensor *weight, size_t column,
                             size_t *skip);

/* Scratch bytes of a thread. */
size_t attn_products_scratch_bytes(attn_dtype compute);

/*
 * All products, of the type compute and with weights of one layout, spread over the runtime. A row's numbers depend on
 * rows and on the row itself, not on its neighbours, batch, or threads. scratch lends every thread its bytes. When it
 * is cancelled, y is left in any state.
 */
void attn_products_run(struct attn_product *products, size_t count, attn_dtype compute, attn_layout layout,
                       const attn_runtime *runtime, char *scratch);

#endif
