/* test_audio.c: frames of audio against loops in double. */
#include <check.h>
#include <math.h>

#include "attn/model.h"
#include "check_main.h"
#include "random.h"

static attn_arena *arena;
static attn_runtime runtime;
static attn_error err;

static void begin(void)
{
    arena = attn_arena_create(64 << 20);
    runtime = attn_runtime_serial(NULL);
}

static void end(void)
{
    attn_arena_destroy(arena);
}

static attn_tensor random_table(size_t rows, size_t columns, uint64_t seed)
{
    double *data = attn_arena_take(arena, rows * columns, sizeof *data);
    random_source random = random_seeded(seed);
    for (size_t i = 0; i < rows * columns; i++)
        data[i] = random_normal(&random);
    return attn_tensor_view(data, ATTN_F64, 2, (const size_t[]){rows, columns});
}

static double number(const attn_tensor *table, size_t row, size_t column)
{
    return ((const double *)table->data)[(ptrdiff_t)row * table->stride[0] + (ptrdiff_t)column * table->stride[1]];
}

START_TEST(a_convolution_follows_its_equation)
{
    enum { CHANNELS = 4, D = 3 };
    const size_t count = (size_t)_i % 5 + 1, stride = (size_t)_i / 5 + 1;
    const attn_tensor kernel = random_table(D, CHANNELS * 3, 1), flat = random_table(CHANNELS, count, 2);
    const attn_tensor bias = attn_tensor_view(random_table(1, D, 3).data, ATTN_F64, 1, (const size_t[]){D});
    attn_tensor frames = attn_tensor_view(flat.data, ATTN_F64, 2, (const size_t[]){count, CHANNELS}), vectors;
    frames.stride[0] = 1;
    frames.stride[1] = (ptrdiff_t)count;
    const attn_convolution convolution = {ATTN_F64, stride, {&kernel, &bias}};
    ck_assert_int_eq(attn_convolve(&convolution, &frames, &runtime, arena, &vectors, &err), ATTN_OK);
    ck_assert_uint_eq(vectors.shape[0], (count + stride - 1) / stride);
    for (size_t t = 0; t < vectors.shape[0]; t++)
        for (size_t f = 0; f < D; f++) {
            double sum = ((const double *)bias.data)[f];
            for (size_t c = 0; c < CHANNELS; c++)
                for (size_t u = 0; u < 3; u++)
                    if (t * stride + u >= 1 && t * stride + u <= count)
                        sum += number(&kernel, f, c * 3 + u) * number(&frames, t * stride + u - 1, c);
            ck_assert_double_eq_tol(number(&vectors, t, f), 0.5 * sum * (1 + erf(sum / sqrt(2))), 1e-12);
        }
}
END_TEST

/* ---- log-mel ---- */

static double mel_of(double hertz)
{
    return hertz < 1000 ? 3 * hertz / 200 : 15 + 27 * log(hertz / 1000) / log(6.4);
}

/* The frequency by halving, so that no inverse of the scale is needed. */
static double hertz_at(double mel)
{
    double low = 0, high = 20000;
    for (int i = 0; i < 100; i++) {
        const double middle = (low + high) / 2;
        if (mel_of(middle) < mel)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* F_m,k of the equation. */
static double filter_at(size_t m, size_t k, size_t mels)
{
    const double step = mel_of(8000) / (double)(mels + 1), f = 40 * (double)k;
    const double a = hertz_at(step * (double)m), b = hertz_at(step * (double)(m + 1)),
                 c = hertz_at(step * (double)(m + 2));
    const double height = f <= b ? (f - a) / (b - a) : (c - f) / (c - b);
    return f < a || f > c ? 0 : height * 2 / (c - a);
}

static double sound_at(const attn_tensor *samples, ptrdiff_t i, size_t whole)
{
    const ptrdiff_t last = (ptrdiff_t)whole - 1, place = i < 0 ? -i : i > last ? 2 * last - i : i;
    return place < (ptrdiff_t)samples->shape[0] ? (double)((const float *)samples->data)[place] : 0;
}

/* |X_t,k|^2 */
static double power_at(const attn_tensor *samples, size_t t, size_t k, size_t frames)
{
    const double pi = acos(-1);
    double real = 0, imaginary = 0;
    for (size_t n = 0; n < 400; n++) {
        const double x = (0.5 - 0.5 * cos(2 * pi * (double)n / 400)) *
                         sound_at(samples, (ptrdiff_t)(160 * t + n) - 200, 160 * frames);
        real += x * cos(2 * pi * (double)k * (double)n / 400);
        imaginary += x * sin(2 * pi * (double)k * (double)n / 400);
    }
    return real * real + imaginary * imaginary;
}

static attn_tensor random_sound(size_t count)
{
    float *data = attn_arena_take(arena, count, sizeof *data);
    random_source random = random_seeded(count);
    for (size_t i = 0; i < count; i++)
        data[i] = (float)(random_normal(&random) * (double)i / (double)count);
    return attn_tensor_view(data, ATTN_F32, 1, &count);
}

static const struct {
    size_t mels, frames, count;
} sounds[] = {{80, 3, 480}, {128, 3, 300}, {1, 2, 320}, {7, 4, 1}, {80, 2, 5000}};

START_TEST(log_mel_follows_its_equation)
{
    const size_t mels = sounds[_i].mels, frames = sounds[_i].frames;
    const attn_tensor sound = random_sound(sounds[_i].count);
    double *logs = attn_arena_take(arena, mels * frames, sizeof *logs), most = -100;
    attn_tensor features;
    ck_assert_int_eq(attn_log_mel(&sound, mels, frames, &runtime, arena, &features, &err), ATTN_OK);
    ck_assert_uint_eq(features.shape[0], mels);
    ck_assert_uint_eq(features.shape[1], frames);
    for (size_t t = 0; t < frames; t++)
        for (size_t m = 0; m < mels; m++) {
            double energy = 0;
            for (size_t k = 0; k <= 200; k++) {
                const double share = filter_at(m, k, mels);
                energy += share > 0 ? share * power_at(&sound, t, k, frames) : 0;
            }
            logs[m * frames + t] = log10(energy > 1e-10 ? energy : 1e-10);
            most = fmax(most, logs[m * frames + t]);
        }
    for (size_t i = 0; i < mels * frames; i++)
        ck_assert_double_eq_tol((double)((const float *)features.data)[i], (fmax(logs[i], most - 8) + 4) / 4, 1e-6);
}
END_TEST

START_TEST(log_mel_fits_the_bytes_that_it_says)
{
    const attn_tensor sound = random_sound(100);
    attn_arena *small = attn_arena_create(attn_log_mel_bytes(80, 4, 1) + (64 << 10));
    attn_tensor features;
    ck_assert_int_eq(attn_log_mel(&sound, 80, 4, &runtime, small, &features, &err), ATTN_OK);
    attn_arena_destroy(small);
    small = attn_arena_create(1 << 20);
    ck_assert_int_eq(attn_log_mel(&sound, 80, 4, &runtime, small, &features, &err), ATTN_ERR_NO_MEMORY);
    attn_arena_destroy(small);
}
END_TEST

CHECK_MAIN("audio")
{
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_loop_test(tests, log_mel_follows_its_equation, 0, COUNT(sounds));
    tcase_add_test(tests, log_mel_fits_the_bytes_that_it_says);
    tcase_add_loop_test(tests, a_convolution_follows_its_equation, 0, 15);
}
