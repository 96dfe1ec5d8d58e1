/*
 * test_from_safetensors.c: tests of server/codec/request/envelope_decode.c: a request as a safetensors file.
 */
#include <string.h>

#include "check_main.h"
#include "codec/request/envelope.h"
#include "codec/tensor/safetensors.h"

enum { ARENA_BYTES = 1 << 22 };

static attn_arena *arena;
static attn_error err;
static struct envelope envelope;
static float numbers[] = {1, 2, 3, 4};

static struct safetensors_entry entry(const char *name, attn_dtype dtype)
{
    return (struct safetensors_entry){name, attn_tensor_view(numbers, dtype, 2, (size_t[]){2, 2})};
}

static attn_status decode(const struct safetensors_entry *entries, size_t count, const char *name, const char *text)
{
    const struct safetensors_text texts[] = {{"format", "pt", 2}, {name, text, strlen(text)}};
    envelope_prepare();
    arena = attn_arena_create(ARENA_BYTES);
    err = (attn_error){0};
    struct chunks file = chunks_begin(arena);
    safetensors_write(entries, count, texts, name[0] != '\0' ? 2 : 1, &file);
    const char *body = chunks_join(&file);
    ck_assert_ptr_nonnull(body);
    return envelope_decode_safetensors(body, file.total_bytes, ENVELOPE_LAYER, arena, &envelope, &err);
}

static void refuse(const struct safetensors_entry *entries, size_t count, const char *name, const char *text,
                   attn_status status, const char *field, const char *message)
{
    ck_assert_int_eq(decode(entries, count, name, text), status);
    ck_assert_str_eq(err.field, field);
    ck_assert_msg(strstr(err.message, message) != NULL, "%s", err.message);
    attn_arena_destroy(arena);
}

START_TEST(tensors_and_text_of_a_file_make_a_request)
{
    const struct safetensors_entry entries[] = {entry("inputs.query", ATTN_F32), entry("weights.qkv.weight", ATTN_F32)};
    attn_status status = decode(entries, 2, "request",
                                "{\"options\":{\"num_heads\":2},\"tokens\":{\"query\":[\"a\","
                                "\"b\"]}}");
    ck_assert_msg(status == ATTN_OK, "%s", err.message);
    ck_assert_mem_eq(envelope.request.inputs.query->data, numbers, sizeof numbers);
    ck_assert_ptr_nonnull(envelope.request.weights.qkv.weight);
    ck_assert_uint_eq(envelope.request.options.num_heads, 2);
    ck_assert_str_eq(envelope.query_tokens.json, "[\"a\",\"b\"]");
    attn_arena_destroy(arena);
    ck_assert_int_eq(decode(entries, 1, "", ""), ATTN_OK);
    attn_arena_destroy(arena);
}
END_TEST

START_TEST(what_does_not_belong_into_a_request_is_refused_by_name)
{
    const struct safetensors_entry query = entry("inputs.query", ATTN_F32), other = entry("query", ATTN_F32);
    refuse(&query, 1, "reqest", "{}", ATTN_ERR_FIELD, "", "unknown member \"reqest\"");
    refuse(&other, 1, "request", "{}", ATTN_ERR_FIELD, "/query", "unknown member: it belongs into inputs");
    refuse(&query, 1, "request", "{\"inputs\":{\"query\":[[1]]}}", ATTN_ERR_FIELD, "/inputs/query", "given twice");
    refuse(&query, 1, "request", "{", ATTN_ERR_SYNTAX, "", "__metadata__.request: the request is not JSON");
    refuse(NULL, 0, "", "", ATTN_ERR_FIELD, "", "has no tensor; expected inputs.query");
}
END_TEST

START_TEST(types_and_ranks_that_are_not_computed_with_are_refused_by_name)
{
    static const char header[] = "{\"inputs.query\":{\"dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[0,1]}}";
    char body[8 + sizeof header] = {(char)(sizeof header - 1)};
    memcpy(body + 8, header, sizeof header);
    envelope_prepare();
    arena = attn_arena_create(ARENA_BYTES);
    ck_assert_int_eq(envelope_decode_safetensors(body, sizeof body, ENVELOPE_LAYER, arena, &envelope, &err),
                     ATTN_ERR_VALUE);
    ck_assert_str_eq(err.field, "/inputs/query");
    ck_assert_ptr_nonnull(strstr(err.message, "has dtype I8"));
    ck_assert_int_eq(envelope_decode_safetensors(body, sizeof body, ENVELOPE_LAYER, arena, &envelope, NULL),
                     ATTN_ERR_VALUE);
    attn_arena_destroy(arena);
}
END_TEST

START_TEST(memory_runs_out_cleanly)
{
    const struct safetensors_entry query = entry("inputs.query", ATTN_F64);
    double wide[] = {1, 2, 3, 4};
    struct safetensors_entry entries[] = {query};
    entries[0].tensor.data = wide;
    ck_assert_int_eq(decode(entries, 1, "request", "{\"options\":{\"scale\":2}}"), ATTN_OK);
    attn_arena *own = attn_arena_create(ARENA_BYTES);
    const struct safetensors_text text = {"request", "{\"options\":{\"scale\":2}}", 23};
    struct chunks file = chunks_begin(own);
    safetensors_write(entries, 1, &text, 1, &file);
    const char *body = chunks_join(&file);
    attn_status status = ATTN_ERR_NO_MEMORY;
    for (size_t limit = 64; status != ATTN_OK; limit += 64) {
        attn_arena *small = attn_arena_create(limit);
        ck_assert_uint_lt(limit, ARENA_BYTES);
        if (small == NULL)
            continue;
        status = envelope_decode_safetensors(body, file.total_bytes, ENVELOPE_LAYER, small, &envelope, &err);
        ck_assert(status == ATTN_OK || status == ATTN_ERR_NO_MEMORY);
        attn_arena_destroy(small);
    }
    attn_arena_destroy(own);
    attn_arena_destroy(arena);
}
END_TEST

CHECK_MAIN("envelope_safetensors")
{
    tcase_add_test(tests, tensors_and_text_of_a_file_make_a_request);
    tcase_add_test(tests, what_does_not_belong_into_a_request_is_refused_by_name);
    tcase_add_test(tests, types_and_ranks_that_are_not_computed_with_are_refused_by_name);
    tcase_add_test(tests, memory_runs_out_cleanly);
}
