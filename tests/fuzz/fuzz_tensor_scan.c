/*
 * fuzz_tensor_scan.c: what is read as a tensor is JSON, has the shape that it says, and reads back when written.
 */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "attn/runtime.h"
#include "codec/json/skim.h"
#include "codec/tensor/scan.h"
#include "codec/tensor/write.h"
#include "fuzz.h"

enum { ARENA_BYTES = 16 << 20 };

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    return 0;
}

/* By a library that shares nothing with the scanner: only what it takes too may be taken. */
static bool is_json(const char *text, size_t length)
{
    json_error_t error;
    json_t *tree = json_loadb(text, length, JSON_DECODE_INT_AS_REAL, &error);
    json_decref(tree);
    return tree != NULL || json_error_code(&error) == json_error_numeric_overflow; /* of a float64: 1e400 may be 0 */
}

static bool is_same(const attn_tensor *a, const attn_tensor *b)
{
    if (a->rank != b->rank || memcmp(a->shape, b->shape, (size_t)a->rank * sizeof a->shape[0]) != 0)
        return false;
    const size_t count = attn_tensor_count(a), size = attn_dtype_bytes(a->dtype);
    for (size_t i = 0; i < count; i++) {
        const char *x = (const char *)a->data + i * size, *y = (const char *)b->data + i * size;
        const bool is_nan =
            (a->dtype == ATTN_F32 && isnan(((const float *)a->data)[i]) && isnan(((const float *)b->data)[i])) ||
            (a->dtype == ATTN_F64 && isnan(((const double *)a->data)[i]) && isnan(((const double *)b->data)[i]));
        if (!is_nan && memcmp(x, y, size) != 0)
            return false;
    }
    return true;
}

static attn_status scan(const char *text, size_t length, attn_dtype dtype, attn_arena *arena, attn_tensor *tensor)
{
    struct lifted_text array = {.text = text};
    attn_error err = {.status = ATTN_OK};
    size_t at = 0;
    const char *end = array_end_find(text, text + length, &(struct pace){.bytes = 0}, &array.commas);
    if (end == NULL)
        return ATTN_ERR_SYNTAX;
    array.length = (size_t)(end - text);
    attn_status status =
        tensor_scan(&array, dtype, &(struct tensor_rules){0}, "/inputs/query", arena, tensor, &at, &err);
    fuzz_claim_told(status, &err);
    fuzz_claim(status != ATTN_ERR_SYNTAX || at <= array.length, "the place of an error is in the text");
    fuzz_claim(status != ATTN_OK || is_json(text, array.length), "only JSON is read");
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const attn_dtype types[] = {ATTN_F32, ATTN_F64, ATTN_I64, ATTN_BOOL};
    const struct fuzz_input input = fuzz_read(data, size, '[');
    const attn_dtype dtype = types[input.choice % 4];
    if (input.length == 0 || input.text[0] != '[')
        return 0;
    attn_arena *arena = attn_arena_create(ARENA_BYTES);
    attn_tensor tensor, again;
    if (scan(input.text, input.length, dtype, arena, &tensor) == ATTN_OK) {
        const attn_runtime serial = attn_runtime_serial(NULL);
        struct chunks out = chunks_begin(arena);
        tensor_write_json(&tensor, &(struct tensor_style){.form = TENSOR_FORM_NESTED}, &serial, &out);
        const char *text = chunks_join(&out);
        fuzz_claim(tensor.dtype == dtype && text != NULL, "a tensor that was read can be written");
        const attn_status status = scan(text, out.total_bytes, dtype, arena, &again);
        fuzz_claim(status == ATTN_OK && is_same(&tensor, &again), "what is written reads back");
    }
    attn_arena_destroy(arena);
    return 0;
}
