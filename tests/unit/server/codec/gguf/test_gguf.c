/* test_gguf.c: reading GGUF files, whole ones and damaged ones, and widening blocks. */
#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "codec/gguf/gguf.h"

enum { ARENA_BYTES = 1 << 20, BYTES_MAX = 4096 };

/* A file while it is written. */
struct draft {
    char bytes[BYTES_MAX];
    size_t size;
};

static void add(struct draft *draft, const void *bytes, size_t size)
{
    memcpy(draft->bytes + draft->size, bytes, size);
    draft->size += size;
}

static void add_u32(struct draft *draft, uint32_t value)
{
    add(draft, &value, sizeof value);
}

static void add_u64(struct draft *draft, uint64_t value)
{
    add(draft, &value, sizeof value);
}

static void add_text(struct draft *draft, const char *text)
{
    add_u64(draft, strlen(text));
    add(draft, text, strlen(text));
}

static void begin(struct draft *draft, uint64_t tensors, uint64_t values)
{
    draft->size = 0;
    add(draft, "GGUF", 4);
    add_u32(draft, 3);
    add_u64(draft, tensors);
    add_u64(draft, values);
}

static void add_tensor(struct draft *draft, const char *name, uint64_t columns, uint64_t rows, uint32_t type,
                       uint64_t offset)
{
    add_text(draft, name);
    add_u32(draft, 2);
    add_u64(draft, columns);
    add_u64(draft, rows);
    add_u32(draft, type);
    add_u64(draft, offset);
}

static void add_data(struct draft *draft, size_t bytes)
{
    while (draft->size % 32 != 0)
        draft->bytes[draft->size++] = 0;
    memset(draft->bytes + draft->size, 1, bytes);
    draft->size += bytes;
}

static attn_status read_draft(const struct draft *draft, struct gguf *file, attn_arena *arena, attn_error *err)
{
    *err = (attn_error){.status = ATTN_OK};
    return gguf_read(draft->bytes, draft->size, arena, file, err);
}

/* A file with metadata of several types and two tensors. */
static void write_whole(struct draft *draft)
{
    begin(draft, 2, 3);
    add_text(draft, "b");
    add_u32(draft, 4);
    add_u32(draft, 7);
    add_text(draft, "a");
    add_u32(draft, 9);
    add_u32(draft, 8);
    add_u64(draft, 2);
    add_text(draft, "x");
    add_text(draft, "yz");
    add_text(draft, "c");
    add_u32(draft, 7);
    add(draft, "\1", 1);
    add_tensor(draft, "wide", 2, 3, 0, 0);
    add_tensor(draft, "blocks", 32, 1, 8, 32);
    add_data(draft, 32 + 34);
}

START_TEST(metadata_and_tensors_are_found)
{
    attn_arena *arena = attn_arena_create(ARENA_BYTES);
    struct draft draft;
    struct gguf file;
    attn_error err;
    uint64_t count;
    bool is;
    write_whole(&draft);
    ck_assert_msg(read_draft(&draft, &file, arena, &err) == ATTN_OK, "%s", err.message);
    ck_assert(gguf_count(gguf_find(&file, "b"), &count) && count == 7);
    ck_assert(gguf_bool(gguf_find(&file, "c"), &is) && is);
    ck_assert(!gguf_count(gguf_find(&file, "a"), &count) && gguf_find(&file, "d") == NULL);
    const struct gguf_value *texts = gguf_find(&file, "a");
    ck_assert(gguf_is_texts(texts) && texts->count == 2);
    const char *at = texts->at;
    ck_assert(text_equal(gguf_next_text(texts, &at), "x") && text_equal(gguf_next_text(texts, &at), "yz"));
    ck_assert_uint_eq(file.tensor_count, 2);
    ck_assert_str_eq(file.tensors[0].name, "wide");
    ck_assert(file.tensors[0].shape[0] == 3 && file.tensors[0].shape[1] == 2);
    ck_assert_str_eq(file.tensors[1].type->name, "Q8_0");
    ck_assert_ptr_eq(file.tensors[1].data, draft.bytes + draft.size - 34);
    attn_arena_destroy(arena);
}
END_TEST

START_TEST(a_file_that_ends_anywhere_is_refused)
{
    struct draft draft;
    write_whole(&draft);
    for (size_t size = 0; size < draft.size; size++) {
        attn_arena *arena = attn_arena_create(ARENA_BYTES);
        char *cut = malloc(size + 1); /* so that a sanitizer sees a read behind its end */
        struct gguf file;
        attn_error err = {.status = ATTN_OK};
        memcpy(cut, draft.bytes, size);
        ck_assert_int_eq(gguf_read(cut, size, arena, &file, &err), ATTN_ERR_SYNTAX);
        ck_assert_uint_gt(strlen(err.message), 0);
        free(cut);
        attn_arena_destroy(arena);
    }
}
END_TEST

/* Files that break one rule each. */
static void write_broken(struct draft *draft, int rule)
{
    begin(draft, rule == 0 ? UINT64_C(1) << 60 : rule <= 9 ? 1 : 2, rule == 1 ? UINT64_MAX : rule >= 2 && rule < 7);
    if (rule >= 2 && rule < 7) {
        static const char *const keys[] = {"general.alignment", "text", "list", "list", "type"};
        static const uint32_t types[] = {4, 8, 9, 9, 99};
        add_text(draft, keys[rule - 2]);
        add_u32(draft, types[rule - 2]);
        if (rule == 2)
            add_u32(draft, 0);
        if (rule == 3)
            add_u64(draft, UINT64_C(1) << 63);
        if (rule == 4 || rule == 5)
            add_u32(draft, rule == 4 ? 9 : 8);
        if (rule == 4 || rule == 5)
            add_u64(draft, UINT64_C(1) << 62);
    }
    if (rule == 7)
        add_tensor(draft, "wide", UINT64_C(1) << 40, UINT64_C(1) << 40, 0, 0);
    if (rule == 8)
        add_tensor(draft, "blocks", 33, 1, 8, 0);
    if (rule == 9)
        add_tensor(draft, "far", 2, 2, 0, UINT64_MAX - 31);
    if (rule >= 10)
        add_tensor(draft, "one", 16, 1, 0, 0);
    if (rule == 10)
        add_tensor(draft, "two", 16, 1, 0, 32);
    if (rule == 11)
        add_tensor(draft, "one", 16, 1, 0, 64);
    if (rule == 12)
        add_tensor(draft, "two", 16, 1, 0, 65);
    if (rule == 13)
        add_tensor(draft, "two", 32, 1, 6, 64);
    if (rule == 14)
        add_tensor(draft, "two", 0, 1, 0, 64);
    add_data(draft, 256);
}

START_TEST(a_broken_rule_is_named)
{
    static const char *const words[] = {"1152921504606846976 tensors",
                                        "metadata, more than",
                                        "general.alignment is 0",
                                        "a length of 9223372036854775808",
                                        "is a list of lists",
                                        "4611686018427387904 values",
                                        "unknown type 99",
                                        "product overflows",
                                        "blocks of Q8_0 have 32",
                                        "far has 16 bytes",
                                        "one and two overlap",
                                        "one is there twice",
                                        "no multiple of 32",
                                        "has the type Q5_0 (6)",
                                        "a dimension of 0"};
    for (int rule = 0; rule < (int)(sizeof words / sizeof *words); rule++) {
        attn_arena *arena = attn_arena_create(ARENA_BYTES);
        struct draft draft;
        struct gguf file;
        attn_error err;
        write_broken(&draft, rule);
        ck_assert_int_ne(read_draft(&draft, &file, arena, &err), ATTN_OK);
        ck_assert_msg(strstr(err.message, words[rule]) != NULL, "%d: %s", rule, err.message);
        attn_arena_destroy(arena);
    }
}
END_TEST

START_TEST(a_key_that_is_there_twice_is_refused)
{
    attn_arena *arena = attn_arena_create(ARENA_BYTES);
    struct draft draft;
    struct gguf file;
    attn_error err;
    begin(&draft, 0, 2);
    for (int i = 0; i < 2; i++) {
        add_text(&draft, "key");
        add_u32(&draft, 4);
        add_u32(&draft, 1);
    }
    ck_assert_int_eq(read_draft(&draft, &file, arena, &err), ATTN_ERR_SYNTAX);
    ck_assert_str_eq(err.message, "the metadata key is there twice");
    attn_arena_destroy(arena);
}
END_TEST

/* A tensor of that type of one block, whose bytes are all the same but for a float16 1 at one or two places. */
static void widen_one(uint32_t code, unsigned char byte, size_t one, size_t other, float to[256])
{
    static unsigned char block[256];
    const struct gguf_type *type = gguf_type_of(code);
    const attn_runtime runtime = attn_runtime_serial(NULL);
    const struct gguf_tensor tensor = {.name = "t", .type = type, .data = (char *)block, .count = type->block};
    memset(block, byte, sizeof block);
    memcpy(block + one, "\x00\x3C", 2);
    memcpy(block + other, "\x00\x3C", 2);
    attn_error err;
    ck_assert_int_eq(gguf_widen(&tensor, ATTN_F32, &runtime, to, &err), ATTN_OK);
}

START_TEST(blocks_are_widened_by_their_scales)
{
    float to[256];
    widen_one(8, 0xFD, 0, 0, to); /* Q8_0: -3 */
    ck_assert(to[0] == -3 && to[31] == -3);
    widen_one(2, 0x2F, 0, 0, to); /* Q4_0: 15 - 8 in front, 2 - 8 behind */
    ck_assert(to[0] == 7 && to[15] == 7 && to[16] == -6 && to[31] == -6);
    widen_one(12, 0x41, 0, 2, to); /* Q4_K: scales and minima of 1, then 1 | 1 << 4 and 4 | 1 << 4; quants 1 and 4 */
    ck_assert(to[0] == 1 * 1 - 1 && to[32] == 1 * 4 - 1 && to[128] == 17 * 1 - 20 && to[255] == 17 * 4 - 20);
    widen_one(13, 0x41, 0, 2, to); /* Q5_K: the fifth bits of the first and the seventh 32 are set */
    ck_assert(to[0] == 1 * 17 - 1 && to[32] == 1 * 4 - 1 && to[192] == 17 * 17 - 20 && to[255] == 17 * 4 - 20);
    widen_one(14, 0x41, 208, 208, to); /* Q6_K: a scale of 65; quants 1 | 1 << 4, 1, 4, 4 | 1 << 4, all less 32 */
    ck_assert(to[0] == 65 * (17 - 32) && to[32] == 65 * (1 - 32) && to[64] == 65 * (4 - 32) &&
              to[96] == 65 * (20 - 32));
}
END_TEST

START_TEST(a_number_beyond_float16_is_refused)
{
    unsigned char block[34];
    float to[32];
    const struct gguf_type *type = gguf_type_of(8);
    const attn_runtime runtime = attn_runtime_serial(NULL);
    const struct gguf_tensor tensor = {.name = "t", .type = type, .data = (char *)block, .count = 32};
    attn_error err;
    memset(block, 100, sizeof block);
    memcpy(block, "\xFF\x7B", 2); /* 65504 */
    ck_assert_int_eq(gguf_widen(&tensor, ATTN_F32, &runtime, to, &err), ATTN_OK);
    ck_assert(to[0] == 6550400);
    ck_assert_int_eq(gguf_widen(&tensor, ATTN_F16, &runtime, to, &err), ATTN_ERR_VALUE);
    ck_assert_str_eq(err.message, "the tensor t has a number that does not fit float16");
}
END_TEST

CHECK_MAIN("gguf")
{
    tcase_add_test(tests, metadata_and_tensors_are_found);
    tcase_add_test(tests, a_file_that_ends_anywhere_is_refused);
    tcase_add_test(tests, a_broken_rule_is_named);
    tcase_add_test(tests, a_key_that_is_there_twice_is_refused);
    tcase_add_test(tests, blocks_are_widened_by_their_scales);
    tcase_add_test(tests, a_number_beyond_float16_is_refused);
}
