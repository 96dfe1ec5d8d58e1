/* panels.c: weights packed once, in the order in which a kernel multiplies with them. */
#include "attn/panels.h"

#include "kernel/kernel.h"

/* W as y = x W wants it. */
static struct attn_linear_block block_of(attn_layout layout, const attn_tensor *weight)
{
    const bool is_in_out = layout == ATTN_LAYOUT_IN_OUT;
    return (struct attn_linear_block){
        .w = weight->data,
        .inner = weight->shape[is_in_out ? 0 : 1],
        .columns = weight->shape[is_in_out ? 1 : 0],
        .w_stride = weight->shape[1],
        .layout = layout,
    };
}

static size_t panels_of(const attn_kernel *kernel, const struct attn_linear_block *block)
{
    return (block->columns + kernel->panel_columns - 1) / kernel->panel_columns;
}

size_t attn_panels_bytes(const attn_kernel *kernel, attn_layout layout, const attn_tensor *weight)
{
    if (!kernel->multiplies_f32_faster || weight->dtype != ATTN_F32 || weight->rank != 2 ||
        !attn_tensor_is_contiguous(weight))
        return 0;
    const struct attn_linear_block block = block_of(layout, weight);
    return panels_of(kernel, &block) * kernel->panel_columns * block.inner * sizeof(float);
}

struct packing {
    const attn_kernel *kernel;
    struct attn_linear_block block;
    float *data;
};

static void pack_one(void *argument, size_t panel, size_t worker)
{
    const struct packing *packing = argument;
    const size_t width = packing->kernel->panel_columns, column = panel * width;
    struct attn_linear_block block = packing->block;
    (void)worker;
    block.w = (const float *)block.w + column * (block.layout == ATTN_LAYOUT_IN_OUT ? 1 : block.w_stride);
    block.columns = block.columns - column < width ? block.columns - column : width;
    packing->kernel->pack_f32(&block, packing->data + column * block.inner);
}

void attn_panels_write(const attn_runtime *runtime, attn_layout layout, const attn_tensor *weight, void *data)
{
    struct packing packing = {runtime->kernel, block_of(layout, weight), data};
    const size_t panels = panels_of(runtime->kernel, &packing.block);
    if (panels > 0)
        runtime->run(runtime->context, panels, pack_one, &packing);
}
