/* audio.c: from frames of audio to the input of the first layer. */
#include <string.h>

#include "attn/model.h"
#include "base/check.h"
#include "base/float_mode.h"
#include "base/parallel.h"
#include "base/size.h"
#include "layer/layer.h"
#include "model/dense.h"

/* ---- convolutions over time ---- */

enum { KERNEL = 3 /* frames */ };

struct gather_run {
    const attn_convolution *convolution;
    const attn_tensor *frames;
    char *to; /* (rows, channels, KERNEL) */
};

/* The frames that vector t is made of, channel by channel. */
static void gather_frames(void *argument, size_t t, size_t worker)
{
    (void)worker;
    const struct gather_run *run = argument;
    const attn_tensor *frames = run->frames;
    const size_t channels = frames->shape[1], element = attn_dtype_bytes(frames->dtype);
    for (size_t u = 0; u < KERNEL; u++) {
        const size_t place = t * run->convolution->stride + u; /* 1 is the first frame */
        const bool is_there = place >= 1 && place <= frames->shape[0];
        const char *from =
            is_there ? (const char *)frames->data + ((ptrdiff_t)place - 1) * frames->stride[0] * (ptrdiff_t)element
                     : NULL;
        for (size_t c = 0; c < channels; c++) {
            char *to = run->to + ((t * channels + c) * KERNEL + u) * element;
            if (is_there)
                memcpy(to, from + (ptrdiff_t)c * frames->stride[1] * (ptrdiff_t)element, element);
            else
                memset(to, 0, element);
        }
    }
}

static attn_status convolve(const attn_convolution *convolution, const attn_tensor *frames, const attn_runtime *runtime,
                            attn_arena *arena, attn_tensor *vectors, attn_error *err)
{
    const size_t rows = attn_ceil_div(frames->shape[0], convolution->stride), inner = frames->shape[1] * KERNEL;
    struct gather_run run = {convolution, frames,
                             attn_arena_take(arena, rows * inner, attn_dtype_bytes(convolution->compute))};
    if (run.to == NULL)
        return attn_fail_no_memory(err);
    attn_spread(runtime, rows, gather_frames, &run);
    const attn_tensor gathered = attn_tensor_view(run.to, convolution->compute, 2, (const size_t[]){rows, inner});
    const attn_status status =
        attn_dense(&convolution->kernel, ATTN_LAYOUT_OUT_IN, &gathered, runtime, arena, vectors, err);
    if (status == ATTN_OK)
        attn_numbers_activate(ATTN_ACTIVATION_GELU, vectors->dtype, attn_tensor_count(vectors), vectors->data, NULL,
                              vectors->data, runtime);
    return status == ATTN_OK && attn_is_cancelled(runtime) ? attn_fail_stopped(err) : status;
}

attn_status attn_convolve(const attn_convolution *convolution, const attn_tensor *frames, const attn_runtime *runtime,
                          attn_arena *arena, attn_tensor *vectors, attn_error *err)
{
    const uint64_t mode = attn_float_mode_enter();
    const attn_status status = convolve(convolution, frames, runtime, arena, vectors, err);
    attn_float_mode_leave(mode);
    return status;
}
