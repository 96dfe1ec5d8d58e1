/* patches.c: an image as a sequence of vectors, one for each patch. */
#include <string.h>

#include "attn/model.h"
#include "base/check.h"
#include "base/float_mode.h"
#include "model/dense.h"

/* The pixels of the patches, one patch a row, in the order (channel, y, x). */
static void unfold(const attn_patches *patches, const attn_tensor *pixels, char *to)
{
    const size_t height = pixels->shape[1], width = pixels->shape[2], side = patches->patch;
    const size_t element = attn_dtype_bytes(patches->compute);
    for (size_t top = 0; top < height; top += side)
        for (size_t left = 0; left < width; left += side)
            for (size_t channel = 0; channel < patches->channels; channel++)
                for (size_t y = top; y < top + side; y++, to += side * element)
                    memcpy(to, (const char *)pixels->data + ((channel * height + y) * width + left) * element,
                           side * element);
}

static attn_status check_pixels(const attn_patches *patches, const attn_tensor *pixels, attn_error *err)
{
    struct attn_check check = {.err = err};
    if (pixels->shape[0] != patches->channels)
        attn_refuse_shape(&check, "pixels", pixels, NULL, "an image has %zu channels, and the model takes %zu",
                          pixels->shape[0], patches->channels);
    else if (pixels->shape[1] % patches->patch != 0 || pixels->shape[2] % patches->patch != 0)
        attn_refuse_shape(&check, "pixels", pixels, NULL,
                          "an image of %zu x %zu pixels cannot be cut into patches of %zu x %zu", pixels->shape[1],
                          pixels->shape[2], patches->patch, patches->patch);
    return check.status;
}

static attn_status embed(const attn_patches *patches, const attn_tensor *pixels, const attn_runtime *runtime,
                         attn_arena *arena, attn_tensor *vectors, attn_error *err)
{
    const size_t side = patches->patch, inner = patches->channels * side * side;
    const size_t count = pixels->shape[1] / side * (pixels->shape[2] / side);
    const size_t element = attn_dtype_bytes(patches->compute),
                 d = attn_dense_width(&patches->kernel, ATTN_LAYOUT_OUT_IN);
    const size_t leading = patches->leading.data != NULL ? patches->leading.shape[0] : 0;
    char *rows = attn_arena_take(arena, count * inner, element);
    char *all = attn_arena_take(arena, (leading + count) * d, element);
    if (rows == NULL || all == NULL)
        return attn_fail_no_memory(err);
    unfold(patches, pixels, rows);
    const attn_tensor unfolded = attn_tensor_view(rows, patches->compute, 2, (const size_t[]){count, inner});
    attn_tensor embedded;
    attn_status status = attn_dense(&patches->kernel, ATTN_LAYOUT_OUT_IN, &unfolded, runtime, arena, &embedded, err);
    if (status == ATTN_OK && leading > 0)
        status = attn_convert(all, patches->compute, patches->leading.data, patches->leading.dtype, leading * d, err);
    if (status != ATTN_OK)
        return status;
    memcpy(all + leading * d * element, embedded.data, count * d * element);
    *vectors = attn_tensor_view(all, patches->compute, 2, (const size_t[]){leading + count, d});
    return ATTN_OK;
}

attn_status attn_embed_patches(const attn_patches *patches, const attn_tensor *pixels, const attn_runtime *runtime,
                               attn_arena *arena, attn_tensor *vectors, attn_error *err)
{
    const uint64_t mode = attn_float_mode_enter();
    attn_status status = check_pixels(patches, pixels, err);
    if (status == ATTN_OK)
        status = embed(patches, pixels, runtime, arena, vectors, err);
    attn_float_mode_leave(mode);
    return status;
}
