/*
 * panels.h: weights packed once, in the order in which a kernel multiplies with them.
 *
 * A layer that is used again and again need not have its weights put in order in every call: attn_tensor.panels refers
 * to a copy of them in panels. Results are the same bits with and without. Whoever makes them keeps them as long as the
 * tensor refers to them, and makes them anew when its numbers change. Several threads may use them at once.
 */
#ifndef ATTN_PANELS_H
#define ATTN_PANELS_H

#include "attn/plan.h"
#include "attn/runtime.h"

/*
 * data: [matrix][panel][feature][columns of a panel], one matrix if the weight has rank 2, aligned to ATTN_ALIGNMENT;
 * kernel and layout: whose panels they are, and how the tensor was read. Other kernels, requests with another layout,
 * and computations in another type than float32 leave them alone and use the tensor's own data.
 */
struct attn_panels {
    const attn_kernel *kernel;
    attn_layout layout;
    const void *data;
};

/*
 * Bytes of the panels of a weight in the layout; 0: the kernel does not use any, or weight is not float32, contiguous,
 * of rank 2, or 3 with a matrix a head.
 */
size_t attn_panels_bytes(const attn_kernel *kernel, attn_layout layout, const attn_tensor *weight);

/*
 * Writes attn_panels_bytes of them, which is above 0, for runtime->kernel, by the threads of the runtime. What is
 * written depends on weight and layout alone.
 */
void attn_panels_write(const attn_runtime *runtime, attn_layout layout, const attn_tensor *weight, void *data);

#endif
