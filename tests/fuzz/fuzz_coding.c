/*
 * fuzz_coding.c: gzip and zstd: nothing is expanded beyond its limit, and what was compressed comes back.
 */
#include <stdlib.h>
#include <string.h>

#include "codec/bytes/coding.h"
#include "fuzz.h"

enum { ARENA_BYTES = 32 << 20, LIMIT = 64 << 10 };

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    return 0;
}

static void expand(enum coding coding, const struct fuzz_input *input)
{
    attn_arena *arena = attn_arena_create(ARENA_BYTES);
    attn_error err = {.status = ATTN_OK};
    struct text_span text = {NULL, 0};
    size_t limit = input->choice & 128 ? 100 : LIMIT;
    attn_status status =
        coding_expand(coding, (struct text_span){input->text, input->length}, limit, arena, &text, &err);
    fuzz_claim_told(status, &err);
    fuzz_claim(status != ATTN_OK || (text.length <= limit && (text.length == 0 || text.at != NULL)),
               "no more comes out than the limit");
    attn_arena_destroy(arena);
}

/* In two parts, cut where the input says. */
static void there_and_back(enum coding coding, const struct fuzz_input *input)
{
    attn_arena *arena = attn_arena_create(ARENA_BYTES);
    attn_error err = {.status = ATTN_OK};
    struct chunks out = chunks_begin(arena);
    struct text_span text = {NULL, 0};
    size_t cut = input->length > 0 ? (unsigned char)input->text[0] % input->length : 0;
    struct compressor *compressor = compressor_begin(coding, input->length, arena);
    fuzz_claim(compressor != NULL, "there is memory to compress");
    compressor_take(compressor, input->text, cut, false, &out);
    compressor_take(compressor, input->text + cut, input->length - cut, true, &out);
    const char *packed = chunks_join(&out);
    fuzz_claim(packed != NULL, "there is memory for what was compressed");
    attn_status status =
        coding_expand(coding, (struct text_span){packed, out.total_bytes}, input->length, arena, &text, &err);
    fuzz_claim(status == ATTN_OK && text.length == input->length && memcmp(text.at, input->text, text.length) == 0,
               "what was compressed comes back");
    attn_arena_destroy(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = fuzz_read(data, size, '\x1f');
    const enum coding coding = input.choice == 0 ? CODING_GZIP : (enum coding)(input.choice % CODING_COUNT);
    expand(coding, &input);
    if (input.length <= LIMIT && input.choice & 64)
        there_and_back(coding, &input);
    return 0;
}
