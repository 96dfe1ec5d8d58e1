/*
 * test_tensor_scan.c: tests of server/codec/tensor/scan.c.
 */
#include "codec/tensor/scan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check_main.h"

enum { ARENA_BYTES = 1 << 24 };

static attn_arena *arena;
static attn_error err;
static size_t at;

static void make_arena(void)
{
    arena = attn_arena_create(ARENA_BYTES);
    ck_assert_ptr_nonnull(arena);
}

static void destroy_arena(void)
{
    attn_arena_destroy(arena);
}

static struct lifted_text text_of(const char *text)
{
    struct lifted_text array = {text, strlen(text), 0};
    for (const char *c = text; *c; c++)
        array.commas += *c == ',';
    return array;
}

static attn_status scan(const char *text, attn_dtype dtype, attn_tensor *tensor)
{
    struct lifted_text array = text_of(text);
    err = (attn_error){0};
    return tensor_scan(&array, dtype, &(struct tensor_rules){0}, "/t", arena, tensor, &at, &err);
}

START_TEST(shape_follows_the_brackets)
{
    static const struct {
        const char *text;
        int rank;
        size_t shape[ATTN_MAX_RANK];
    } cases[] = {
        {"[1]", 1, {1}},
        {"[1,2,3]", 1, {3}},
        {"[[1,2,3],[4,5,6]]", 2, {2, 3}},
        {"[[[1],[2]]]", 3, {1, 2, 1}},
        {"[[[[1,2]],[[3,4]]],[[[5,6]],[[7,8]]],[[[9,10]],[[11,12]]]]", 4, {3, 2, 1, 2}},
        {"[ [ 1 , 2 ] ,\n\t[ 3 ,\r 4 ] ]", 2, {2, 2}},
        {"[]", 1, {0}},
        {"[[],[]]", 2, {2, 0}},
        {"[[[]]]", 3, {1, 1, 0}},
        {"[ ]", 1, {0}},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        attn_tensor tensor;
        ck_assert_msg(scan(cases[i].text, ATTN_F32, &tensor) == ATTN_OK, "%s: %s", cases[i].text, err.message);
        ck_assert_int_eq(tensor.rank, cases[i].rank);
        for (int d = 0; d < tensor.rank; d++)
            ck_assert_uint_eq(tensor.shape[d], cases[i].shape[d]);
        for (size_t n = 0; n < attn_tensor_count(&tensor); n++)
            ck_assert(((const float *)tensor.data)[n] >= 1);
    }
}
END_TEST

START_TEST(elements_come_in_the_order_of_the_text)
{
    attn_tensor tensor;
    ck_assert_int_eq(scan("[[0.1,-2e3],[1,0],[\"Infinity\",\"-Infinity\"],[\"NaN\",-0]]", ATTN_F32, &tensor), ATTN_OK);
    const float *values = tensor.data;
    ck_assert(values[0] == 0.1f && values[1] == -2000 && values[2] == 1 && values[3] == 0);
    ck_assert(isinf(values[4]) && values[4] > 0 && isinf(values[5]) && values[5] < 0);
    ck_assert(isnan(values[6]) && values[7] == 0 && signbit(values[7]));
}
END_TEST

START_TEST(words_of_python_and_null_are_numbers_where_they_may_be)
{
    attn_tensor tensor;
    ck_assert_int_eq(scan("[\"-inf\",\"inf\",\"nan\"]", ATTN_F64, &tensor), ATTN_OK);
    const double *values = tensor.data;
    ck_assert(isinf(values[0]) && values[0] < 0 && isinf(values[1]) && values[1] > 0 && isnan(values[2]));
    const struct lifted_text array = text_of("[[null,1],[2,null]]");
    ck_assert_int_eq(
        tensor_scan(&array, ATTN_F32, &(struct tensor_rules){.null_hides = true}, "/t", arena, &tensor, &at, &err),
        ATTN_OK);
    const float *scores = tensor.data;
    ck_assert(isinf(scores[0]) && scores[0] < 0 && scores[1] == 1 && scores[2] == 2 && scores[3] == scores[0]);
}
END_TEST

START_TEST(every_type_of_text_is_read)
{
    attn_tensor tensor;
    ck_assert_int_eq(scan("[0.1,1e300]", ATTN_F64, &tensor), ATTN_OK);
    ck_assert(((const double *)tensor.data)[0] == 0.1 && ((const double *)tensor.data)[1] == 1e300);
    ck_assert_int_eq(scan("[-3,9223372036854775807,1.0]", ATTN_I64, &tensor), ATTN_OK);
    const int64_t *counts = tensor.data;
    ck_assert(counts[0] == -3 && counts[1] == INT64_MAX && counts[2] == 1);
    ck_assert_int_eq(scan("[true,false,1,0,1.0]", ATTN_BOOL, &tensor), ATTN_OK);
    ck_assert_mem_eq(tensor.data, "\1\0\1\0\1", 5);
    ck_assert_int_eq(tensor.dtype, ATTN_BOOL);
}
END_TEST

struct refusal {
    const char *text;
    attn_dtype dtype;
    attn_status status;
    const char *pointer, *fragment, *expected, *received;
};

static const struct refusal refusals[] = {
    {"[[1,2,3],[4,5,6],[7,8]]", ATTN_F32, ATTN_ERR_SHAPE, "/t/2", "length 2, the first one 3", "3", "2"},
    {"[[1],[2,3]]", ATTN_F32, ATTN_ERR_SHAPE, "/t/1", "length 2", "1", "2"},
    {"[[[1],[2]],[[3]]]", ATTN_F32, ATTN_ERR_SHAPE, "/t/1", "length 1", "2", "1"},
    {"[[[1],[2]],[[3],[4,5]]]", ATTN_F32, ATTN_ERR_SHAPE, "/t/1/1", "length 2", "1", "2"},
    {"[[1],[]]", ATTN_F32, ATTN_ERR_SHAPE, "/t/1", "length 0", "1", "0"},
    {"[[],[1]]", ATTN_F32, ATTN_ERR_SHAPE, "/t/1", "length 1", "0", "1"},
    {"[[[1]],[]]", ATTN_F32, ATTN_ERR_SHAPE, "/t/1", "empty", "1", "0"},
    {"[[1],2]", ATTN_F32, ATTN_ERR_SHAPE, "/t/1", "received a number", "\"array\"", "\"number\""},
    {"[1,[2]]", ATTN_F32, ATTN_ERR_SHAPE, "/t/1", "received an array", "\"number\"", "\"array\""},
    {"[[1],[[2]]]", ATTN_F32, ATTN_ERR_SHAPE, "/t/1/0", "received an array", "\"number\"", "\"array\""},
    {"[[],[[1]]]", ATTN_F32, ATTN_ERR_SHAPE, "/t/1/0", "received an array", "\"number\"", "\"array\""},
    {"[[[[[1]]]]]", ATTN_F32, ATTN_ERR_SHAPE, "/t", "at most 4 levels", "", ""},
    {"[1,null]", ATTN_F32, ATTN_ERR_FIELD, "/t/1", "expected a number", "\"number\"", "null"},
    {"[[1,\"x\"]]", ATTN_F32, ATTN_ERR_FIELD, "/t/0/1", "expected a number", "\"number\"", "\"string\""},
    {"[1,{\"a\":1}]", ATTN_F32, ATTN_ERR_FIELD, "/t/1", "expected a number", "\"number\"", "\"object\""},
    {"[1,true]", ATTN_F32, ATTN_ERR_FIELD, "/t/1", "expected a number, received true", "\"number\"", "true"},
    {"[[true]]", ATTN_F64, ATTN_ERR_FIELD, "/t/0/0", "expected a number, received true", "\"number\"", "true"},
    {"[false]", ATTN_I64, ATTN_ERR_FIELD, "/t/0", "expected a number, received false", "\"number\"", "false"},
    {"[1,null]", ATTN_BOOL, ATTN_ERR_FIELD, "/t/1", "true, false, 0 or 1, received null", "\"boolean\"", "null"},
    {"[1,\"2\"]", ATTN_F32, ATTN_ERR_FIELD, "/t/1", "without quotes", "\"number\"", "\"string\""},
    {"[1,1e39]", ATTN_F32, ATTN_ERR_VALUE, "/t/1", "range of float32", "", ""},
    {"[1e999]", ATTN_F64, ATTN_ERR_VALUE, "/t/0", "range of float64", "", ""},
    {"[1.5]", ATTN_I64, ATTN_ERR_VALUE, "/t/0", "an integer, received 1.5", "", ""},
    {"[2,1e-1]", ATTN_I64, ATTN_ERR_VALUE, "/t/1", "an integer, received 1e-1", "", ""},
    {"[1e16]", ATTN_I64, ATTN_ERR_VALUE, "/t/0", "an integer, received 1e16", "", ""},
    {"[9223372036854775808]", ATTN_I64, ATTN_ERR_VALUE, "/t/0", "at most 9223372036854775807", "", ""},
    {"[-9223372036854775809]", ATTN_I64, ATTN_ERR_VALUE, "/t/0", "at least -9223372036854775808", "", ""},
    {"[1000000000000000000000000000000000000000000000000]", ATTN_I64, ATTN_ERR_VALUE, "/t/0", "0000…", "", ""},
    {"[\"NaN\"]", ATTN_I64, ATTN_ERR_VALUE, "/t/0", "integer", "", ""},
    {"[0,2]", ATTN_BOOL, ATTN_ERR_VALUE, "/t/1", "true, false, 0 or 1", "", ""},
    {"[\"NaN\"]", ATTN_BOOL, ATTN_ERR_VALUE, "/t/0", "true, false, 0 or 1", "", ""},
    {"[1,]", ATTN_F32, ATTN_ERR_SYNTAX, "/t/1", "no comma before a closing bracket", "", ""},
    {"[,1]", ATTN_F32, ATTN_ERR_SYNTAX, "/t/0", "missing", "", ""},
    {"[1,,2]", ATTN_F32, ATTN_ERR_SYNTAX, "/t/1", "missing", "", ""},
    {"[[1],]", ATTN_F32, ATTN_ERR_SYNTAX, "/t/1", "no comma before a closing bracket", "", ""},
    {"[[1],x]", ATTN_F32, ATTN_ERR_SYNTAX, "/t/1", "in double quotes", "", ""},
    {"[01]", ATTN_F32, ATTN_ERR_SYNTAX, "/t/0", "does not begin with 0", "", ""},
    {"[+1]", ATTN_F32, ATTN_ERR_SYNTAX, "/t/0", "without +", "", ""},
    {"[.5]", ATTN_F32, ATTN_ERR_SYNTAX, "/t/0", "digit before its point", "", ""},
    {"[-]", ATTN_F32, ATTN_ERR_SYNTAX, "/t/0", "digit behind its -", "", ""},
    {"[NaN]", ATTN_F32, ATTN_ERR_SYNTAX, "/t/0", "in quotes", "", ""},
    {"[-Infinity]", ATTN_F32, ATTN_ERR_SYNTAX, "/t/0", "in quotes", "", ""},
    {"[1\v]", ATTN_F32, ATTN_ERR_SYNTAX, "/t/1", "expected ','", "", ""},
    {"[1", ATTN_F32, ATTN_ERR_SYNTAX, "/t/1", "expected ','", "", ""},
    {"[", ATTN_F32, ATTN_ERR_SYNTAX, "/t/0", "missing", "", ""},
    {"[[1]", ATTN_F32, ATTN_ERR_SYNTAX, "/t/1", "expected ','", "", ""},
    {"[1]]", ATTN_F32, ATTN_ERR_SYNTAX, "/t", "end of the array", "", ""},
    {"[$1]", ATTN_F32, ATTN_ERR_SYNTAX, "/t/0", "not a JSON number", "", ""},
    {"[1,0x10]", ATTN_F32, ATTN_ERR_SYNTAX, "/t/1", "decimal numbers alone", "", ""},
    {"[1 2]", ATTN_F32, ATTN_ERR_SYNTAX, "/t/1", "a comma is missing", "", ""},
    {"[[1][2]]", ATTN_F32, ATTN_ERR_SYNTAX, "/t/1", "a comma is missing", "", ""},
    {"[nul]", ATTN_F32, ATTN_ERR_SYNTAX, "/t/0", "in double quotes", "", ""},
    {"1", ATTN_F32, ATTN_ERR_SYNTAX, "/t", "expected an array", "", ""},
    {"", ATTN_F32, ATTN_ERR_SYNTAX, "/t", "expected an array", "", ""},
    {"[1]", ATTN_U8, ATTN_ERR_FIELD, "/t", "uint8", "", ""},
};

START_TEST(refusals_name_the_element_and_say_what_is_wrong)
{
    const struct refusal *refusal = &refusals[_i];
    attn_tensor tensor = {.rank = 77};
    attn_status status = scan(refusal->text, refusal->dtype, &tensor);
    ck_assert_msg(status == refusal->status, "%s: %d %s", refusal->text, (int)status, err.message);
    ck_assert_int_eq(err.status, refusal->status);
    ck_assert_msg(strstr(err.message, refusal->fragment), "%s: %s", refusal->text, err.message);
    ck_assert_str_eq(err.field, refusal->pointer);
    ck_assert_str_eq(err.expected, refusal->expected);
    ck_assert_str_eq(err.received, refusal->received);
    ck_assert_int_eq(tensor.rank, 77);
}
END_TEST

/* text with a space behind every bracket and comma, where the quick ways from number to number and row to row end. */
static void spread(const char *text, size_t length, char *to)
{
    for (size_t i = 0; i < length; i++) {
        *to++ = text[i];
        if (strchr("[],", text[i]))
            *to++ = ' ';
    }
    *(to - (to[-1] == ' ')) = '\0'; /* behind the last bracket nothing may stand */
}

static void check_spread_alike(const char *text, size_t length)
{
    enum { TEXT_MAX = 200 };
    char compact[TEXT_MAX] = "", spread_out[TEXT_MAX];
    attn_tensor tensor, other;
    memcpy(compact, text, length);
    spread(text, length, spread_out);
    const attn_status status = scan(compact, ATTN_F32, &tensor);
    const attn_error error = err;
    ck_assert_msg(scan(spread_out, ATTN_F32, &other) == status, "%s: %s", compact, error.message);
    ck_assert_str_eq(err.field, error.field);
    ck_assert_str_eq(err.message, error.message);
    if (status != ATTN_OK)
        return;
    ck_assert_int_eq(tensor.rank, other.rank);
    ck_assert_mem_eq(tensor.shape, other.shape, (size_t)tensor.rank * sizeof *tensor.shape);
    ck_assert_mem_eq(tensor.data, other.data, attn_tensor_count(&tensor) * sizeof(float));
}

START_TEST(white_space_changes_neither_numbers_nor_refusals)
{
    static const char text[] = "[[[1,-2.5],[3,0.25]],[[5,6],[7,8e1]],[[9,10],[11.125,12]]]",
                      spoilers[] = "[],-.e05{t\"";
    const size_t length = strlen(text);
    check_spread_alike(text, length);
    for (size_t i = 0; i < length; i++) {
        char spoilt[sizeof text + 1];
        memcpy(spoilt, text, i);
        memcpy(spoilt + i, text + i + 1, length - i - 1);
        check_spread_alike(spoilt, length - 1);
        for (const char *spoiler = spoilers; *spoiler; spoiler++) {
            spoilt[i] = *spoiler;
            memcpy(spoilt + i + 1, text + i, length - i);
            check_spread_alike(spoilt, length + 1); /* inserted */
            memcpy(spoilt + i + 1, text + i + 1, length - i - 1);
            check_spread_alike(spoilt, length); /* put in the place of another */
        }
    }
}
END_TEST

START_TEST(a_syntax_error_tells_its_offset)
{
    attn_tensor tensor;
    ck_assert_int_eq(scan("[[1,2],\n[3,x]]", ATTN_F32, &tensor), ATTN_ERR_SYNTAX);
    ck_assert_uint_eq(at, 11);
}
END_TEST

START_TEST(deep_nesting_is_refused_without_recursion)
{
    enum { DEPTH = 1000000 };
    char *text = malloc(2 * DEPTH + 1);
    ck_assert_ptr_nonnull(text);
    memset(text, '[', DEPTH);
    memset(text + DEPTH, ']', DEPTH);
    text[2 * DEPTH] = '\0';
    attn_tensor tensor;
    ck_assert_int_eq(scan(text, ATTN_F32, &tensor), ATTN_ERR_SHAPE);
    free(text);
}
END_TEST

START_TEST(a_small_arena_is_a_clean_refusal)
{
    attn_arena *small = attn_arena_create(64);
    struct lifted_text array = text_of("[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]");
    attn_tensor tensor;
    ck_assert_int_eq(tensor_scan(&array, ATTN_F64, &(struct tensor_rules){0}, "/t", small, &tensor, &at, &err),
                     ATTN_ERR_NO_MEMORY);
    ck_assert_str_eq(err.field, "/t");
    ck_assert_int_eq(tensor_scan(&array, ATTN_F64, &(struct tensor_rules){0}, "/t", small, &tensor, &at, NULL),
                     ATTN_ERR_NO_MEMORY);
    attn_arena_destroy(small);
}
END_TEST

CHECK_MAIN("tensor_scan")
{
    tcase_add_checked_fixture(tests, make_arena, destroy_arena);
    tcase_add_test(tests, shape_follows_the_brackets);
    tcase_add_test(tests, elements_come_in_the_order_of_the_text);
    tcase_add_test(tests, words_of_python_and_null_are_numbers_where_they_may_be);
    tcase_add_test(tests, every_type_of_text_is_read);
    tcase_add_loop_test(tests, refusals_name_the_element_and_say_what_is_wrong, 0, COUNT(refusals));
    tcase_add_test(tests, white_space_changes_neither_numbers_nor_refusals);
    tcase_add_test(tests, a_syntax_error_tells_its_offset);
    tcase_add_test(tests, deep_nesting_is_refused_without_recursion);
    tcase_add_test(tests, a_small_arena_is_a_clean_refusal);
}
