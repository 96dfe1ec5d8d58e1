/*
 * test_pace.c: work on texts looks at its deadline often enough: looks are counted, never time. At 20 MB/s, which the
 * slowest of it keeps, one look per 256 KiB is one per 13 ms; most is ten times as fast, and looks four times as often.
 */
#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "codec/coding.h"
#include "codec/pace.h"

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

/* The members and frames of a body that gives nothing, and a body that gives BODY times 'a'. */
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
    const char *text;
    size_t bytes;
    return coding_expand(coding, body, length, 2 * BODY, arena, &text, &bytes, err);
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
    ck_assert_uint_eq(looks, 1);
    end();
    free(text);
}
END_TEST

int main(void)
{
    TCase *tests = check_case("pace");
    tcase_add_loop_test(tests, expanding_nothing_looks, 0, COUNT(empties));
    tcase_add_loop_test(tests, expanding_and_compressing_much_looks, 0, CODING_COUNT);
    return check_run("pace", tests);
}
