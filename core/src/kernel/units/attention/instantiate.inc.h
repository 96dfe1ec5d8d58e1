/*
 * instantiate.inc.h: the attention of a kernel, for one instruction set and one type. A translation unit includes f32.inc.h or
 * f64.inc.h and then this file. Before that it defines UNIT, the name of the table below, VECTOR_BYTES and REGISTER_ROWS as
 * kernel/units/instantiate.inc.h says.
 */
#ifndef ATTN_KERNEL_UNITS_ATTENTION_INSTANTIATE_INC_H
#define ATTN_KERNEL_UNITS_ATTENTION_INSTANTIATE_INC_H

#include "kernel/attend.inc.h"
#include "kernel/entries.h"

const struct attn_kernel_attention UNIT = {
    .attend = attend,
    .merge = merge,
    .scratch_bytes = scratch_bytes,
    .partials_bytes = partials_bytes,
};

#endif
