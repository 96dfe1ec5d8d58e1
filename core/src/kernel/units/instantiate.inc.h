/*
 * instantiate.inc.h: a kernel for one instruction set. Its translation unit (avx2.c and its siblings) is this file behind
 *
 *     KERNEL                  the name of the kernel
 *     VECTOR_BYTES            the size of a vector register
 *     REGISTER_ROWS           rows of a register tile, which is two vectors wide (matmul.inc.h)
 *     MULTIPLIES_FASTER       whether the kernel multiplies by a weight faster than the BLAS
 *
 * The Makefile compiles each unit four times, because each takes the compiler seconds: KERNEL_f32 or KERNEL_f64 is the
 * type, KERNEL_attention or KERNEL_rest is the part.
 */
#ifndef ATTN_KERNEL_UNITS_INSTANTIATE_INC_H
#define ATTN_KERNEL_UNITS_INSTANTIATE_INC_H

#include "kernel/vector/real.inc.h"

#if defined(KERNEL_f64)
#define TYPE f64
#else
#define TYPE f32
#endif
#define UNIT_OF(part, kernel, type) attn_##part##_##kernel##_##type
#define UNIT(part, kernel, type)    UNIT_OF(part, kernel, type)

#if defined(KERNEL_attention)
#include "kernel/attend.inc.h"
#include "kernel/entries.h"

const struct attn_kernel_attention UNIT(attention, KERNEL, TYPE) = {
    .attend = attend,
    .merge = merge,
    .scratch_bytes = scratch_bytes,
    .partials_bytes = partials_bytes,
};
#else
#include "kernel/dropout.inc.h"
#include "kernel/entries.h"
#include "kernel/features/gradient_keys.inc.h"
#include "kernel/features/queries.inc.h"
#include "kernel/products/backward.inc.h"
#include "kernel/products/gemm.inc.h"
#include "kernel/rows/activation.inc.h"
#include "kernel/rows/elementwise.inc.h"
#include "kernel/rows/norm.inc.h"
#include "kernel/rows/rotation.inc.h"
#if REAL_BITS == 32
#include "kernel/rows/weights.inc.h"
#endif

const struct attn_kernel_type UNIT(kernel, KERNEL, TYPE) = {
    .attention = &UNIT(attention, KERNEL, TYPE),
    .backward = {.row = backward_row,
                 .multiply = backward_multiply,
                 .pack = backward_pack,
                 .transpose = backward_transpose,
                 .sum = backward_sum,
                 .dot = backward_dot},
    .multiply = multiply,
    .activate = activate,
    .activate_back = activate_back,
    .norm = norm_rows,
    .norm_back = norm_row_back,
    .gate = gate_heads,
    .gate_back = gate_heads_back,
    .add_branch = add_branch,
    .mean = mean_rows,
    .weigh_norms = weigh_norms,
    .rotate = rotate,
    .dropout_keep = dropout_keep,
    .sum_squares = square_row,
    .map_keys = map_keys,
    .sum_keys = sum_keys,
    .prefix_sums = prefix_sums,
    .attend_features = attend_features,
    .pack_projection = pack_projection,
    .feature_scratch_bytes = feature_scratch_bytes,
    .feature_gradients = {.project_keys = project_gradient_keys,
                          .sum_keys = sum_gradient_keys,
                          .prefix_keys = prefix_gradient_keys,
                          .queries = queries_back,
                          .sum_queries = sum_gradient_queries,
                          .suffix_queries = suffix_gradient_queries,
                          .keys = keys_back,
                          .largest = largest_back,
                          .pack_projection = pack_gradient_projection,
                          .scratch_bytes = gradient_scratch_bytes},
    .multiplies_faster = MULTIPLIES_FASTER,
    .exp = exp_all,
#if REAL_BITS == 32
    .weigh_row = weigh_row,
    .pack_panel = pack_panel,
    .panel_columns = PANEL,
#endif
};
#endif

#endif
