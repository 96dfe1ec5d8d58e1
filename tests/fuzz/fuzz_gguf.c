/*
 * fuzz_gguf.c: GGUF files: what is read lies within the file, the model is described or refused with a sentence, and a
 * tokenizer that is made can be read, or is refused with a sentence.
 */
#include "codec/checkpoint/description.h"
#include "codec/gguf/gguf.h"
#include "codec/request/envelope.h"
#include "codec/tokenizer/encoding.h"
#include "fuzz.h"

enum { ARENA_BYTES = 64 << 20 };

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    envelope_prepare();
    return 0;
}

static void check_within(const struct gguf *file, const char *body, size_t bytes)
{
    const char *at = body;
    for (size_t i = 0; i < file->tensor_count; i++) {
        const struct gguf_tensor *tensor = &file->tensors[i];
        fuzz_claim(tensor->data >= at && tensor->bytes <= (size_t)(body + bytes - tensor->data),
                   "data lies one behind the other, within the file");
        at = tensor->data + tensor->bytes;
    }
    for (size_t i = 0; i < file->value_count; i++) {
        const struct gguf_value *value = &file->values[i];
        fuzz_claim(value->at >= body && value->bytes <= (size_t)(body + bytes - value->at), "a value lies in the file");
    }
}

static void describe(const struct gguf *file, attn_arena *arena)
{
    attn_error err = {.status = ATTN_OK};
    const attn_runtime runtime = attn_runtime_serial(NULL);
    struct checkpoint checkpoint;
    struct checkpoint_model model;
    attn_status status = gguf_describe(file, NULL, &runtime, arena, &checkpoint, &err);
    if (status == ATTN_OK)
        status = checkpoint_read_model(&checkpoint, arena, &model, &err);
    fuzz_claim_told(status, &err);
    fuzz_claim(status != ATTN_ERR_SYNTAX, "the configuration is JSON");
}

static void make_tokenizer(const struct gguf *file, attn_arena *arena)
{
    attn_error err = {.status = ATTN_OK};
    attn_arena *scratch = attn_arena_create(ARENA_BYTES);
    struct text_span text;
    const struct tokenizer *tokenizer;
    attn_status status = scratch != NULL ? gguf_tokenizer(file, arena, scratch, &text, &err) : ATTN_OK;
    if (scratch != NULL && status == ATTN_OK && text.at != NULL)
        status = tokenizer_load(text.at, text.length, arena, scratch, &tokenizer, &err);
    fuzz_claim_told(status, &err);
    attn_arena_destroy(scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *body = (const char *)data;
    attn_arena *arena = attn_arena_create(ARENA_BYTES);
    attn_error err = {.status = ATTN_OK};
    struct gguf file;
    if (arena == NULL)
        return 0;
    const attn_status status = gguf_read(body, size, arena, &file, &err);
    fuzz_claim_told(status, &err);
    if (status == ATTN_OK) {
        check_within(&file, body, size);
        describe(&file, arena);
        make_tokenizer(&file, arena);
    }
    attn_arena_destroy(arena);
    return 0;
}
