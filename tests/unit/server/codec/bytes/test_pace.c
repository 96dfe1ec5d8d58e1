/*
 * test_pace.c: work on texts checks its deadline often enough. The test counts checks, never time. The slowest work
 * reaches 20 MB/s, where one check per 256 KiB is one per 13 ms. Most work is ten times as fast, and checks four times
 * as often.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attended.h"
#include "check_main.h"
#include "codec/bytes/coding.h"
#include "codec/bytes/pace.h"
#include "codec/json/document.h"
#include "codec/json/tree.h"
#include "codec/request/envelope.h"

enum { ROOM = 256 << 20, BODY = 8 << 20, LOOKS_MIN = BODY / (256 << 10) };

static size_t looks, looks_allowed;
static attn_arena *arena;

static bool look(void *context)
{
    (void)context;
    return ++looks > looks_allowed;
}

static void begin(size_t allowed)
{
    looks = 0;
    looks_allowed = allowed;
    arena = attn_arena_create(ROOM);
    ck_assert_ptr_nonnull(arena);
    attn_arena_watch(arena, look, NULL);
}

static void end(void)
{
    attn_arena_destroy(arena);
}

/* BODY bytes of the same piece again and again. */
static char *repeat(const char *piece, size_t length)
{
    char *body = malloc(BODY);
    ck_assert_ptr_nonnull(body);
    for (size_t at = 0; at < BODY; at++)
        body[at] = piece[at % length];
    return body;
}

/* ---- bodies that are compressed ---- */

/* The members and frames of a body that expands to nothing, and a body that expands to BODY times 'a'. */
static const char empty_gzip[] = "\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\0";
static const char empty_zstd[] = "\x28\xb5\x2f\xfd\x20\0\x01\0\0", skipped_zstd[] = "\x50\x2a\x4d\x18\0\0\0\0";

static const struct {
    enum coding coding;
    const char *piece;
    size_t length;
} empties[] = {{CODING_GZIP, empty_gzip, sizeof empty_gzip - 1},
               {CODING_ZSTD, empty_zstd, sizeof empty_zstd - 1},
               {CODING_ZSTD, skipped_zstd, sizeof skipped_zstd - 1}};

static attn_status expand(enum coding coding, const char *body, size_t length, attn_error *err)
{
    struct text_span text;
    return coding_expand(coding, (struct text_span){body, length}, 2 * BODY, arena, &text, err);
}

START_TEST(expanding_nothing_looks)
{
    const size_t length = BODY / empties[_i].length * empties[_i].length;
    char *body = repeat(empties[_i].piece, empties[_i].length);
    attn_error err = {0};
    begin(SIZE_MAX);
    ck_assert_msg(expand(empties[_i].coding, body, length, &err) == ATTN_OK, "%s", err.message);
    ck_assert_uint_ge(looks, 10 * LOOKS_MIN); /* to begin and end them costs more than their bytes */
    end();
    begin(2);
    ck_assert_int_eq(expand(empties[_i].coding, body, length, &err), ATTN_ERR_CANCELLED);
    ck_assert_uint_eq(looks, 3);
    end();
    free(body);
}
END_TEST

/* Few bytes that expand to many, both ways. */
START_TEST(expanding_and_compressing_much_looks)
{
    char *text = repeat("a", 1);
    attn_error err = {0};
    begin(SIZE_MAX);
    struct chunks out = chunks_begin(arena);
    struct compressor *compressor = compressor_begin((enum coding)_i, BODY, arena);
    ck_assert_ptr_nonnull(compressor);
    compressor_take(compressor, text, BODY, true, &out);
    ck_assert(out.is_ok);
    ck_assert_uint_ge(looks, LOOKS_MIN);
    looks = 0;
    ck_assert_int_eq(expand((enum coding)_i, chunks_join(&out), out.total_bytes, &err), ATTN_OK);
    ck_assert_uint_ge(looks, LOOKS_MIN);
    looks_allowed = 0;
    ck_assert_int_eq(expand((enum coding)_i, chunks_join(&out), out.total_bytes, &err), ATTN_ERR_CANCELLED);
    end();
    begin(0);
    out = chunks_begin(arena);
    compressor = compressor_begin((enum coding)_i, BODY, arena);
    compressor_take(compressor, text, BODY, true, &out);
    ck_assert(!out.is_ok);
    ck_assert_uint_le(looks, 2);
    end();
    free(text);
}
END_TEST

/* ---- bodies that are read ---- */

static const struct {
    const char *before, *piece, *behind;
    bool is_read; /* else it is refused, at its end or because it is too long */
} bodies[] = {
    {"{\"inputs\":{\"query\":[[", "1.5,", "1]]}}", true},
    {"{\"inputs\":{\"query\":[[", "1.5, ", "1]]}}", true},
    {"{\"inputs\":{\"query\":[", "[1],", "[1]]}}", true},
    {"{\"inputs\":{\"query\":[", "[1] ,\n", "[1]]}}", true},
    {"{\"options\":{\"compute\":\"float64\"},\"inputs\":{\"query\":[[", "1.25,", "1]]}}", true},
    {"{\"inputs\":{\"query\":[[1]]},\"masks\":{\"attend\":[[", "true,", "true]]}}", true},
    {"{\"inputs\":{\"query\":[[1]]},\"masks\":{\"key_lengths\":[", "12,", "12]}}", true},
    {"", " ", "{\"inputs\":{\"query\":[[1]]}}", true},
    {"{", "\n", "\"inputs\":{\"query\":[[1]]}}", true},
    {"{\"inputs\":{\"query\":[[1", "                                ", "]]}}", true},
    {"{\"inputs\":{\"query\":{\"shape\":[1,1],\"dtype\":\"float32\",\"base64\":\"", "AAAA", "\"}}}", false},
    {"{\"inputs\":{\"query\":{\"shape\":[1,3145728],\"dtype\":\"float16\",\"base64\":\"", "AAAAAAAA", "\"}}}", true},
    {"{\"inputs\":{\"query\":", "[", "", false},
    {"{\"inputs\":{\"query\":[[1,\"", "\\\\", "\"]]}}", false},
    {"{\"inputs\":{\"query\":\"", "\\u00e7", "\"}}", false},
    {"{\"tokens\":\"", "a", "\"}", false},
    {"{\"tokens\":", "a", "}", false},
};

static char *make_body(size_t i, size_t *length)
{
    const size_t before = strlen(bodies[i].before), behind = strlen(bodies[i].behind), piece = strlen(bodies[i].piece);
    char *body = malloc(before + BODY + behind), *at = body;
    ck_assert_ptr_nonnull(body);
    memcpy(at, bodies[i].before, before);
    at += before;
    for (size_t n = 0; n < BODY / piece; n++, at += piece)
        memcpy(at, bodies[i].piece, piece);
    memcpy(at, bodies[i].behind, behind);
    *length = (size_t)(at - body) + behind;
    return body;
}

static attn_status read(const char *body, size_t length)
{
    static struct envelope envelope;
    attn_error err = {.status = ATTN_OK};
    return envelope_decode(body, length, ENVELOPE_ATTENTION, arena, &envelope, &err);
}

START_TEST(reading_a_body_looks)
{
    size_t length;
    char *body = make_body((size_t)_i, &length);
    envelope_prepare();
    begin(SIZE_MAX);
    const attn_status status = read(body, length);
    ck_assert_msg((status == ATTN_OK) == bodies[_i].is_read, "%s: %s", bodies[_i].piece, attn_status_name(status));
    ck_assert_msg(looks >= LOOKS_MIN, "%s: %zu looks", bodies[_i].piece, looks);
    end();
    begin(2);
    ck_assert_int_eq(read(body, length), ATTN_ERR_CANCELLED);
    ck_assert_uint_le(looks, 4); /* it ends at once; further checks only ask for the reason */
    end();
    free(body);
}
END_TEST

/* Spaces behind a long string are read for a colon first. */
START_TEST(spaces_behind_a_string_look)
{
    enum { STRING = 2048 };
    char *body = repeat(" ", 1);
    attn_error err = {0};
    struct skim skim;
    memset(body, 'a', STRING);
    body[0] = body[STRING - 1] = '"';
    begin(SIZE_MAX);
    ck_assert_int_eq(skim_body(body, BODY, STRING, 1, arena, &skim, &err), ATTN_OK);
    ck_assert_uint_ge(looks, 2 * ((BODY - STRING) / PACE_BYTES));
    end();
    begin(2);
    ck_assert_int_eq(skim_body(body, BODY, STRING, 1, arena, &skim, &err), ATTN_ERR_CANCELLED);
    ck_assert_uint_eq(looks, 3);
    end();
    free(body);
}
END_TEST

/* The lines before the place of an error are counted. */
START_TEST(finding_a_place_looks)
{
    char *body = repeat("abc\n", 4);
    attn_error err = {0};
    begin(SIZE_MAX);
    const struct skim skim = {.body = body, .body_length = BODY, .arena = arena};
    ck_assert_int_eq(skim_place(&skim, BODY - 2, ATTN_ERR_SYNTAX, &err), ATTN_ERR_SYNTAX);
    ck_assert_uint_eq(err.line, BODY / 4);
    ck_assert_uint_eq(err.column, 3);
    ck_assert_uint_ge(looks, BODY / PACE_BYTES - 1);
    looks = 0;
    looks_allowed = 2;
    ck_assert_int_eq(skim_place(&skim, BODY - 2, ATTN_ERR_SYNTAX, &err), ATTN_ERR_CANCELLED);
    ck_assert_uint_eq(looks, 3);
    end();
    free(body);
}
END_TEST

/* A NUL byte at the end is found before the body is read. */
START_TEST(finding_a_nul_looks)
{
    char *body = repeat(" ", 1);
    attn_error err = {0};
    struct document document;
    body[BODY / 2 + 1] = '\0';
    body[0] = '{';
    begin(0);
    ck_assert_int_eq(document_read(body, BODY, arena, &document, &err), ATTN_ERR_CANCELLED);
    ck_assert_uint_le(looks, 2);
    end();
    free(body);
}
END_TEST

START_TEST(joining_chunks_looks)
{
    char *text = repeat("a", 1);
    begin(SIZE_MAX);
    struct chunks chunks = chunks_begin(arena);
    chunks_borrow(&chunks, text, BODY);
    const char *joined = chunks_join(&chunks);
    ck_assert_ptr_nonnull(joined);
    ck_assert_uint_ge(looks, BODY / PACE_BYTES);
    ck_assert_uint_eq(strlen(joined), BODY);
    looks = looks_allowed = 0;
    ck_assert_ptr_null(chunks_join(&chunks));
    ck_assert_uint_eq(looks, 1);
    end();
    free(text);
}
END_TEST

/* ---- tensors beside the text ---- */

static const struct {
    const char *path;
    attn_dtype dtype;
    size_t from; /* the byte at which the numbers begin: floats at an odd one are copied */
} attachments[] = {
    {"inputs.query", ATTN_F32, 1},
    {"inputs.query", ATTN_F64, 0},
    {"masks.attend", ATTN_BOOL, 0},
    {"masks.key_lengths", ATTN_I32, 0},
};

static attn_status read_attached(char *data, size_t count, size_t at)
{
    static struct envelope envelope;
    attn_error err = {.status = ATTN_OK};
    const attn_tensor tensor =
        attn_tensor_view(data + attachments[at].from, attachments[at].dtype, 2, (size_t[]){1, count});
    const struct envelope_attachment attached[] = {
        {"inputs.query", attn_tensor_view(data, ATTN_F32, 2, (size_t[]){1, 1})}, {attachments[at].path, tensor}};
    const bool is_query = strcmp(attachments[at].path, attached[0].path) == 0;
    const struct envelope_source source = {
        .text = "", .attachments = is_query ? attached + 1 : attached, .count = is_query ? 1 : 2};
    return envelope_decode_attached(&source, ENVELOPE_ATTENTION, arena, &envelope, &err);
}

START_TEST(reading_attached_tensors_looks)
{
    const size_t count = BODY / attn_dtype_bytes(attachments[_i].dtype) - 1;
    char *data = calloc(1, BODY);
    ck_assert_ptr_nonnull(data);
    envelope_prepare();
    begin(SIZE_MAX);
    ck_assert_int_eq(read_attached(data, count, (size_t)_i), ATTN_OK);
    ck_assert_msg(looks >= count / PACE_BYTES, "%s: %zu looks", attachments[_i].path, looks);
    end();
    begin(2);
    ck_assert_int_eq(read_attached(data, count, (size_t)_i), ATTN_ERR_CANCELLED);
    ck_assert_uint_le(looks, 4);
    end();
    free(data);
}
END_TEST

/* An empty label costs more than its three bytes. */
START_TEST(reading_labels_looks)
{
    enum { LABELS = 300000 };
    static const char before[] = "{\"inputs\":{\"query\":[[1]]},\"tokens\":{\"query\":[", behind[] = "\"\"]}}";
    char *body = malloc(sizeof before + 3 * LABELS + sizeof behind), *at = body;
    ck_assert_ptr_nonnull(body);
    memcpy(at, before, sizeof before - 1);
    at += sizeof before - 1;
    for (size_t n = 0; n < LABELS; n++, at += 3)
        memcpy(at, "\"\",", 3);
    memcpy(at, behind, sizeof behind - 1);
    envelope_prepare();
    begin(SIZE_MAX);
    ck_assert_int_eq(read(body, (size_t)(at - body) + sizeof behind - 1), ATTN_ERR_SHAPE);
    ck_assert_uint_ge(looks, 3 * LABELS / (8 << 10) + LABELS * 16 / PACE_BYTES);
    end();
    free(body);
}
END_TEST

/* A tree needs many times the memory of its text. */
START_TEST(making_a_tree_looks)
{
    enum { TEXT = 900001 };
    char *body = malloc(TEXT);
    json_error_t error;
    json_tree_prepare();
    body[0] = '[';
    for (size_t i = 1; i < TEXT; i += 3)
        memcpy(body + i, "{},", 3);
    body[TEXT - 1] = ']';
    begin(SIZE_MAX);
    ck_assert_ptr_nonnull(json_tree_load(body, TEXT, arena, &error));
    ck_assert_uint_ge(looks, TEXT / (8 << 10));
    end();
    begin(2);
    ck_assert_ptr_null(json_tree_load(body, TEXT, arena, &error));
    ck_assert(json_tree_is_starved());
    ck_assert_uint_eq(looks, 3);
    end();
    free(body);
}
END_TEST

/* ---- answers that are written ---- */

static const struct {
    const char *options;
    enum media media;
} answers[] = {
    {"\"format\":\"nested\"", MEDIA_JSON},    {"\"format\":\"flat\"", MEDIA_JSON},
    {"\"format\":\"base64\"", MEDIA_JSON},    {"\"view\":\"bertviz\"", MEDIA_JSON},
    {"\"view\":\"circuitsvis\"", MEDIA_JSON}, {"\"view\":\"inspectus\"", MEDIA_JSON},
    {"\"view\":\"rows\"", MEDIA_JSON},        {"\"digits\":17", MEDIA_CSV},
};

START_TEST(writing_an_answer_looks)
{
    enum { LEN = 1000 };
    struct attended attended;
    char *text = malloc(8 * LEN + 200), *at = text;
    size_t length;
    at += sprintf(at, "{\"options\":{\"return\":[\"attention\"],%s},\"inputs\":{\"query\":[[1]", answers[_i].options);
    for (size_t i = 1; i < LEN; i++)
        at += sprintf(at, ",[%zu]", i % 7);
    sprintf(at, "]}}");
    begin(SIZE_MAX);
    const attn_runtime runtime = attn_runtime_serial(NULL);
    ck_assert_msg(attended_run(&attended, text, false, arena, &runtime) == ATTN_OK, "%s", attended.err.message);
    looks = 0;
    attended_answer(&attended, answers[_i].media, &length);
    ck_assert_uint_gt(length, LEN * LEN);
    ck_assert_msg(looks >= length / (512 << 10), "%s: %zu looks for %zu bytes", answers[_i].options, looks, length);
    looks_allowed = 0;
    struct chunks out = chunks_begin(arena);
    const struct answer answer = {&attended.envelope, &attended.shown, &attended.result};
    answer_write(&answer, answers[_i].media, &runtime, &out);
    ck_assert(!out.is_ok);
    end();
    free(text);
}
END_TEST

/* A request of many numbers that gives few: one cell of a pool, or lines without a key. */
static const char *const reductions[] = {
    "\"options\":{\"return\":[\"attention\"],\"pool\":{\"rows\":1,\"cols\":1,\"op\":\"mean\"}}",
    "\"options\":{\"return\":[\"attention\"],\"top_k\":1000},\"masks\":{\"key_lengths\":[0]}",
};

START_TEST(leaving_numbers_out_looks)
{
    enum { LEN = 1000 };
    struct attended attended;
    char *text = malloc(8 * LEN + 200), *at = text;
    size_t length;
    at += sprintf(at, "{%s,\"inputs\":{\"query\":[[1]", reductions[_i]);
    for (size_t i = 1; i < LEN; i++)
        at += sprintf(at, ",[%zu]", i % 7);
    sprintf(at, "]}}");
    begin(SIZE_MAX);
    const attn_runtime runtime = attn_runtime_serial(NULL);
    ck_assert_msg(attended_run(&attended, text, false, arena, &runtime) == ATTN_OK, "%s", attended.err.message);
    attended_answer(&attended, MEDIA_CSV, &length);
    ck_assert_msg(looks >= LEN * LEN / PACE_BYTES, "%s: %zu looks", reductions[_i], looks);
    ck_assert_uint_lt(length, LEN);
    end();
    free(text);
}
END_TEST

CHECK_MAIN("pace")
{
    tcase_add_loop_test(tests, expanding_nothing_looks, 0, COUNT(empties));
    tcase_add_loop_test(tests, expanding_and_compressing_much_looks, 0, CODING_COUNT);
    tcase_add_loop_test(tests, reading_a_body_looks, 0, COUNT(bodies));
    tcase_add_test(tests, spaces_behind_a_string_look);
    tcase_add_test(tests, finding_a_place_looks);
    tcase_add_test(tests, finding_a_nul_looks);
    tcase_add_test(tests, joining_chunks_looks);
    tcase_add_loop_test(tests, reading_attached_tensors_looks, 0, COUNT(attachments));
    tcase_add_test(tests, reading_labels_looks);
    tcase_add_test(tests, making_a_tree_looks);
    tcase_add_loop_test(tests, writing_an_answer_looks, 0, COUNT(answers));
    tcase_add_loop_test(tests, leaving_numbers_out_looks, 0, COUNT(reductions));
}
