/*
 * blas.h: matrix products by the BLAS. blas.c is the only file that includes cblas.h.
 */
#ifndef ATTN_GEMM_BLAS_H
#define ATTN_GEMM_BLAS_H

#include "attn/plan.h"
#include "attn/tensor.h"

/*
 * y += x W for row-major float or double (dtype):
 *   x (rows, inner) with row stride x_stride; y (rows, columns) with row stride y_stride, initialised by the caller
 *   W (inner, columns) with row stride w_stride for ATTN_LAYOUT_IN_OUT; (columns, inner) for ATTN_LAYOUT_OUT_IN
 * Every size is at least 1 and at most DIMENSION_MAX (base/size.h): plan.c has checked it. Safe from several threads.
 */
void attn_blas_multiply_add(attn_dtype dtype, size_t rows, size_t columns, size_t inner, const void *x, size_t x_stride,
                            const void *w, size_t w_stride, attn_layout layout, void *y, size_t y_stride);

#endif
