/* blas.c: calls OpenBLAS, and narrows counts to its integer type. */
#include "gemm/gemm.h"

#include <assert.h>
#include <cblas.h>

#include "base/size.h"

static blasint narrow(size_t n)
{
    assert(n > 0 && n <= DIMENSION_MAX);
    return (blasint)n;
}

void attn_blas_multiply_add(attn_dtype dtype, size_t rows, size_t columns, size_t inner, const void *x, size_t x_stride,
                            const void *w, size_t w_stride, attn_layout layout, void *y, size_t y_stride)
{
    const CBLAS_TRANSPOSE transpose = layout == ATTN_LAYOUT_OUT_IN ? CblasTrans : CblasNoTrans;
    const blasint m = narrow(rows), n = narrow(columns), k = narrow(inner);
    const blasint ldx = narrow(x_stride), ldw = narrow(w_stride), ldy = narrow(y_stride);
    if (dtype == ATTN_F32)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, transpose, m, n, k, 1.0f, x, ldx, w, ldw, 1.0f, y, ldy);
    else
        cblas_dgemm(CblasRowMajor, CblasNoTrans, transpose, m, n, k, 1.0, x, ldx, w, ldw, 1.0, y, ldy);
}

void attn_blas_use_one_thread(void)
{
    float x[16] = {0}, y[16] = {0};
    openblas_set_num_threads(1);
    assert(openblas_get_num_threads() == 1);
    attn_blas_multiply_add(ATTN_F32, 4, 4, 4, x, 4, x, 4, ATTN_LAYOUT_IN_OUT, y, 4);
}

const char *attn_blas_description(void)
{
    return openblas_get_config();
}
