/*
 * instantiate.inc.h: a kernel for one instruction set and one type. A translation unit (avx2_f32.c and its siblings)
 * includes f32.inc.h or f64.inc.h and then this file. Before that it defines
 *
 *     UNIT                    the name of the table below
 *     VECTOR_BYTES            the size of a vector register
 *     REGISTER_ROWS           rows of a register tile (matmul.inc.h)
 *     REGISTER_VECTORS        vectors per row of a register tile
 *     MULTIPLIES_FASTER       whether the kernel multiplies by a weight faster than the BLAS
 *     BLAS_UP_TO_ROWS_OUT_IN  the most rows for which the BLAS is faster with a weight in the layout out_in
 */
#ifndef ATTN_KERNEL_INSTANTIATE_INC_H
#define ATTN_KERNEL_INSTANTIATE_INC_H

#include "kernel/activation.inc.h"
#include "kernel/attend.inc.h"
#include "kernel/backward.inc.h"
#include "kernel/gemm.inc.h"
#include "kernel/kernel.h"
#if REAL_BITS == 32
#include "kernel/weights.inc.h"
#endif

const struct attn_kernel_type UNIT = {
    .attend = attend,
    .merge = merge,
    .scratch_bytes = scratch_bytes,
    .partials_bytes = partials_bytes,
    .backward_row = backward_row,
    .multiply = multiply,
    .activate = activate,
    .multiplies_faster = MULTIPLIES_FASTER,
    .blas_up_to_rows_out_in = BLAS_UP_TO_ROWS_OUT_IN,
    .exp = exp_all,
#if REAL_BITS == 32
    .weigh_row = weigh_row,
    .pack_panel = pack_panel,
    .panel_columns = PANEL,
#endif
};

#endif
