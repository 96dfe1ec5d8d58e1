/* dense.c: what stands outside of the layers: a weight, and a normalisation. */
#include "model/dense.h"

#include "base/float_mode.h"
#include "base/parallel.h"
#include "layer/layer.h"

size_t attn_dense_width(const attn_affine *affine, attn_layout layout)
{
    if (affine->weight == NULL)
        return 0;
    return affine->weight->shape[layout == ATTN_LAYOUT_OUT_IN ? 0 : affine->weight->rank - 1];
}

static size_t scratch_bytes(const attn_kernel *kernel, const attn_affine *affine, attn_layout layout,
                            attn_dtype compute)
{
    return attn_products_scratch_bytes(kernel, compute, attn_narrow_inner(compute, layout, affine->weight));
}

size_t attn_dense_bytes(const attn_affine *affine, attn_layout layout, attn_dtype compute, size_t threads)
{
    return threads * scratch_bytes(NULL, affine, layout, compute) + ATTN_ALIGNMENT;
}

attn_status attn_dense(const attn_affine *affine, attn_layout layout, const attn_tensor *x, const attn_runtime *runtime,
                       attn_arena *arena, attn_tensor *y, attn_error *err)
{
    const size_t batch = x->rank == 3 ? x->shape[0] : 1, rows = x->shape[x->rank - 2], inner = x->shape[x->rank - 1],
                 width = attn_dense_width(affine, layout);
    char *data = attn_arena_take(arena, batch * rows * width, attn_dtype_bytes(x->dtype));
    char *scratch = attn_arena_take(arena, runtime->threads, scratch_bytes(runtime->kernel, affine, layout, x->dtype));
    if (data == NULL || scratch == NULL)
        return attn_fail_no_memory(err);
    struct attn_product product = {.x = x->data,
                                   .w = affine->weight->data,
                                   .bias = affine->bias != NULL ? affine->bias->data : NULL,
                                   .y = data,
                                   .dtype = affine->weight->dtype,
                                   .batch = batch,
                                   .rows = rows,
                                   .columns = width,
                                   .inner = inner,
                                   .w_stride = layout == ATTN_LAYOUT_OUT_IN ? inner : width,
                                   .y_stride = width};
    if (x->dtype == ATTN_F32)
        product.panels = attn_panels_from(runtime->kernel, layout, affine->weight, 0, &product.skip);
    attn_products_run(&product, 1, x->dtype, layout, runtime, scratch);
    *y = attn_tensor_view(data, x->dtype, 2, (const size_t[]){batch * rows, width});
    return attn_is_cancelled(runtime) ? attn_fail_stopped(err) : ATTN_OK;
}

/* ---- normalisation ---- */

attn_status attn_token_norm_run(const attn_token_norm *norm, const attn_tensor *input, const attn_runtime *runtime,
                                attn_arena *arena, attn_tensor *output, attn_error *err)
{
    *output = *input;
    if (norm->type != ATTN_NORM_NONE) {
        const struct attn_row_norm of_rows = attn_row_norm_of(norm->type, &norm->weights, norm->eps, input->shape[1]);
        output->data = attn_arena_take(arena, attn_tensor_count(input), attn_dtype_bytes(input->dtype));
        if (output->data == NULL)
            return attn_fail_no_memory(err);
        attn_rows_norm(&of_rows, input->dtype, input->shape[0], input->data, output->data, runtime);
    }
    return attn_is_cancelled(runtime) ? attn_fail_stopped(err) : ATTN_OK;
}

attn_status attn_norm_tokens(const attn_token_norm *norm, const attn_tensor *input, const attn_runtime *runtime,
                             attn_arena *arena, attn_tensor *output, attn_error *err)
{
    ATTN_FLOAT_MODE;
    return attn_token_norm_run(norm, input, runtime, arena, output, err);
}
