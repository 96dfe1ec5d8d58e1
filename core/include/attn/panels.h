/*
 * panels.h: weights packed once, in the order in which a kernel multiplies with them.
 *
 * For a layer that is used many times, attn_tensor.panels refers to a packed copy of a weight, so that a call does not
 * pack it. Results are the same bits with and without panels. The caller keeps the panels as long as a tensor refers to
 * them, and writes them again when the weight changes. Several threads may use them at once.
 */
#ifndef ATTN_PANELS_H
#define ATTN_PANELS_H

#include "attn/plan.h"
#include "attn/runtime.h"

ATTN_BEGIN_C

/*
 * data is [matrix][panel][feature][columns of a panel], aligned to ATTN_ALIGNMENT; a weight of rank 2 is one matrix. Its
 * numbers have the type of the weight, so that panels of 16 bits take no more memory than the weight.
 * The panels belong to one kernel, and were packed from the tensor in one layout. Other kernels, requests with another
 * layout, and computations in another type than float32 use the tensor's own data.
 */
struct attn_panels {
    const attn_kernel *kernel;
    attn_layout layout;
    const void *data;
};

/*
 * Bytes of the panels of a weight in the layout; 0: the kernel uses none, or the weight is not float32, float16 or
 * bfloat16, not contiguous, or of a rank other than 2 and 3 (a matrix per head).
 */
size_t attn_panels_bytes(const attn_kernel *kernel, attn_layout layout, const attn_tensor *weight);

/*
 * Writes attn_panels_bytes bytes, which must be above 0, for runtime->kernel. The threads of the runtime share the
 * work. For one kernel, the bytes depend on weight and layout alone. The threads ask the runtime before each panel and
 * within long ones whether the work is cancelled: then panels are missing, and the caller must not use data.
 */
void attn_panels_write(const attn_runtime *runtime, attn_layout layout, const attn_tensor *weight, void *data);

ATTN_END_C

#endif
