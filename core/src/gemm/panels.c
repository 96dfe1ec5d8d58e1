/* panels.c: weights packed once, in the order in which a kernel multiplies with them. */
#include "attn/panels.h"

#include "base/parallel.h"
#include "base/size.h"
#include "gemm/gemm.h"

/* W in the orientation of y = x W: the whole weight of rank 2, or the first matrix of rank 3. */
static struct attn_gemm_block block_of(attn_layout layout, const attn_tensor *weight)
{
    const bool is_in_out = layout == ATTN_LAYOUT_IN_OUT;
    const size_t *shape = weight->shape + weight->rank - 2;
    return (struct attn_gemm_block){
        .w = weight->data,
        .dtype = weight->dtype,
        .inner = shape[is_in_out ? 0 : 1],
        .columns = shape[is_in_out ? 1 : 0],
        .w_stride = shape[1],
        .layout = layout,
    };
}

static size_t panels_of(const attn_kernel *kernel, const struct attn_gemm_block *block)
{
    return attn_ceil_div(block->columns, kernel->f32->panel_columns);
}

static size_t matrices_of(const attn_tensor *weight)
{
    return weight->rank == 3 ? weight->shape[0] : 1;
}

size_t attn_panels_bytes(const attn_kernel *kernel, attn_layout layout, const attn_tensor *weight)
{
    const bool is_half = weight->dtype == ATTN_F16 || weight->dtype == ATTN_BF16;
    if (!kernel->f32->multiplies_faster || (weight->dtype != ATTN_F32 && !is_half) ||
        (weight->rank != 2 && weight->rank != 3) || !attn_tensor_is_contiguous(weight))
        return 0;
    const struct attn_gemm_block block = block_of(layout, weight);
    const size_t each =
        panels_of(kernel, &block) * kernel->f32->panel_columns * block.inner * attn_dtype_bytes(weight->dtype);
    size_t all;
    return __builtin_mul_overflow(matrices_of(weight), each, &all) ? 0 : all;
}

enum { PACKED_FEATURES = 1 << 12 }; /* at once */

struct packing {
    const attn_runtime *runtime;
    struct attn_gemm_block block;
    size_t panels; /* of a matrix */
    char *data;
};

static void pack_one(void *argument, size_t index, size_t worker)
{
    const struct packing *packing = argument;
    const attn_kernel *kernel = packing->runtime->kernel;
    const size_t width = kernel->f32->panel_columns, matrix = index / packing->panels;
    struct attn_gemm_block block = packing->block;
    const size_t column = index % packing->panels * width, number = attn_dtype_bytes(block.dtype);
    (void)worker;
    const size_t first =
        matrix * block.inner * block.columns + column * (block.layout == ATTN_LAYOUT_IN_OUT ? 1 : block.w_stride);
    block.w = (const char *)block.w + first * number;
    block.columns = attn_min(block.columns - column, width);
    char *data = packing->data + index * width * block.inner * number;
    const size_t feature_stride = block.layout == ATTN_LAYOUT_IN_OUT ? block.w_stride : 1;
    struct attn_pace pace = attn_pace_begin(packing->runtime);
    for (size_t left = block.inner; left > 0; left -= block.inner) {
        block.inner = attn_min(left, PACKED_FEATURES);
        if (attn_pace_stops(&pace, block.inner * width))
            return;
        kernel->f32->pack_panel(&block, data);
        block.w = (const char *)block.w + block.inner * feature_stride * number;
        data += block.inner * width * number;
    }
}

void attn_panels_write(const attn_runtime *runtime, attn_layout layout, const attn_tensor *weight, void *data)
{
    struct packing packing = {.runtime = runtime, .block = block_of(layout, weight), .data = data};
    packing.panels = panels_of(runtime->kernel, &packing.block);
    attn_spread(runtime, matrices_of(weight) * packing.panels, pack_one, &packing);
}

const void *attn_panels_from(const attn_kernel *kernel, attn_layout layout, const attn_tensor *weight, size_t column,
                             size_t *skip)
{
    const struct attn_panels *panels = weight->panels;
    *skip = 0;
    if (panels == NULL || panels->kernel != kernel || panels->layout != layout)
        return NULL;
    const struct attn_gemm_block block = block_of(layout, weight);
    const size_t width = kernel->f32->panel_columns;
    if (weight->rank == 3) /* each matrix begins with a panel */
        column = column / block.columns * panels_of(kernel, &block) * width;
    *skip = column % width;
    return (const char *)panels->data + (column - *skip) * block.inner * attn_dtype_bytes(weight->dtype);
}
