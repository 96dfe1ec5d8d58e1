/*
 * test_float_mode.c: tests core/src/base/float_mode.h: flush-to-zero and denormals-are-zero of the caller change no
 * number.
 */
#include "base/float_mode.h"

#include <check.h>
#include <math.h>
#include <string.h>

#include "attn/gradient.h"
#include "attn/multihead.h"
#include "attn/tensor.h"
#include "check_main.h"

enum { KEYS = 40, FEATURES = 3, ROOM = 1 << 24 };

/* FTZ, DAZ and rounding towards zero, as far as this processor has them. */
static void set_wild_mode(void)
{
#if defined(__x86_64__)
    attn_float_mode_leave(0x1F80 | 0x8000 | 0x0040 | 0x6000);
#elif defined(__aarch64__)
    attn_float_mode_leave(UINT64_C(1) << 24 | UINT64_C(3) << 22);
#endif
}

START_TEST(every_half_is_widened_alike)
{
    for (int which = 0; which < 2; which++)
        for (uint32_t half = 0; half <= UINT16_MAX; half++) {
            const attn_dtype dtype = which == 0 ? ATTN_F16 : ATTN_BF16;
            const uint16_t bits = (uint16_t)half;
            float tame, wild;
            double tame_wide, wild_wide;
            ck_assert_int_eq(attn_convert(&tame, ATTN_F32, &bits, dtype, 1, NULL), ATTN_OK);
            ck_assert_int_eq(attn_convert(&tame_wide, ATTN_F64, &bits, dtype, 1, NULL), ATTN_OK);
            set_wild_mode();
            const attn_status status = attn_convert(&wild, ATTN_F32, &bits, dtype, 1, NULL);
            const attn_status wide_status = attn_convert(&wild_wide, ATTN_F64, &bits, dtype, 1, NULL);
            (void)attn_float_mode_enter();
            ck_assert(status == ATTN_OK && wide_status == ATTN_OK);
            ck_assert_msg(memcmp(&tame, &wild, sizeof tame) == 0 &&
                              memcmp(&tame_wide, &wild_wide, sizeof wild_wide) == 0,
                          "%#x of type %d", half, which);
        }
}
END_TEST

/* Values far below the normal numbers, and weights that are so too: the last keys lie up to 100 below the first. */
static void fill(float *query, float *key, float *value, size_t queries)
{
    for (size_t at = 0; at < queries * FEATURES; at++)
        query[at] = 1 + (float)at / 7;
    for (size_t at = 0; at < KEYS * FEATURES; at++) {
        key[at] = -(float)(at / FEATURES) * 1.3f;
        value[at] = at / FEATURES < 2 ? 1e-40f * (float)(at + 1) : (float)at;
    }
}

static void run(size_t queries, const attn_runtime *runtime, bool is_wild, float *out, float *grad)
{
    float query[16 * FEATURES], key[KEYS * FEATURES], value[KEYS * FEATURES];
    fill(query, key, value, queries);
    attn_tensor q = attn_tensor_view(query, ATTN_F32, 2, (size_t[]){queries, FEATURES});
    attn_tensor k = attn_tensor_view(key, ATTN_F32, 2, (size_t[]){KEYS, FEATURES});
    attn_tensor v = attn_tensor_view(value, ATTN_F32, 2, (size_t[]){KEYS, FEATURES});
    attn_request request = {.inputs = {.query = &q, .key = &k, .value = &v}};
    request.options.want = ATTN_STEP_BIT(ATTN_STEP_OUTPUT);
    const attn_gradient_request backward = {.request = &request, .grad_output = &q};
    attn_gradient_plan plan;
    attn_gradient_result result;
    attn_arena *arena = attn_arena_create(ROOM);
    ck_assert_int_eq(attn_gradient_plan_make(&backward, &plan, NULL), ATTN_OK);
    if (is_wild)
        set_wild_mode();
    const attn_status status = attn_gradient_run(&plan, NULL, runtime, arena, &result, NULL);
    const uint64_t mode = attn_float_mode_enter();
    ck_assert_int_eq(status, ATTN_OK);
    memcpy(out, result.forward.step[ATTN_STEP_OUTPUT].data, queries * FEATURES * sizeof *out);
    memcpy(grad, result.gradient[ATTN_GRADIENT_KEY].data, KEYS * FEATURES * sizeof *grad);
    if (is_wild) {
        set_wild_mode(); /* the run left with the mode it found; flags of exceptions aside */
        const uint64_t own = attn_float_mode_enter();
#if defined(__x86_64__)
        ck_assert_uint_eq(own & 0xFFC0, mode & 0xFFC0);
#else
        ck_assert_uint_eq(own, mode);
#endif
    }
    attn_arena_destroy(arena);
}

static void expect_same(size_t queries, const attn_runtime *runtime)
{
    float tame[16 * FEATURES], wild[16 * FEATURES], tame_grad[KEYS * FEATURES], wild_grad[KEYS * FEATURES];
    run(queries, runtime, false, tame, tame_grad);
    run(queries, runtime, true, wild, wild_grad);
    ck_assert_mem_eq(tame, wild, queries * FEATURES * sizeof *tame);
    ck_assert_mem_eq(tame_grad, wild_grad, sizeof tame_grad);
}

START_TEST(a_run_gives_the_same_bytes)
{
    const attn_kernel *kernel;
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++)
        for (size_t queries = 2; queries <= 16; queries += 14) {
            const attn_runtime runtime = attn_runtime_serial(kernel);
            expect_same(queries, &runtime);
        }
}
END_TEST

/* Threads inherit the mode of the thread that makes them. */
START_TEST(so_do_the_threads_of_a_pool)
{
    set_wild_mode();
    attn_pool *pool = attn_pool_create(&(attn_pool_options){.threads = 2}, NULL);
    (void)attn_float_mode_enter();
    const attn_runtime runtime = attn_pool_runtime(pool, NULL), serial = attn_runtime_serial(NULL);
    float pooled[16 * FEATURES], alone[16 * FEATURES], pooled_grad[KEYS * FEATURES], alone_grad[KEYS * FEATURES];
    run(16, &runtime, false, pooled, pooled_grad);
    run(16, &serial, false, alone, alone_grad);
    ck_assert_mem_eq(pooled, alone, sizeof pooled);
    ck_assert_mem_eq(pooled_grad, alone_grad, sizeof pooled_grad);
    attn_pool_destroy(pool);
}
END_TEST

static void multiply_tiny(void *argument, size_t index, size_t worker)
{
    volatile float *number = argument;
    (void)worker;
    number[index] *= 0.5f;
}

START_TEST(so_does_a_caller_that_works_along)
{
    volatile float numbers[2] = {1e-39f, 1e-39f};
    attn_pool *pool = attn_pool_create(&(attn_pool_options){.threads = 1, .caller_works = true}, NULL);
    const attn_runtime runtime = attn_pool_runtime(pool, NULL);
    set_wild_mode();
    runtime.run(runtime.context, 2, multiply_tiny, (void *)(uintptr_t)numbers);
    (void)attn_float_mode_enter();
    ck_assert(numbers[0] > 0 && numbers[1] > 0);
    attn_pool_destroy(pool);
}
END_TEST

CHECK_MAIN("float mode")
{
    tcase_add_test(tests, every_half_is_widened_alike);
    tcase_add_test(tests, a_run_gives_the_same_bytes);
    tcase_add_test(tests, so_do_the_threads_of_a_pool);
    tcase_add_test(tests, so_does_a_caller_that_works_along);
}
