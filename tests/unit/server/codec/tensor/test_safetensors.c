/*
 * test_safetensors.c: tests of server/codec/tensor/safetensors*.c.
 *
 * The cases of the format's own reader are not part of this project. They are looked for in ATTN_SHARED, else in
 * ../shared beside it.
 */
#include "codec/tensor/safetensors.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "check_main.h"
#include "codec/json/tree.h"
#include "random.h"
#include "safetensors_find.h"
#include "shared.h"

enum { ARENA_BYTES = 16 << 20, FILE_BYTES_MAX = 4096, MUTANTS = 20000 };

static attn_arena *arena;
static attn_error err;
static struct safetensors file;

/* A file of that header and so many bytes of data, in memory of exactly its size, so that ASan sees every byte beyond.
 */
static unsigned char *make_file(const char *header, size_t header_bytes, size_t data_bytes, size_t *bytes)
{
    *bytes = 8 + header_bytes + data_bytes;
    unsigned char *body = malloc(*bytes);
    ck_assert_ptr_nonnull(body);
    for (int i = 0; i < 8; i++)
        body[i] = (unsigned char)(header_bytes >> 8 * i);
    memcpy(body + 8, header, header_bytes);
    for (size_t i = 0; i < data_bytes; i++)
        body[8 + header_bytes + i] = (unsigned char)i;
    return body;
}

static attn_status read_bytes(const unsigned char *body, size_t bytes)
{
    json_tree_prepare();
    if (arena == NULL)
        arena = attn_arena_create(ARENA_BYTES);
    attn_arena_reset(arena);
    err = (attn_error){0};
    return safetensors_read(body, bytes, arena, &file, &err);
}

/* Every view lies in the data, and all together are the data. */
static void check_views(const unsigned char *body, size_t bytes)
{
    size_t covered = 0;
    unsigned sum = 0;
    for (size_t i = 0; i < file.tensor_count; i++) {
        const struct safetensors_tensor *tensor = &file.tensors[i];
        ck_assert(tensor->data >= (const char *)body + 8);
        ck_assert(tensor->data + tensor->bytes <= (const char *)body + bytes);
        for (size_t n = 0; n < tensor->bytes; n++)
            sum += (unsigned char)tensor->data[n];
        covered += tensor->bytes;
        attn_tensor view;
        if (safetensors_view(tensor, &view, NULL) == ATTN_OK)
            ck_assert_uint_eq(attn_tensor_count(&view) * attn_dtype_bytes(view.dtype), tensor->bytes);
    }
    ck_assert(covered <= bytes && sum <= 255 * bytes);
}

START_TEST(a_file_becomes_a_table_of_views)
{
    const char header[] = "{\"b\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[1,9]},\"__metadata__\":{"
                          "\"request\":\"{\\\"a\\\":1}\",\"x\":\"\"},\"a\":{\"dtype\":\"U8\",\"shape\":[],"
                          "\"data_offsets\":[0,1]}}  ";
    size_t bytes;
    unsigned char *body = make_file(header, strlen(header), 9, &bytes);
    ck_assert_int_eq(read_bytes(body, bytes), ATTN_OK);
    ck_assert_uint_eq(file.tensor_count, 2);
    ck_assert_str_eq(file.tensors[0].name, "a");
    const struct safetensors_tensor *b = safetensors_find(&file, "b");
    ck_assert(b != NULL && b->dtype == ATTN_F32 && b->rank == 2 && b->shape[1] == 2 && b->bytes == 8);
    ck_assert_ptr_eq(b->data, (const char *)body + bytes - 8);
    attn_tensor view;
    ck_assert_int_eq(safetensors_view(b, &view, &err), ATTN_OK);
    ck_assert(view.data == b->data && view.rank == 2 && view.stride[0] == 2 && view.dtype == ATTN_F32);
    const struct safetensors_text *request = safetensors_find_text(&file, "request");
    ck_assert_ptr_nonnull(request);
    ck_assert_str_eq(request->value, "{\"a\":1}");
    ck_assert_uint_eq(request->length, 7);
    ck_assert(safetensors_find(&file, "c") == NULL && safetensors_find_text(&file, "y") == NULL);
    free(body);
}
END_TEST

#define TENSOR(dtype, shape, offsets)                                                                                  \
    "{\"a\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

static const struct {
    const char *header;
    size_t data_bytes;
    const char *message; /* part of the refusal; NULL: accepted */
} headers[] = {
    {"{}", 0, NULL},
    {" \t\r\n{} ", 0, NULL},
    {TENSOR("F32", "[2,2]", "[0,16]"), 16, NULL},
    {TENSOR("F32", "[]", "[0,4]"), 4, NULL},
    {TENSOR("F64", "[2,0]", "[0,0]"), 0, NULL},
    {TENSOR("F4", "[4]", "[0,2]"), 2, NULL},
    {TENSOR("I16", "[1,1,1,1,1,2]", "[0,4]"), 4, NULL},
    {"{\"__metadata__\":null}", 0, NULL},
    {"{\"__metadata__\":{}}", 0, NULL},
    {"{\"\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}", 0, NULL},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"extra\":1}}", 1, NULL},
    {"", 0, "the header is not JSON"},
    {"{", 0, "the header is not JSON"},
    {"{}x", 0, "the header is not JSON"},
    {"{} {}", 0, "the header is not JSON"},
    {"[]", 0, "no JSON object"},
    {"null", 0, "no JSON object"},
    {"\xEF\xBB\xBF{}", 0, "the header is not JSON"},
    {"{\"\xFF\":1}", 0, "the header is not JSON"},
    {"{\"\\ud800\":1}", 0, "the header is not JSON"},
    {"{\"a\":1}", 0, "tensor \"a\" is no object"},
    {"{\"a\":{}}", 0, "is no object with dtype"},
    {"{}", 1, "ends at byte 0 of the data, which has 1"},
    {TENSOR("F32", "[2,2]", "[0,16]"), 15, "has the data_offsets [0,16]"},
    {TENSOR("F32", "[2,2]", "[0,16]"), 17, "ends at byte 16"},
    {TENSOR("F33", "[2,2]", "[0,16]"), 16, "unknown dtype \"F33\""},
    {TENSOR("f32", "[2,2]", "[0,16]"), 16, "unknown dtype"},
    {TENSOR("F32\\u0000", "[2,2]", "[0,16]"), 16, "unknown dtype"},
    {TENSOR("F32", "4", "[0,16]"), 16, "no list as its shape"},
    {TENSOR("F32", "[2.0,2]", "[0,16]"), 16, "integers of at least 0"},
    {TENSOR("F32", "[-2,-2]", "[0,16]"), 16, "integers of at least 0"},
    {TENSOR("F32", "[true,4]", "[0,16]"), 16, "integers of at least 0"},
    {TENSOR("F32", "[2,3]", "[0,16]"), 16, "has 16 bytes of data, its dtype and shape ask for 24"},
    {TENSOR("F32", "[2,2]", "[16,0]"), 16, "has the data_offsets [16,0]"},
    {TENSOR("F32", "[2,2]", "[0,32]"), 16, "has the data_offsets [0,32]"},
    {TENSOR("F32", "[2,2]", "[1,17]"), 17, "unused bytes before it"},
    {TENSOR("F32", "[2,2]", "[0]"), 16, "no list [from, to]"},
    {TENSOR("F32", "[2,2]", "[0,16,16]"), 16, "no list [from, to]"},
    {TENSOR("F32", "[2,2]", "[0.0,16]"), 16, "no list [from, to]"},
    {TENSOR("F32", "[2,2]", "[-16,0]"), 16, "no list [from, to]"},
    {TENSOR("F32", "[4294967296,4294967296]", "[0,0]"), 0, "cannot be counted"},
    {TENSOR("F32", "[4611686018427387904]", "[0,0]"), 0, "cannot be counted"},
    {TENSOR("F64", "[2305843009213693952]", "[0,0]"), 0, "cannot be counted"},
    {TENSOR("U8", "[4611686018427387904,4,0]", "[0,0]"), 0, "cannot be counted"},
    {TENSOR("U8", "[18446744073709551616]", "[0,0]"), 0, "the header is not JSON"},
    {TENSOR("F4", "[3]", "[0,1]"), 1, "cannot be counted"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"U8\",\"shape\":[4],"
     "\"data_offsets\":[2,6]}}",
     6, "tensor \"b\" overlaps another one"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"U8\",\"shape\":[4],"
     "\"data_offsets\":[6,10]}}",
     10, "tensor \"b\" has unused bytes before it"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},\"z\":{\"dtype\":\"U8\",\"shape\":[0],"
     "\"data_offsets\":[2,2]}}",
     4, "overlaps another one"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},\"\\u0061\":{\"dtype\":\"U8\",\"shape\":[0],"
     "\"data_offsets\":[0,0]}}",
     0, "duplicate"},
    {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}", 0, "duplicate"},
    {"{\"__metadata__\":[]}", 0, "__metadata__ is no object of strings"},
    {"{\"__metadata__\":{\"a\":1}}", 0, "\"a\" in __metadata__ is no string"},
    {"{\"__metadata__\":{\"a\":null}}", 0, "\"a\" in __metadata__ is no string"},
};

START_TEST(a_header_is_accepted_or_refused_with_the_reason)
{
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        size_t bytes;
        unsigned char *body = make_file(headers[i].header, strlen(headers[i].header), headers[i].data_bytes, &bytes);
        attn_status status = read_bytes(body, bytes);
        ck_assert_msg((status == ATTN_OK) == (headers[i].message == NULL), "%s: %s", headers[i].header, err.message);
        if (status == ATTN_OK) {
            check_views(body, bytes);
        } else {
            ck_assert_int_eq(status, ATTN_ERR_SYNTAX);
            ck_assert_msg(strstr(err.message, headers[i].message) != NULL, "%s: %s", headers[i].header, err.message);
        }
        free(body);
    }
}
END_TEST

START_TEST(a_length_beyond_the_file_or_the_limit_is_refused)
{
    static const unsigned char lengths[][8] = {
        {3},
        {0, 0, 0, 0, 0, 0, 0, 0x80},
        {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF},
        {0xF8, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF},
        {0, 0, 0, 0, 0, 0, 0, 2},
    };
    unsigned char body[10] = {0, 0, 0, 0, 0, 0, 0, 0, '{', '}'};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        memcpy(body, lengths[i], 8);
        ck_assert_int_eq(read_bytes(body, sizeof body), ATTN_ERR_SYNTAX);
        ck_assert_ptr_nonnull(strstr(err.message, "claims a header"));
    }
    for (size_t bytes = 0; bytes < 8; bytes++) {
        ck_assert_int_eq(read_bytes(body, bytes), ATTN_ERR_SYNTAX);
        ck_assert_ptr_nonnull(strstr(err.message, "begins with the length"));
    }
    size_t long_bytes = SAFETENSORS_HEADER_MAX + 1, bytes;
    char *spaces = malloc(long_bytes);
    ck_assert_ptr_nonnull(spaces);
    memset(spaces, ' ', long_bytes);
    memcpy(spaces, "{}", 2);
    unsigned char *large = make_file(spaces, long_bytes, 0, &bytes);
    ck_assert_int_eq(read_bytes(large, bytes), ATTN_ERR_TOO_LARGE);
    free(large);
    large = make_file(spaces, long_bytes - 1, 0, &bytes);
    ck_assert_int_eq(read_bytes(large, bytes), ATTN_OK);
    free(large);
    free(spaces);
}
END_TEST

START_TEST(a_nul_byte_is_refused_wherever_it_stands)
{
    const char header[] = TENSOR("F32", "[2 ,2]", "[0,16]");
    for (size_t at = 0; at < strlen(header); at++) {
        size_t bytes;
        unsigned char *body = make_file(header, strlen(header), 16, &bytes);
        body[8 + at] = '\0';
        ck_assert_int_eq(read_bytes(body, bytes), ATTN_ERR_SYNTAX);
        free(body);
    }
}
END_TEST

START_TEST(a_view_is_of_a_type_and_rank_that_can_be_computed_with)
{
    size_t bytes;
    const char *header = TENSOR("F8_E4M3", "[2]", "[0,2]");
    unsigned char *body = make_file(header, strlen(header), 2, &bytes);
    attn_tensor view;
    ck_assert_int_eq(read_bytes(body, bytes), ATTN_OK);
    ck_assert_int_eq(safetensors_view(&file.tensors[0], &view, &err), ATTN_ERR_VALUE);
    ck_assert_ptr_nonnull(strstr(err.message, "tensor \"a\" has dtype F8_E4M3"));
    free(body);
    header = TENSOR("U8", "[1,1,1,1,1]", "[0,1]");
    body = make_file(header, strlen(header), 1, &bytes);
    ck_assert_int_eq(read_bytes(body, bytes), ATTN_OK);
    ck_assert_int_eq(safetensors_view(&file.tensors[0], &view, &err), ATTN_ERR_SHAPE);
    free(body);
}
END_TEST

START_TEST(memory_runs_out_cleanly)
{
    size_t bytes;
    const char *header =
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},\"__metadata__\":{\"x\":\"y\"}}";
    unsigned char *body = make_file(header, strlen(header), 1, &bytes);
    json_tree_prepare();
    attn_status status = ATTN_ERR_NO_MEMORY;
    for (size_t limit = 64; status != ATTN_OK; limit += 64) {
        ck_assert_uint_lt(limit, ARENA_BYTES);
        attn_arena *small = attn_arena_create(limit);
        if (small == NULL)
            continue;
        status = safetensors_read(body, bytes, small, &file, &err);
        ck_assert(status == ATTN_OK || status == ATTN_ERR_NO_MEMORY);
        attn_arena_destroy(small);
    }
    free(body);
}
END_TEST

static unsigned char *bytes_of_hex(const char *hex, size_t *bytes)
{
    *bytes = strlen(hex) / 2;
    unsigned char *body = malloc(*bytes + 1);
    ck_assert_ptr_nonnull(body);
    for (size_t i = 0; i < *bytes; i++) {
        unsigned value = 0;
        ck_assert_int_eq(sscanf(hex + 2 * i, "%2x", &value), 1);
        body[i] = (unsigned char)value;
    }
    return body;
}

START_TEST(the_cases_of_the_reference_get_its_verdicts)
{
    char path[SHARED_PATH_MAX];
    if (!shared_has(path, "vectors/safetensors_cases.json"))
        return;
    json_tree_prepare();
    json_t *cases = json_load_file(path, 0, NULL), *one;
    ck_assert_uint_gt(json_array_size(cases), 20);
    size_t i;
    json_array_foreach(cases, i, one)
    {
        size_t bytes;
        unsigned char *body = bytes_of_hex(json_string_value(json_object_get(one, "hex")), &bytes);
        bool is_valid = strcmp(json_string_value(json_object_get(one, "expect")), "ok") == 0;
        attn_status status = read_bytes(body, bytes);
        ck_assert_msg((status == ATTN_OK) == is_valid, "%s: %s", json_string_value(json_object_get(one, "name")),
                      err.message);
        free(body);
    }
    json_decref(cases);
}
END_TEST

/* Changes a byte, cuts, doubles or inserts, at a random place. */
static void mutate(unsigned char *body, size_t *bytes, random_source *random)
{
    size_t at = *bytes > 0 ? random_below(random, *bytes) : 0;
    static const char pieces[][22] = {"0",  "-1",  "9223372036854775807", "18446744073709551615", "[", "{}",
                                      "\"", "null"};
    switch (random_below(random, 5)) {
    case 0:
        body[at] = (unsigned char)random_below(random, 256);
        break;
    case 1:
        body[at] ^= (unsigned char)(1u << random_below(random, 8));
        break;
    case 2:
        *bytes = at;
        break;
    case 3:
        body[0] = (unsigned char)(body[0] + random_below(random, 9) - 4);
        break;
    default: {
        const char *piece = pieces[random_below(random, sizeof pieces / sizeof *pieces)];
        size_t length = strlen(piece);
        if (*bytes + length > FILE_BYTES_MAX)
            break;
        memmove(body + at + length, body + at, *bytes - at);
        memcpy(body + at, piece, length);
        *bytes += length;
        body[0] = (unsigned char)(body[0] + length); /* often the right length, now and then not */
        break;
    }
    }
}

START_TEST(mutants_are_refused_or_read_within_their_bytes)
{
    random_source random = random_seeded(7);
    unsigned char scratch[FILE_BYTES_MAX];
    size_t accepted = 0;
    for (size_t i = 0; i < MUTANTS; i++) {
        size_t pick = random_below(&random, sizeof headers / sizeof *headers), bytes;
        unsigned char *seed =
            make_file(headers[pick].header, strlen(headers[pick].header), headers[pick].data_bytes, &bytes);
        memcpy(scratch, seed, bytes);
        free(seed);
        for (size_t n = 1 + random_below(&random, 3); n > 0; n--)
            mutate(scratch, &bytes, &random);
        unsigned char *body = malloc(bytes + (bytes == 0));
        ck_assert_ptr_nonnull(body);
        memcpy(body, scratch, bytes);
        if (read_bytes(body, bytes) == ATTN_OK) {
            check_views(body, bytes);
            accepted++;
        }
        free(body);
    }
    ck_assert_uint_gt(accepted, 0);
}
END_TEST

static void read_back(const struct chunks *out, unsigned char **body, size_t *bytes)
{
    ck_assert(out->is_ok);
    *bytes = out->total_bytes;
    *body = malloc(*bytes);
    ck_assert_ptr_nonnull(*body);
    size_t at = 0;
    for (const struct chunk *chunk = out->first; chunk != NULL; chunk = chunk->next) {
        memcpy(*body + at, chunk->data, chunk->length);
        at += chunk->length;
    }
    ck_assert_uint_eq(at, *bytes);
    attn_status status = read_bytes(*body, *bytes);
    ck_assert_msg(status == ATTN_OK, "%s", err.message);
}

START_TEST(what_is_written_reads_back)
{
    float numbers[] = {1, 2, 3, 4, 5, 6};
    double wide[] = {-0.5};
    uint8_t flags[] = {1, 0, 1};
    attn_tensor transposed = attn_tensor_view(numbers, ATTN_F32, 2, (size_t[]){3, 2});
    transposed.stride[0] = 1;
    transposed.stride[1] = 3;
    const struct safetensors_entry entries[] = {
        {"flags", attn_tensor_view(flags, ATTN_BOOL, 1, (size_t[]){3})},
        {"a \"quoted\" name", attn_tensor_view(numbers, ATTN_F32, 2, (size_t[]){2, 3})},
        {"wide", attn_tensor_view(wide, ATTN_F64, 0, NULL)},
        {"transposed", transposed},
        {"hollow", attn_tensor_view(numbers, ATTN_F32, 2, (size_t[]){0, 3})},
    };
    const struct safetensors_text metadata[] = {{"effective", "{\"scale\":1}", 11}, {"tokens", "", 0}};
    attn_arena *own = attn_arena_create(ARENA_BYTES);
    struct chunks out = chunks_begin(own);
    safetensors_write(entries, 5, metadata, 2, &out);
    ck_assert_uint_le(out.total_bytes, safetensors_write_bound(entries, 5, metadata, 2));
    bool is_borrowed = false;
    for (const struct chunk *chunk = out.first; chunk != NULL; chunk = chunk->next)
        is_borrowed = is_borrowed || chunk->data == (const char *)numbers;
    ck_assert(is_borrowed);
    unsigned char *body;
    size_t bytes;
    read_back(&out, &body, &bytes);
    ck_assert_uint_eq((bytes - sizeof wide - 2 * sizeof numbers - sizeof flags) % SAFETENSORS_ALIGNMENT, 0);
    ck_assert_uint_eq((size_t)(file.tensors[0].data - (const char *)body) % SAFETENSORS_ALIGNMENT, 0);
    ck_assert_str_eq(file.tensors[0].name, "wide");
    ck_assert_mem_eq(file.tensors[0].data, wide, sizeof wide);
    ck_assert_mem_eq(safetensors_find(&file, "a \"quoted\" name")->data, numbers, sizeof numbers);
    ck_assert_mem_eq(safetensors_find(&file, "transposed")->data, ((float[]){1, 4, 2, 5, 3, 6}), sizeof numbers);
    ck_assert_mem_eq(safetensors_find(&file, "flags")->data, flags, sizeof flags);
    ck_assert_uint_eq(safetensors_find(&file, "hollow")->bytes, 0);
    ck_assert_str_eq(safetensors_find_text(&file, "effective")->value, "{\"scale\":1}");
    free(body);
    attn_arena_destroy(own);
}
END_TEST

START_TEST(a_file_without_anything_is_still_one)
{
    attn_arena *own = attn_arena_create(ARENA_BYTES);
    struct chunks out = chunks_begin(own);
    safetensors_write(NULL, 0, NULL, 0, &out);
    ck_assert_uint_eq(out.total_bytes, SAFETENSORS_ALIGNMENT);
    unsigned char *body;
    size_t bytes;
    read_back(&out, &body, &bytes);
    ck_assert(file.tensor_count == 0 && file.metadata_count == 0);
    free(body);
    attn_arena_destroy(own);
}
END_TEST

CHECK_MAIN("safetensors")
{
    tcase_add_test(tests, a_file_becomes_a_table_of_views);
    tcase_add_test(tests, a_header_is_accepted_or_refused_with_the_reason);
    tcase_add_test(tests, a_length_beyond_the_file_or_the_limit_is_refused);
    tcase_add_test(tests, a_nul_byte_is_refused_wherever_it_stands);
    tcase_add_test(tests, a_view_is_of_a_type_and_rank_that_can_be_computed_with);
    tcase_add_test(tests, memory_runs_out_cleanly);
    tcase_add_test(tests, the_cases_of_the_reference_get_its_verdicts);
    tcase_add_test(tests, mutants_are_refused_or_read_within_their_bytes);
    tcase_add_test(tests, what_is_written_reads_back);
    tcase_add_test(tests, a_file_without_anything_is_still_one);
}
