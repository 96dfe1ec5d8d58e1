/* audio.c: from sound to frames of log-mel numbers, and from frames to the input of the first layer. */
#include <math.h>
#include <string.h>

#include "attn/model.h"
#include "base/check.h"
#include "base/float_mode.h"
#include "base/number.h"
#include "base/parallel.h"
#include "base/size.h"
#include "layer/layer.h"
#include "model/dense.h"

/* ---- log-mel ---- */

enum { WINDOW = 400, HOP = ATTN_AUDIO_HOP, BINS = WINDOW / 2 + 1 };

static const double TURN = 6.283185307179586; /* 2 pi */

/* Row k has the window times cos(2 pi k n / WINDOW), row BINS + k times the sine. */
static void make_transform(double *rows)
{
    for (size_t k = 0; k < BINS; k++)
        for (size_t n = 0; n < WINDOW; n++) {
            const double angle = TURN * (double)(k * n % WINDOW) / WINDOW;
            const double weight = 0.5 - 0.5 * cos(TURN * (double)n / WINDOW);
            rows[k * WINDOW + n] = weight * cos(angle);
            rows[(BINS + k) * WINDOW + n] = weight * sin(angle);
        }
}

/* Slaney's scale: 3 mel for 200 Hz up to 1 kHz, and then 27 mel for a factor of 6.4. */
static double hertz_of(double mel)
{
    return mel < 15 ? mel * 200 / 3 : 1000 * exp((mel - 15) * log(6.4) / 27);
}

/* Triangles with an area of 1 between neighbours but one of mels + 2 places from 0 to half the rate. */
static void make_filters(size_t mels, double *rows)
{
    const double half = ATTN_AUDIO_RATE / 2.0, step = (15 + log(half / 1000) * 27 / log(6.4)) / (double)(mels + 1);
    for (size_t m = 0; m < mels; m++) {
        const double low = hertz_of(step * (double)m), middle = hertz_of(step * (double)(m + 1)),
                     high = hertz_of(step * (double)(m + 2));
        for (size_t k = 0; k < BINS; k++) {
            const double hertz = half * (double)k / (BINS - 1);
            const double side = fmin((hertz - low) / (middle - low), (high - hertz) / (high - middle));
            rows[m * BINS + k] = fmax(side, 0) * 2 / (high - low);
        }
    }
}

/* Sample i of the sound, which silence fills up to count. It is mirrored at both ends. */
static double sample_at(const attn_tensor *samples, size_t count, ptrdiff_t i)
{
    const size_t place = i < 0 ? (size_t)-i : (size_t)i < count ? (size_t)i : 2 * (count - 1) - (size_t)i;
    return place < samples->shape[0] ? attn_number_get(samples->data, samples->dtype, place) : 0;
}

static void cut_frames(const attn_tensor *samples, size_t frames, double *rows)
{
    for (size_t t = 0; t < frames; t++)
        for (size_t n = 0; n < WINDOW; n++)
            rows[t * WINDOW + n] = sample_at(samples, frames * HOP, (ptrdiff_t)(t * HOP + n) - WINDOW / 2);
}

/* The squares of sines and cosines, in the first BINS columns of each row. */
static void add_squares(size_t frames, const double *spectrum, double *power)
{
    for (size_t t = 0; t < frames; t++)
        for (size_t k = 0; k < BINS; k++) {
            const double *row = spectrum + t * 2 * BINS;
            power[t * BINS + k] = row[k] * row[k] + row[BINS + k] * row[BINS + k];
        }
}

/* to[m][t] of energy[t][m]. */
static void write_logs(const attn_tensor *energy, attn_tensor *to)
{
    const size_t frames = energy->shape[0], mels = energy->shape[1];
    double *numbers = energy->data, most = -HUGE_VAL;
    for (size_t i = 0; i < frames * mels; i++) {
        numbers[i] = log10(fmax(numbers[i], 1e-10));
        most = fmax(most, numbers[i]);
    }
    for (size_t m = 0; m < mels; m++)
        for (size_t t = 0; t < frames; t++)
            attn_number_put(to->data, to->dtype, m * frames + t, (fmax(numbers[t * mels + m], most - 8) + 4) / 4);
}

size_t attn_log_mel_bytes(size_t mels, size_t frames, size_t threads)
{
    const attn_tensor filters = attn_tensor_view(NULL, ATTN_F64, 2, (const size_t[]){mels, BINS});
    const attn_affine affine = {.weight = &filters};
    const size_t tables = (2 * WINDOW + mels) * BINS, rows = frames * (WINDOW + 3 * BINS + 2 * mels);
    return (tables + rows) * sizeof(double) + 2 * attn_dense_bytes(&affine, ATTN_LAYOUT_OUT_IN, ATTN_F64, threads) +
           8 * ATTN_ALIGNMENT;
}

static attn_status multiply(double *weight, size_t width, size_t inner, size_t rows, double *x,
                            const attn_runtime *runtime, attn_arena *arena, attn_tensor *y, attn_error *err)
{
    const attn_tensor matrix = attn_tensor_view(weight, ATTN_F64, 2, (const size_t[]){width, inner}),
                      input = attn_tensor_view(x, ATTN_F64, 2, (const size_t[]){rows, inner});
    return attn_dense(&(attn_affine){.weight = &matrix}, ATTN_LAYOUT_OUT_IN, &input, runtime, arena, y, err);
}

attn_status attn_log_mel(const attn_tensor *samples, size_t mels, size_t frames, const attn_runtime *runtime,
                         attn_arena *arena, attn_tensor *features, attn_error *err)
{
    ATTN_FLOAT_MODE;
    double *transform = attn_arena_take(arena, (size_t)2 * BINS * WINDOW, sizeof *transform);
    double *filters = attn_arena_take(arena, mels * BINS, sizeof *filters);
    double *rows = attn_arena_take(arena, frames * WINDOW, sizeof *rows);
    double *power = attn_arena_take(arena, frames * BINS, sizeof *power);
    void *data = attn_arena_take(arena, mels * frames, attn_dtype_bytes(samples->dtype));
    attn_tensor spectrum, energy;
    if (transform == NULL || filters == NULL || rows == NULL || power == NULL || data == NULL)
        return attn_fail_no_memory(err);
    make_transform(transform);
    make_filters(mels, filters);
    cut_frames(samples, frames, rows);
    attn_status status = multiply(transform, 2 * BINS, WINDOW, frames, rows, runtime, arena, &spectrum, err);
    if (status != ATTN_OK)
        return status;
    add_squares(frames, spectrum.data, power);
    status = multiply(filters, mels, BINS, frames, power, runtime, arena, &energy, err);
    *features = attn_tensor_view(data, samples->dtype, 2, (const size_t[]){mels, frames});
    if (status == ATTN_OK)
        write_logs(&energy, features);
    return status;
}

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

attn_status attn_convolve(const attn_convolution *convolution, const attn_tensor *frames, const attn_runtime *runtime,
                          attn_arena *arena, attn_tensor *vectors, attn_error *err)
{
    ATTN_FLOAT_MODE;
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
