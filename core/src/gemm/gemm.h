/* gemm.h: the large products of a layer, y = x W + b, cut into tasks for the kernel or the BLAS, by what is faster. */
#ifndef ATTN_GEMM_GEMM_H
#define ATTN_GEMM_GEMM_H

#include "attn/plan.h"
#include "attn/runtime.h"
#include "kernel/entries.h"

/*
 * x is (batch, rows, inner) and y is (batch, rows, y_stride), both without gaps between the items of the batch. The
 * first columns numbers of each row of y are written. W has the given attn_layout; its rows (in_out) or columns
 * (out_in) are w_stride apart. Its numbers have the type dtype: the compute type or, with float32, 16 bits. bias has
 * columns numbers, or is NULL. panels points to the panel of the runtime's kernel that contains the first column; skip
 * columns come before it in that panel. Without panels: NULL with skip 0.
 */
struct attn_product {
    const char *x, *w, *bias, *panels;
    char *y;
    attn_dtype dtype;
    size_t batch, rows, columns, inner, w_stride, y_stride, skip;
    /* filled in by attn_products_run */
    size_t block_rows, block_columns, row_blocks, column_blocks, first_task;
};

/*
 * The panels of a weight, from the panel that contains column on. A weight of rank 3 counts the columns of all its
 * matrices. *skip is the number of columns before it in that panel. NULL with *skip 0: the weight has no panels for
 * this kernel and layout.
 */
const void *attn_panels_from(const attn_kernel *kernel, attn_layout layout, const attn_tensor *weight, size_t column,
                             size_t *skip);

/* The features of a weight that is not of the compute type, at most; 0: there is none, or it is of that type. */
size_t attn_narrow_inner(attn_dtype compute, attn_layout layout, const attn_tensor *weight);

/* Scratch bytes of a thread; kernel NULL: of any. narrow_inner is the largest attn_narrow_inner of the weights. */
size_t attn_products_scratch_bytes(const attn_kernel *kernel, attn_dtype compute, size_t narrow_inner);

/*
 * Computes all products, of the type compute and with weights of one layout, on the threads of the runtime. The numbers
 * of a row depend on rows and on the row itself, not on its neighbours, the batch, or the threads. A weight of 16 bits
 * gives the bits of the same numbers in float32. scratch has the scratch bytes of every thread. After a cancelled run, y
 * is undefined.
 */
void attn_products_run(struct attn_product *products, size_t count, attn_dtype compute, attn_layout layout,
                       const attn_runtime *runtime, char *scratch);

/* Whether attn_multiply_block gives the numbers of a row the same bits, whichever rows are in the block. */
bool attn_multiplies_rows_alike(attn_dtype compute, const attn_runtime *runtime);

/*
 * Computes a block that adds to y, of the type compute, without bias and panels, by what is faster. scratch has
 * GEMM_SCRATCH numbers, aligned to ATTN_ALIGNMENT. After a cancelled run, y is undefined.
 */
void attn_multiply_block(const struct attn_gemm_block *block, attn_dtype compute, const attn_runtime *runtime,
                         void *scratch);

/*
 * blas.c, the only file that includes cblas.h: y += x W for row-major float or double (dtype):
 *   x (rows, inner) with row stride x_stride; y (rows, columns) with row stride y_stride, initialised by the caller
 *   W (inner, columns) with row stride w_stride for ATTN_LAYOUT_IN_OUT; (columns, inner) for ATTN_LAYOUT_OUT_IN
 * Every size is at least 1 and at most DIMENSION_MAX (base/size.h): plan.c has checked it. Safe from several threads.
 */
void attn_blas_multiply_add(attn_dtype dtype, size_t rows, size_t columns, size_t inner, const void *x, size_t x_stride,
                            const void *w, size_t w_stride, attn_layout layout, void *y, size_t y_stride);

#endif
