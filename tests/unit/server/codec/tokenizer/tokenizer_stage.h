/*
 * tokenizer_stage.h: for tests of tokenizers: arenas per test, files, and a tokenizer from text.
 */
#ifndef TESTS_UNIT_SERVER_CODEC_TOKENIZER_TOKENIZER_STAGE_H
#define TESTS_UNIT_SERVER_CODEC_TOKENIZER_TOKENIZER_STAGE_H

#include <stdio.h>
#include <string.h>

#include "check_main.h"
#include "codec/json/tree.h"
#include "codec/tokenizer/encoding.h"

static attn_arena *arena, *scratch;
static attn_error err;

static inline void prepare(void)
{
    json_tree_prepare();
    arena = attn_arena_create((size_t)1 << 30);
    scratch = attn_arena_create((size_t)1 << 30);
    ck_assert_ptr_nonnull(arena);
    ck_assert_ptr_nonnull(scratch);
}

static inline void release(void)
{
    attn_arena_destroy(arena);
    attn_arena_destroy(scratch);
}

/* The whole file, in the arena. */
static inline struct text_span read_whole(const char *path)
{
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "no %s", path);
    fseek(file, 0, SEEK_END);
    const long length = ftell(file);
    rewind(file);
    char *text = attn_arena_take(arena, (size_t)length + 1, 1);
    ck_assert_uint_eq(fread(text, 1, (size_t)length, file), (size_t)length);
    fclose(file);
    return (struct text_span){text, (size_t)length};
}

static inline const struct tokenizer *load_text(struct text_span text)
{
    const struct tokenizer *tokenizer = NULL;
    err = (attn_error){0};
    const attn_status status = tokenizer_load(text.at, text.length, arena, scratch, &tokenizer, &err);
    ck_assert_msg(status == ATTN_OK, "%s", err.message);
    return tokenizer;
}

/* Of a text that slow_convert made. */
static inline const struct tokenizer *load_slow(struct text_span text)
{
    const struct tokenizer *tokenizer = NULL;
    err = (attn_error){0};
    const attn_status status = tokenizer_load_slow(text, arena, scratch, &tokenizer, &err);
    ck_assert_msg(status == ATTN_OK, "%s", err.message);
    return tokenizer;
}

static inline struct tokenizer_output encode(const struct tokenizer *tokenizer, const struct tokenizer_input *input)
{
    struct tokenizer_output output = {NULL, 0};
    err = (attn_error){0};
    const attn_status status = tokenizer_encode(tokenizer, input, arena, scratch, &output, &err);
    ck_assert_msg(status == ATTN_OK, "%s", err.message);
    return output;
}

/* "3:0-1 4!:1-2": the ids of the tokens, an ! behind an unknown one, and their offsets. */
static inline const char *said_ids(const struct tokenizer *tokenizer, const char *text)
{
    static char said[512];
    const struct tokenizer_output output = encode(tokenizer, &(struct tokenizer_input){.text = text_span_of(text)});
    size_t used = 0;
    said[0] = '\0';
    for (size_t i = 0; i < output.count && used < sizeof said; i++)
        used += (size_t)snprintf(said + used, sizeof said - used, "%s%u%s:%u-%u", i > 0 ? " " : "",
                                 (unsigned)output.tokens[i].id, output.tokens[i].is_unknown ? "!" : "",
                                 (unsigned)output.tokens[i].begin, (unsigned)output.tokens[i].end);
    return said;
}

#endif
