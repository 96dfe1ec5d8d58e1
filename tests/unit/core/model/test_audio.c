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

CHECK_MAIN("audio")
{
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_loop_test(tests, a_convolution_follows_its_equation, 0, 15);
}
