/*
 * test_tensor_write.c: tests server/codec/tensor/write.c against a plain recursive writer.
 */
#include "codec/tensor/write.h"

#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "codec/bytes/base64.h"
#include "codec/number/number.h"

static const size_t ARENA_BYTES = (size_t)256 << 20;
static const struct tensor_style NESTED = {.form = TENSOR_FORM_NESTED};
static const struct tensor_style FLAT = {.form = TENSOR_FORM_FLAT};
static const struct tensor_style BASE64 = {.form = TENSOR_FORM_BASE64};

static void run_forwards(void *context, size_t tasks, attn_task *task, void *argument)
{
    (void)context;
    for (size_t i = 0; i < tasks; i++)
        task(argument, i, 0);
}

static void run_backwards(void *context, size_t tasks, attn_task *task, void *argument)
{
    (void)context;
    for (size_t i = tasks; i-- > 0;)
        task(argument, i, i % 2);
}

/* Two threads that share the tasks evenly. */
struct share {
    size_t tasks, first;
    attn_task *task;
    void *argument;
};

static void *run_share(void *argument)
{
    struct share *share = argument;
    for (size_t i = share->first; i < share->tasks; i += 2)
        share->task(share->argument, i, share->first);
    return NULL;
}

static void run_in_two_threads(void *context, size_t tasks, attn_task *task, void *argument)
{
    (void)context;
    struct share mine = {tasks, 0, task, argument}, theirs = {tasks, 1, task, argument};
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, run_share, &theirs), 0);
    run_share(&mine);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

static const attn_runtime SERIAL = {.threads = 1, .run = run_forwards};

/* All text of chunks, to be freed. */
static char *join(const struct chunks *chunks)
{
    char *text = malloc(chunks->total_bytes + 1);
    size_t used = 0;
    for (const struct chunk *chunk = chunks->first; chunk != NULL; chunk = chunk->next) {
        memcpy(text + used, chunk->data, chunk->length);
        used += chunk->length;
    }
    ck_assert_uint_eq(used, chunks->total_bytes);
    text[used] = '\0';
    return text;
}

/* The text of a tensor, to be freed; never longer than the bound. */
static char *write_text(const attn_tensor *tensor, const struct tensor_style *style, const attn_runtime *runtime)
{
    attn_arena *arena = attn_arena_create(ARENA_BYTES);
    struct chunks chunks = chunks_begin(arena);
    tensor_write_json(tensor, style, runtime, &chunks);
    ck_assert(chunks.is_ok);
    ck_assert_uint_le(chunks.total_bytes, tensor_write_bound(tensor, style));
    char *text = join(&chunks);
    attn_arena_destroy(arena);
    return text;
}

static void check_text(const attn_tensor *tensor, const struct tensor_style *style, const char *expected)
{
    char *text = write_text(tensor, style, &SERIAL);
    ck_assert_str_eq(text, expected);
    free(text);
}

/* Appends the float32 element, row or whole tensor at data; the definition of the nested form. */
static char *naive_nested(char *to, const attn_tensor *tensor, int level, const float *data)
{
    if (level == tensor->rank || level == ATTN_MAX_RANK)
        return number_write_f32(to, *data);
    *to++ = '[';
    for (size_t i = 0; i < tensor->shape[level]; i++) {
        if (i > 0)
            *to++ = ',';
        to = naive_nested(to, tensor, level + 1, data + (ptrdiff_t)i * tensor->stride[level]);
    }
    *to++ = ']';
    return to;
}

static float *random_floats(size_t count)
{
    float *data = malloc((count + 1) * sizeof *data);
    uint32_t random = 12345;
    for (size_t i = 0; i < count; i++) {
        random = random * 1664525u + 1013904223u;
        data[i] = (float)(random >> 8) / (float)(1u << (i % 30)) - 3.0f;
    }
    return data;
}

START_TEST(nested_text_has_one_bracket_per_dimension)
{
    float data[] = {1, 0.5f, -2, 3, 4, 1e-9f};
    attn_tensor tensor = attn_tensor_view(data, ATTN_F32, 2, (const size_t[]){3, 2});
    check_text(&tensor, &NESTED, "[[1,0.5],[-2,3],[4,1e-9]]");
    tensor = attn_tensor_view(data, ATTN_F32, 3, (const size_t[]){1, 2, 3});
    check_text(&tensor, &NESTED, "[[[1,0.5,-2],[3,4,1e-9]]]");
    tensor = attn_tensor_view(data, ATTN_F32, 4, (const size_t[]){2, 1, 3, 1});
    check_text(&tensor, &NESTED, "[[[[1],[0.5],[-2]]],[[[3],[4],[1e-9]]]]");
    tensor = attn_tensor_view(data, ATTN_F32, 1, (const size_t[]){2});
    check_text(&tensor, &NESTED, "[1,0.5]");
    tensor = attn_tensor_view(data, ATTN_F32, 0, NULL);
    check_text(&tensor, &NESTED, "1");
}
END_TEST

START_TEST(flat_text_has_shape_and_data)
{
    float data[] = {1, 0.5f, -2, 3, 4, 1e-9f};
    attn_tensor tensor = attn_tensor_view(data, ATTN_F32, 2, (const size_t[]){3, 2});
    check_text(&tensor, &FLAT, "{\"shape\":[3,2],\"data\":[1,0.5,-2,3,4,1e-9]}");
    tensor = attn_tensor_view(data, ATTN_F32, 0, NULL);
    check_text(&tensor, &FLAT, "{\"shape\":[],\"data\":[1]}");
    tensor = attn_tensor_view(data, ATTN_F32, 2, (const size_t[]){2, 0});
    check_text(&tensor, &FLAT, "{\"shape\":[2,0],\"data\":[]}");
}
END_TEST

START_TEST(base64_text_has_shape_dtype_and_little_endian_bytes)
{
    float data[] = {1, -2};
    attn_tensor tensor = attn_tensor_view(data, ATTN_F32, 2, (const size_t[]){1, 2});
    check_text(&tensor, &BASE64, "{\"shape\":[1,2],\"dtype\":\"float32\",\"base64\":\"AACAPwAAAMA=\"}");
    uint8_t bools[] = {0, 1, 7};
    tensor = attn_tensor_view(bools, ATTN_BOOL, 1, (const size_t[]){3});
    check_text(&tensor, &BASE64, "{\"shape\":[3],\"dtype\":\"bool\",\"base64\":\"AAEB\"}");
    int64_t integer = -2;
    tensor = attn_tensor_view(&integer, ATTN_I64, 0, NULL);
    check_text(&tensor, &BASE64, "{\"shape\":[],\"dtype\":\"int64\",\"base64\":\"/v////////8=\"}");
    tensor = attn_tensor_view(NULL, ATTN_F64, 1, (const size_t[]){0});
    check_text(&tensor, &BASE64, "{\"shape\":[0],\"dtype\":\"float64\",\"base64\":\"\"}");
}
END_TEST

START_TEST(dimensions_of_zero_are_empty_arrays)
{
    static const struct {
        int rank;
        size_t shape[4];
        const char *expected;
    } CASES[] = {
        {1, {0}, "[]"},
        {2, {0, 3}, "[]"},
        {2, {2, 0}, "[[],[]]"},
        {3, {2, 0, 5}, "[[],[]]"},
        {3, {2, 2, 0}, "[[[],[]],[[],[]]]"},
        {4, {1, 1, 1, 0}, "[[[[]]]]"},
        {4, {0, 0, 0, 0}, "[]"},
    };
    for (size_t i = 0; i < COUNT(CASES); i++) {
        attn_tensor tensor = attn_tensor_view(NULL, ATTN_F32, CASES[i].rank, CASES[i].shape);
        check_text(&tensor, &NESTED, CASES[i].expected);
    }
}
END_TEST

START_TEST(what_json_cannot_write_is_a_string_or_null)
{
    float data[] = {NAN, INFINITY, -INFINITY, -0.0f};
    attn_tensor tensor = attn_tensor_view(data, ATTN_F32, 1, (const size_t[]){4});
    struct tensor_style style = NESTED;
    check_text(&tensor, &style, "[\"NaN\",\"Infinity\",\"-Infinity\",-0]");
    style.null_for_minus_infinity = true;
    check_text(&tensor, &style, "[\"NaN\",\"Infinity\",null,-0]");
    double wide[] = {(double)-INFINITY, 0.1};
    tensor = attn_tensor_view(wide, ATTN_F64, 1, (const size_t[]){2});
    check_text(&tensor, &style, "[null,0.1]");
    style.form = TENSOR_FORM_BASE64;
    tensor = attn_tensor_view(data + 2, ATTN_F32, 0, NULL);
    check_text(&tensor, &style, "{\"shape\":[],\"dtype\":\"float32\",\"base64\":\"AACA/w==\"}");
}
END_TEST

START_TEST(every_dtype_of_a_result_has_its_text)
{
    int64_t integers[] = {INT64_MIN, -1, 0, INT64_MAX};
    attn_tensor tensor = attn_tensor_view(integers, ATTN_I64, 1, (const size_t[]){4});
    check_text(&tensor, &NESTED, "[-9223372036854775808,-1,0,9223372036854775807]");
    uint8_t bools[] = {1, 0, 200};
    tensor = attn_tensor_view(bools, ATTN_BOOL, 1, (const size_t[]){3});
    check_text(&tensor, &NESTED, "[true,false,true]");
    double wide[] = {1.0 / 3, 1e300};
    tensor = attn_tensor_view(wide, ATTN_F64, 1, (const size_t[]){2});
    check_text(&tensor, &NESTED, "[0.3333333333333333,1e300]");
}
END_TEST

START_TEST(digits_round_every_number)
{
    double wide[] = {1.0 / 3, 123456, 0.1};
    attn_tensor tensor = attn_tensor_view(wide, ATTN_F64, 1, (const size_t[]){3});
    check_text(&tensor, &(struct tensor_style){.form = TENSOR_FORM_NESTED, .digits = 3}, "[0.333,123000,0.1]");
    float narrow[] = {1.0f / 3, 0.1f};
    tensor = attn_tensor_view(narrow, ATTN_F32, 1, (const size_t[]){2});
    check_text(&tensor, &(struct tensor_style){.form = TENSOR_FORM_NESTED, .digits = 17},
               "[0.3333333432674408,0.10000000149011612]");
}
END_TEST

START_TEST(strides_are_followed)
{
    float data[] = {0, 1, 2, 3, 4, 5};
    attn_tensor tensor = attn_tensor_view(data, ATTN_F32, 2, (const size_t[]){3, 2});
    tensor.stride[0] = 1;
    tensor.stride[1] = 3;
    check_text(&tensor, &NESTED, "[[0,3],[1,4],[2,5]]");
    tensor.stride[0] = 0;
    tensor.stride[1] = -1;
    tensor.data = data + 5;
    check_text(&tensor, &NESTED, "[[5,4],[5,4],[5,4]]");
    check_text(&tensor, &BASE64,
               "{\"shape\":[3,2],\"dtype\":\"float32\",\"base64\":\"AACgQAAAgEAAAKBAAACAQAAAoEAAAIBA\"}");
}
END_TEST

struct shape_case {
    int rank;
    size_t shape[4];
};

/* Around the sizes of blocks (252), pieces (2016) and waves, and with rows of 1 to many. */
static const struct shape_case SHAPES[] = {
    {1, {1}},
    {1, {251}},
    {1, {252}},
    {1, {253}},
    {1, {16128}},
    {2, {252, 64}},
    {2, {40001, 1}},
    {2, {1, 40001}},
    {3, {17, 1, 1009}},
    {4, {3, 5, 41, 67}},
    {4, {2, 127, 127, 1}},
    {4, {1, 1, 64, 1024}},
    {4, {4, 2, 1, 8064}},
};

START_TEST(the_text_is_that_of_the_naive_writer_for_any_runtime)
{
    const struct shape_case *c = &SHAPES[_i];
    size_t count;
    ck_assert(attn_shape_count(c->rank, c->shape, &count));
    float *data = random_floats(count);
    char *expected = malloc(count * 30 + 100);
    attn_tensor tensor = attn_tensor_view(data, ATTN_F32, c->rank, c->shape);
    *naive_nested(expected, &tensor, 0, data) = '\0';
    check_text(&tensor, &NESTED, expected);
    char *base64 = write_text(&tensor, &BASE64, &SERIAL), *flat = write_text(&tensor, &FLAT, &SERIAL);
    static const attn_runtime RUNTIMES[] = {{.threads = 2, .run = run_backwards},
                                            {.threads = 3, .run = run_forwards},
                                            {.threads = 200, .run = run_backwards},
                                            {.threads = 2, .run = run_in_two_threads}};
    for (size_t i = 0; i < COUNT(RUNTIMES); i++) {
        char *text = write_text(&tensor, &NESTED, &RUNTIMES[i]);
        ck_assert_str_eq(text, expected);
        free(text);
        text = write_text(&tensor, &FLAT, &RUNTIMES[i]);
        ck_assert_str_eq(text, flat);
        free(text);
        text = write_text(&tensor, &BASE64, &RUNTIMES[i]);
        ck_assert_str_eq(text, base64);
        free(text);
    }
    free(flat);
    free(base64);
    free(expected);
    free(data);
}
END_TEST

START_TEST(base64_of_a_large_tensor_decodes_to_its_bytes)
{
    enum { COUNT = 200000 };
    float *data = random_floats(COUNT);
    attn_tensor tensor = attn_tensor_view(data, ATTN_F32, 1, (const size_t[]){COUNT});
    char *text = write_text(&tensor, &BASE64, &(attn_runtime){.threads = 2, .run = run_in_two_threads});
    char *start = strstr(text, "\"base64\":\"") + strlen("\"base64\":\"");
    size_t length = strcspn(start, "\""), bytes, bad;
    ck_assert(base64_decoded_length(start, length, &bytes));
    ck_assert_uint_eq(bytes, COUNT * sizeof *data);
    float *back = malloc(bytes);
    ck_assert(base64_decode(back, start, length, &(struct pace){.bytes = 0}, &bad));
    ck_assert_mem_eq(back, data, bytes);
    free(back);
    free(text);
    free(data);
}
END_TEST

START_TEST(a_transposed_large_tensor_is_written_in_its_own_order)
{
    enum { ROWS = 300, COLUMNS = 70 };
    float *data = random_floats(ROWS * COLUMNS);
    attn_tensor tensor = attn_tensor_view(data, ATTN_F32, 2, (const size_t[]){ROWS, COLUMNS});
    tensor.stride[0] = 1;
    tensor.stride[1] = ROWS;
    char *expected = malloc(ROWS * COLUMNS * 30);
    *naive_nested(expected, &tensor, 0, data) = '\0';
    char *text = write_text(&tensor, &NESTED, &(attn_runtime){.threads = 2, .run = run_in_two_threads});
    ck_assert_str_eq(text, expected);
    free(text);
    free(expected);
    free(data);
}
END_TEST

static void check_writes_in_the_end(const struct tensor_style *style, const attn_runtime *runtime, size_t step)
{
    enum { COUNT = 20000 };
    float *data = random_floats(COUNT);
    attn_tensor tensor = attn_tensor_view(data, ATTN_F32, 2, (const size_t[]){COUNT / 100, 100});
    char *expected = write_text(&tensor, style, &SERIAL);
    bool is_done = false;
    for (size_t limit = 0; !is_done; limit += step) {
        ck_assert_uint_lt(limit, (size_t)2 << 20);
        attn_arena *arena = attn_arena_create(limit);
        struct chunks chunks = chunks_begin(arena);
        tensor_write_json(&tensor, style, runtime, &chunks);
        is_done = chunks.is_ok;
        if (is_done) {
            char *text = join(&chunks);
            ck_assert_str_eq(text, expected);
            free(text);
        }
        attn_arena_destroy(arena);
    }
    free(expected);
    free(data);
}

START_TEST(without_memory_writing_fails_cleanly_and_with_more_it_succeeds)
{
    attn_runtime parallel = {.threads = 4, .run = run_backwards};
    check_writes_in_the_end(&NESTED, &SERIAL, 4096);
    check_writes_in_the_end(&NESTED, &parallel, 4096);
    check_writes_in_the_end(&FLAT, &parallel, 4096);
    check_writes_in_the_end(&BASE64, &parallel, 64);
}
END_TEST

START_TEST(memory_is_that_of_the_text_and_little_more)
{
    enum { COUNT = 1000000 };
    float *data = random_floats(COUNT);
    attn_tensor tensor = attn_tensor_view(data, ATTN_F32, 2, (const size_t[]){1000, 1000});
    attn_arena *arena = attn_arena_create(ARENA_BYTES);
    struct chunks chunks = chunks_begin(arena);
    tensor_write_json(&tensor, &NESTED, &(attn_runtime){.threads = 8, .run = run_forwards}, &chunks);
    ck_assert(chunks.is_ok);
    ck_assert_uint_lt(attn_arena_peak_bytes(arena), chunks.total_bytes + ((size_t)1 << 20));
    attn_arena_destroy(arena);
    free(data);
}
END_TEST

START_TEST(the_bound_holds_for_the_longest_numbers_of_every_style)
{
    float narrow[] = {-1.17549435e-38f, -0.0000123456789f, -999999995904.0f, -1.40129846e-45f, -NAN, -INFINITY};
    double wide[] = {-2.2250738585072014e-308, -0.000012345678901234567, -1234567890123456, (double)-INFINITY};
    int64_t integers[] = {INT64_MIN, INT64_MIN};
    for (int digits = 0; digits <= 17; digits++) {
        for (int form = 0; form < 3; form++) {
            struct tensor_style style = {.form = (tensor_form)form, .digits = digits};
            attn_tensor tensor = attn_tensor_view(narrow, ATTN_F32, 4, (const size_t[]){1, 6, 1, 1});
            free(write_text(&tensor, &style, &SERIAL)); /* write_text compares with the bound */
            tensor = attn_tensor_view(wide, ATTN_F64, 4, (const size_t[]){4, 1, 1, 1});
            free(write_text(&tensor, &style, &SERIAL));
            tensor = attn_tensor_view(integers, ATTN_I64, 1, (const size_t[]){2});
            free(write_text(&tensor, &style, &SERIAL));
        }
    }
}
END_TEST

START_TEST(a_bound_that_does_not_fit_is_the_largest_number)
{
    attn_tensor tensor = attn_tensor_view(NULL, ATTN_F32, 2, (const size_t[]){SIZE_MAX / 8, 4});
    ck_assert_uint_eq(tensor_write_bound(&tensor, &NESTED), SIZE_MAX);
    ck_assert_uint_eq(tensor_write_bound(&tensor, &BASE64), SIZE_MAX);
    tensor = attn_tensor_view(NULL, ATTN_F32, 3, (const size_t[]){SIZE_MAX, SIZE_MAX, 0});
    ck_assert_uint_eq(tensor_write_bound(&tensor, &NESTED), SIZE_MAX);
}
END_TEST

START_TEST(more_empty_cells_than_can_be_counted_fail_cleanly)
{
    attn_arena *arena = attn_arena_create(ARENA_BYTES);
    struct chunks chunks = chunks_begin(arena);
    attn_tensor tensor = attn_tensor_view(NULL, ATTN_F32, 3, (const size_t[]){SIZE_MAX, SIZE_MAX, 0});
    tensor_write_json(&tensor, &NESTED, &SERIAL, &chunks);
    ck_assert(!chunks.is_ok);
    attn_arena_destroy(arena);
}
END_TEST

CHECK_MAIN("tensor_write")
{
    tcase_add_test(tests, nested_text_has_one_bracket_per_dimension);
    tcase_add_test(tests, flat_text_has_shape_and_data);
    tcase_add_test(tests, base64_text_has_shape_dtype_and_little_endian_bytes);
    tcase_add_test(tests, dimensions_of_zero_are_empty_arrays);
    tcase_add_test(tests, what_json_cannot_write_is_a_string_or_null);
    tcase_add_test(tests, every_dtype_of_a_result_has_its_text);
    tcase_add_test(tests, digits_round_every_number);
    tcase_add_test(tests, strides_are_followed);
    tcase_add_loop_test(tests, the_text_is_that_of_the_naive_writer_for_any_runtime, 0, COUNT(SHAPES));
    tcase_add_test(tests, base64_of_a_large_tensor_decodes_to_its_bytes);
    tcase_add_test(tests, a_transposed_large_tensor_is_written_in_its_own_order);
    tcase_add_test(tests, without_memory_writing_fails_cleanly_and_with_more_it_succeeds);
    tcase_add_test(tests, memory_is_that_of_the_text_and_little_more);
    tcase_add_test(tests, the_bound_holds_for_the_longest_numbers_of_every_style);
    tcase_add_test(tests, a_bound_that_does_not_fit_is_the_largest_number);
    tcase_add_test(tests, more_empty_cells_than_can_be_counted_fail_cleanly);
}
