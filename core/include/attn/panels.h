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

/*
 * data: [matrix][panel][feature][columns of a panel], one matrix if the weight has rank 2, aligned to ATTN_ALIGNMENT;
 * kernel and layout: whose panels they are, and how the tensor was read. Other kernels, requests with another layout,
 * and computations in another type than float32 use the tensor's own data.
 */
struct attn_panels {
    const attn_kernel *kernel;
    attn_layout layout;
    const void *data;
};

/*
 * Bytes of the panels of a weight in the layout; 0: the kernel uses none, or the weight is not float32, not contiguous,
 * or of a rank other than 2 and 3 (a matrix per head).
 */
size_t attn_panels_bytes(const attn_kernel *kernel, attn_layout layout, const attn_tensor *weight);

/*
 * Writes attn_panels_bytes of them, which is above 0, for runtime->kernel, by the threads of the runtime. What is
 * written depends on weight and layout alone.
 */
void attn_panels_write(const attn_runtime *runtime, attn_layout layout, const attn_tensor *weight, void *data);

#endif
