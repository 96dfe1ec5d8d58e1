/*
 * test_tensor.c: tests core/src/base/tensor.c and core/src/base/convert.c.
 */
#include "attn/tensor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check_main.h"

START_TEST(every_dtype_is_found_by_its_name)
{
    for (int i = 0; i < (int)ATTN_DTYPE_COUNT; i++)
        ck_assert_int_eq((int)attn_dtype_from_name(attn_dtype_name((attn_dtype)i)), i);
    ck_assert_int_eq((int)attn_dtype_from_name("float"), (int)ATTN_DTYPE_COUNT);
    ck_assert_int_eq((int)attn_dtype_from_name(""), (int)ATTN_DTYPE_COUNT);
    ck_assert_uint_eq(attn_dtype_bytes(ATTN_BF16), 2);
    ck_assert_uint_eq(attn_dtype_bytes(ATTN_BOOL), 1);
    for (int i = (int)ATTN_DTYPE_COUNT; i >= -1; i -= (int)ATTN_DTYPE_COUNT + 1) {
        ck_assert_str_eq(attn_dtype_name((attn_dtype)i), "unknown");
        ck_assert_uint_eq(attn_dtype_bytes((attn_dtype)i), 0);
    }
}
END_TEST

START_TEST(a_view_is_row_major)
{
    float data[24];
    attn_tensor tensor = attn_tensor_view(data, ATTN_F32, 3, (const size_t[]){2, 3, 4});
    ck_assert_int_eq((int)tensor.stride[0], 12);
    ck_assert_int_eq((int)tensor.stride[1], 4);
    ck_assert_int_eq((int)tensor.stride[2], 1);
    ck_assert_uint_eq(attn_tensor_count(&tensor), 24);
    ck_assert(attn_tensor_is_contiguous(&tensor));
    attn_tensor scalar = attn_tensor_view(data, ATTN_F32, 0, NULL);
    ck_assert_uint_eq(attn_tensor_count(&scalar), 1);
    ck_assert(attn_tensor_is_contiguous(&scalar));
}
END_TEST

START_TEST(a_transposed_view_is_not_contiguous_but_strides_that_never_move_do_not_matter)
{
    float data[6];
    attn_tensor tensor = attn_tensor_view(data, ATTN_F32, 2, (const size_t[]){3, 2});
    tensor.stride[0] = 1;
    tensor.stride[1] = 3;
    ck_assert(!attn_tensor_is_contiguous(&tensor));
    tensor = attn_tensor_view(data, ATTN_F32, 2, (const size_t[]){1, 6});
    tensor.stride[0] = 77;
    ck_assert(attn_tensor_is_contiguous(&tensor));
    tensor = attn_tensor_view(data, ATTN_F32, 2, (const size_t[]){0, 6});
    tensor.stride[1] = 5;
    ck_assert(attn_tensor_is_contiguous(&tensor));
}
END_TEST

START_TEST(shape_text_is_a_json_array_and_always_terminated)
{
    char text[100];
    ck_assert_str_eq(attn_shape_text(text, sizeof text, 2, (const size_t[]){2, 3}), "[2,3]");
    ck_assert_str_eq(attn_shape_text(text, sizeof text, 0, NULL), "[]");
    const size_t large[] = {SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX};
    ck_assert_uint_eq(strlen(attn_shape_text(text, sizeof text, 4, large)), 4 * 20 + 5);
    ck_assert_str_eq(attn_shape_text(text, 4, 4, large), "[18");
}
END_TEST

START_TEST(shape_count_refuses_what_does_not_fit)
{
    size_t count = 99;
    ck_assert(attn_shape_count(0, NULL, &count));
    ck_assert_uint_eq(count, 1);
    ck_assert(attn_shape_count(3, (const size_t[]){2, 3, 4}, &count));
    ck_assert_uint_eq(count, 24);
    ck_assert(!attn_shape_count(2, (const size_t[]){SIZE_MAX, 2}, &count));
    ck_assert(attn_shape_count(3, (const size_t[]){SIZE_MAX, 2, 0}, &count));
    ck_assert_uint_eq(count, 0);
}
END_TEST

static uint16_t narrowed(double value, attn_dtype dtype)
{
    uint16_t half;
    ck_assert_int_eq(attn_convert(&half, dtype, &value, ATTN_F64, 1, NULL), ATTN_OK);
    return half;
}

static double widened(uint16_t half, attn_dtype dtype)
{
    double value;
    ck_assert_int_eq(attn_convert(&value, ATTN_F64, &half, dtype, 1, NULL), ATTN_OK);
    return value;
}

START_TEST(float16_has_the_values_of_ieee_754)
{
    ck_assert_double_eq(widened(0x3C00, ATTN_F16), 1.0);
    ck_assert_double_eq(widened(0xC000, ATTN_F16), -2.0);
    ck_assert_double_eq(widened(0x7BFF, ATTN_F16), 65504.0);
    ck_assert_double_eq(widened(0x0001, ATTN_F16), 0x1p-24);
    ck_assert_double_eq(widened(0x0400, ATTN_F16), 0x1p-14);
    ck_assert(signbit(widened(0x8000, ATTN_F16)) != 0);
    ck_assert_double_eq(widened(0x7C00, ATTN_F16), (double)INFINITY);
    ck_assert(isnan(widened(0x7E00, ATTN_F16)));
    ck_assert_double_eq(widened(0x3F80, ATTN_BF16), 1.0);
    ck_assert_double_eq(widened(0x0001, ATTN_BF16), 0x1p-133);
    ck_assert_double_eq(widened(0xFF80, ATTN_BF16), (double)-INFINITY);
}
END_TEST

/* The step above half; every number between rounds to the nearer of the two, the middle to the even one. */
static void check_step(uint16_t half, attn_dtype dtype, double infinity_at)
{
    double low = widened(half, dtype);
    double high = widened((uint16_t)(half + 1), dtype);
    if (isinf(high))
        high = infinity_at;
    double middle = low + (high - low) / 2;
    uint16_t even = (uint16_t)(half + (half & 1));
    ck_assert_uint_eq(narrowed(low, dtype), half);
    ck_assert_uint_eq(narrowed(nextafter(middle, 0), dtype), half);
    if (isinf(widened((uint16_t)(half + 1), dtype)))
        return;
    ck_assert_uint_eq(narrowed(middle, dtype), even);
    ck_assert_uint_eq(narrowed(-middle, dtype), even | 0x8000u);
    ck_assert_uint_eq(narrowed(nextafter(middle, high), dtype), half + 1u);
}

START_TEST(every_float16_survives_and_every_middle_goes_to_even)
{
    for (uint16_t half = 0; half < 0x7C00; half++)
        check_step(half, ATTN_F16, 65536.0);
}
END_TEST

START_TEST(every_bfloat16_survives_and_every_middle_goes_to_even)
{
    for (uint16_t half = 0; half < 0x7F80; half++)
        check_step(half, ATTN_BF16, 0x1p128);
}
END_TEST

START_TEST(half_precision_becomes_single_as_it_becomes_double)
{
    for (int i = 0; i < 2; i++)
        for (uint32_t half = 0; half <= UINT16_MAX; half++) {
            const attn_dtype dtype = i == 0 ? ATTN_F16 : ATTN_BF16;
            const uint16_t bits = (uint16_t)half;
            const double wanted = widened(bits, dtype);
            float got;
            ck_assert_int_eq(attn_convert(&got, ATTN_F32, &bits, dtype, 1, NULL), ATTN_OK);
            ck_assert_msg(isnan(wanted) ? isnan(got) : (double)got == wanted && !signbit(got) == !signbit(wanted),
                          "%#x", half);
        }
}
END_TEST

enum { SINGLES = 300 };

/* Converts singles alone, and beside a NaN: a block with one is converted without the instructions of the CPU. */
static void check_singles(float from[SINGLES])
{
    uint16_t to[SINGLES], wanted[SINGLES];
    double wide[SINGLES];
    for (int turn = 0; turn < 2; turn++) {
        if (turn == 1)
            from[0] = from[SINGLES - 1] = NAN;
        for (int i = 0; i < SINGLES; i++)
            wide[i] = (double)from[i];
        ck_assert_int_eq(attn_convert(to, ATTN_F16, from, ATTN_F32, SINGLES, NULL), ATTN_OK);
        ck_assert_int_eq(attn_convert(wanted, ATTN_F16, wide, ATTN_F64, SINGLES, NULL), ATTN_OK);
        ck_assert_mem_eq(to, wanted, sizeof to);
    }
}

START_TEST(float32_becomes_float16_as_float64_does)
{
    float from[SINGLES] = {0}, single;
    size_t count = 0;
    for (uint64_t at = 0; at <= UINT32_MAX; at += 4093) { /* infinities and NaN, too */
        const uint32_t bits = (uint32_t)at;
        memcpy(&single, &bits, sizeof single);
        if (isfinite(single) && fabsf(single) >= 65520)
            continue;
        from[count++ % SINGLES] = single;
        if (count % SINGLES == 0)
            check_singles(from);
    }
    for (uint16_t half = 0; half < 0x7BFF; half++) {
        const double low = widened(half, ATTN_F16), high = widened((uint16_t)(half + 1), ATTN_F16);
        const float middle = (float)((low + high) / 2),
                    near[] = {(float)low, nextafterf(middle, 0), middle, nextafterf(middle, 1e9F)};
        for (size_t i = 0; i < 2 * COUNT(near); i++)
            from[count++ % SINGLES] = i % 2 == 0 ? near[i / 2] : -near[i / 2];
        if (count % SINGLES < 2 * COUNT(near))
            check_singles(from);
    }
}
END_TEST

START_TEST(narrowing_rounds_once_and_keeps_infinity_nan_and_the_sign_of_zero)
{
    /* Just above the middle of 1 and its successor in float16; by way of float32 it would fall on that middle. */
    ck_assert_uint_eq(narrowed(1 + 0x1p-11 + 0x1p-40, ATTN_F16), 0x3C01);
    ck_assert_uint_eq(narrowed(1 + 0x1p-8 + 0x1p-40, ATTN_BF16), 0x3F81);
    for (int i = 0; i < 2; i++) {
        attn_dtype dtype = i == 0 ? ATTN_F16 : ATTN_BF16;
        ck_assert_double_eq(widened(narrowed((double)INFINITY, dtype), dtype), (double)INFINITY);
        ck_assert_double_eq(widened(narrowed((double)-INFINITY, dtype), dtype), (double)-INFINITY);
        ck_assert(isnan(widened(narrowed((double)NAN, dtype), dtype)));
        ck_assert_uint_eq(narrowed(-1e-300, dtype), 0x8000);
        ck_assert_uint_eq(narrowed(0, dtype), 0);
        ck_assert_uint_eq(narrowed(-0.0, dtype), 0x8000);
        ck_assert_uint_eq(narrowed(0x1p-1074, dtype), 0);
    }
}
END_TEST

/* The largest number of each type, and the least magnitude that is too large for it: half a step above. */
START_TEST(a_finite_number_stays_finite_or_is_refused)
{
    static const struct {
        attn_dtype to;
        double largest, refused;
    } types[] = {
        {ATTN_F32, 0x1.fffffep127, 0x1.ffffffp127}, {ATTN_F16, 65504, 65520}, {ATTN_BF16, 0x1.fep127, 0x1.ffp127}};
    for (size_t t = 0; t < COUNT(types); t++)
        for (int sign = -1; sign <= 1; sign += 2) {
            double from[300] = {[297] = (double)NAN, [298] = sign * HUGE_VAL}, back[300];
            float to[300];
            attn_error err = {.status = ATTN_OK};
            from[299] = nextafter(sign * types[t].refused, 0);
            ck_assert_int_eq(attn_convert(to, types[t].to, from, ATTN_F64, 300, &err), ATTN_OK);
            ck_assert_int_eq(attn_convert(back, ATTN_F64, to, types[t].to, 300, &err), ATTN_OK);
            ck_assert(isnan(back[297]) && back[298] == sign * HUGE_VAL && back[299] == sign * types[t].largest);
            from[299] = sign * types[t].refused;
            ck_assert_int_eq(attn_convert(to, types[t].to, from, ATTN_F64, 300, &err), ATTN_ERR_VALUE);
            ck_assert_ptr_nonnull(strstr(err.message, "element 299"));
            ck_assert_ptr_nonnull(strstr(err.message, "is beyond the range of"));
        }
}
END_TEST

START_TEST(arrays_longer_than_a_block_convert_whole)
{
    enum { COUNT = 1000 };
    float from[COUNT], back[COUNT];
    double wide[COUNT];
    for (int i = 0; i < COUNT; i++)
        from[i] = (float)i * 0.3f - 100.0f;
    ck_assert_int_eq(attn_convert(wide, ATTN_F64, from, ATTN_F32, COUNT, NULL), ATTN_OK);
    ck_assert_int_eq(attn_convert(back, ATTN_F32, wide, ATTN_F64, COUNT, NULL), ATTN_OK);
    ck_assert_mem_eq(back, from, sizeof from);
    ck_assert_int_eq(attn_convert(back, ATTN_F32, from, ATTN_F32, COUNT, NULL), ATTN_OK);
    ck_assert_mem_eq(back, from, sizeof from);
    ck_assert_int_eq(attn_convert(NULL, ATTN_F32, NULL, ATTN_F32, 0, NULL), ATTN_OK);
}
END_TEST

START_TEST(a_float_becomes_bool_by_not_being_zero)
{
    const float from[] = {0.0f, -0.0f, 1.0f, 0x1p-149f, NAN, -INFINITY};
    const uint8_t expected[] = {0, 0, 1, 1, 1, 1};
    uint8_t to[6];
    ck_assert_int_eq(attn_convert(to, ATTN_BOOL, from, ATTN_F32, 6, NULL), ATTN_OK);
    ck_assert_mem_eq(to, expected, sizeof to);
}
END_TEST

START_TEST(a_float_to_an_integer_is_refused)
{
    attn_error err;
    double value = 1;
    int64_t to;
    ck_assert_int_eq(attn_convert(&to, ATTN_I64, &value, ATTN_F64, 1, &err), ATTN_ERR_FIELD);
    ck_assert_ptr_nonnull(strstr(err.message, "float64 does not become int64"));
}
END_TEST

START_TEST(a_dtype_that_does_not_exist_is_refused)
{
    attn_error err;
    double value = 1, to;
    ck_assert_int_eq(attn_convert(&to, ATTN_F64, &value, (attn_dtype)77, 1, &err), ATTN_ERR_FIELD);
    ck_assert_str_eq(err.message, "expected an attn_dtype, got 77");
    ck_assert_int_eq(attn_convert(&to, (attn_dtype)78, &value, ATTN_F64, 1, &err), ATTN_ERR_FIELD);
    ck_assert_str_eq(err.message, "expected an attn_dtype, got 78");
}
END_TEST

struct integer_case {
    int64_t value;
    attn_dtype to;
    attn_status expected;
};

static const struct integer_case INTEGER_CASES[] = {
    {255, ATTN_U8, ATTN_OK},
    {256, ATTN_U8, ATTN_ERR_VALUE},
    {-1, ATTN_U8, ATTN_ERR_VALUE},
    {1, ATTN_BOOL, ATTN_OK},
    {2, ATTN_BOOL, ATTN_ERR_VALUE},
    {INT32_MIN, ATTN_I32, ATTN_OK},
    {(int64_t)INT32_MAX + 1, ATTN_I32, ATTN_ERR_VALUE},
    {(1 << 24), ATTN_F32, ATTN_OK},
    {(1 << 24) + 1, ATTN_F32, ATTN_ERR_VALUE},
    {-(1 << 24) - 2, ATTN_F32, ATTN_OK},
    {INT64_MIN, ATTN_F32, ATTN_OK},
    {INT64_MAX, ATTN_F64, ATTN_ERR_VALUE},
    {INT64_MIN, ATTN_F64, ATTN_OK},
    {65504, ATTN_F16, ATTN_OK},
    {65536, ATTN_F16, ATTN_ERR_VALUE},
    {2049, ATTN_F16, ATTN_ERR_VALUE},
    {256, ATTN_BF16, ATTN_OK},
    {257, ATTN_BF16, ATTN_ERR_VALUE},
    {INT64_MIN, ATTN_I64, ATTN_OK},
};

START_TEST(integers_convert_exactly_or_are_refused)
{
    const struct integer_case *c = &INTEGER_CASES[_i];
    char to[8];
    attn_error err = {.status = ATTN_OK};
    ck_assert_int_eq(attn_convert(to, c->to, &c->value, ATTN_I64, 1, &err), c->expected);
    ck_assert_int_eq(err.status, c->expected);
    double back = 0;
    if (c->expected == ATTN_OK && c->to != ATTN_I64) {
        ck_assert_int_eq(attn_convert(&back, ATTN_F64, to, c->to, 1, NULL), ATTN_OK);
        ck_assert_double_eq(back, (double)c->value);
    }
}
END_TEST

START_TEST(bool_and_uint8_become_floats)
{
    const uint8_t from[] = {0, 1, 200};
    float to[3];
    ck_assert_int_eq(attn_convert(to, ATTN_F32, from, ATTN_U8, 3, NULL), ATTN_OK);
    ck_assert_double_eq((double)to[2], 200.0);
    ck_assert_int_eq(attn_convert(to, ATTN_F32, from, ATTN_BOOL, 3, NULL), ATTN_OK);
    ck_assert_double_eq((double)to[2], 1.0);
}
END_TEST

CHECK_MAIN("tensor")
{
    tcase_add_test(tests, every_dtype_is_found_by_its_name);
    tcase_add_test(tests, a_view_is_row_major);
    tcase_add_test(tests, a_transposed_view_is_not_contiguous_but_strides_that_never_move_do_not_matter);
    tcase_add_test(tests, shape_text_is_a_json_array_and_always_terminated);
    tcase_add_test(tests, shape_count_refuses_what_does_not_fit);
    tcase_add_test(tests, float16_has_the_values_of_ieee_754);
    tcase_add_test(tests, every_float16_survives_and_every_middle_goes_to_even);
    tcase_add_test(tests, every_bfloat16_survives_and_every_middle_goes_to_even);
    tcase_add_test(tests, half_precision_becomes_single_as_it_becomes_double);
    tcase_add_test(tests, float32_becomes_float16_as_float64_does);
    tcase_add_test(tests, narrowing_rounds_once_and_keeps_infinity_nan_and_the_sign_of_zero);
    tcase_add_test(tests, a_finite_number_stays_finite_or_is_refused);
    tcase_add_test(tests, arrays_longer_than_a_block_convert_whole);
    tcase_add_test(tests, a_float_becomes_bool_by_not_being_zero);
    tcase_add_test(tests, a_float_to_an_integer_is_refused);
    tcase_add_test(tests, a_dtype_that_does_not_exist_is_refused);
    tcase_add_loop_test(tests, integers_convert_exactly_or_are_refused, 0, COUNT(INTEGER_CASES));
    tcase_add_test(tests, bool_and_uint8_become_floats);
}
