/*
 * fuzz_safetensors.c: files of tensors: what is read lies within the file, covers it, and reads back when written.
 */
#include <stdlib.h>
#include <string.h>

#include "codec/request/envelope.h"
#include "codec/request/kept_layer.h"
#include "codec/tensor/safetensors.h"
#include "fuzz.h"
#include "safetensors_find.h"

enum { ARENA_BYTES = 16 << 20 };

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    envelope_prepare();
    return 0;
}

/* Tensors stand in the order of their data. */
static void check_covered(const struct safetensors *file, const char *body, size_t bytes)
{
    uint64_t header;
    memcpy(&header, body, sizeof header);
    const char *at = body + sizeof header + header;
    for (size_t i = 0; i < file->tensor_count; i++) {
        const struct safetensors_tensor *tensor = &file->tensors[i];
        fuzz_claim(tensor->data == at && tensor->bytes <= (size_t)(body + bytes - at),
                   "data lies one behind the other");
        fuzz_claim(safetensors_find(file, tensor->name) == tensor, "a name is there once");
        at += tensor->bytes;
    }
    fuzz_claim(at == body + bytes, "every byte belongs to a tensor");
}

static void check_back(const struct safetensors *file, attn_arena *arena)
{
    attn_error err = {.status = ATTN_OK};
    struct safetensors_entry *entries = attn_arena_take(arena, file->tensor_count, sizeof *entries);
    struct chunks out = chunks_begin(arena);
    struct safetensors again;
    if (entries == NULL)
        return;
    for (size_t i = 0; i < file->tensor_count; i++) {
        entries[i].name = file->tensors[i].name;
        const attn_status status = safetensors_view(&file->tensors[i], &entries[i].tensor, &err);
        fuzz_claim_told(status, &err);
        if (status != ATTN_OK)
            return;
    }
    safetensors_write(entries, file->tensor_count, file->metadata, file->metadata_count, &out);
    const char *text = chunks_join(&out);
    if (!out.is_ok || text == NULL)
        return;
    fuzz_claim(out.total_bytes <=
                   safetensors_write_bound(entries, file->tensor_count, file->metadata, file->metadata_count),
               "a file is no larger than was foretold");
    const attn_status status = safetensors_read(text, out.total_bytes, arena, &again, &err);
    fuzz_claim(status == ATTN_OK && again.tensor_count == file->tensor_count &&
                   again.metadata_count == file->metadata_count,
               "what is written reads back");
    for (size_t i = 0; i < file->tensor_count; i++) {
        const struct safetensors_tensor *was = &file->tensors[i], *is = safetensors_find(&again, was->name);
        fuzz_claim(is != NULL && is->dtype == was->dtype && is->rank == was->rank && is->bytes == was->bytes &&
                       memcmp(is->data, was->data, is->bytes) == 0,
                   "a tensor reads back");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *body = (const char *)data;
    attn_arena *arena = attn_arena_create(ARENA_BYTES);
    attn_error err = {.status = ATTN_OK};
    struct safetensors file;
    struct envelope envelope;
    struct envelope_source base;
    struct kept_layer_facts facts;
    attn_status status = safetensors_read(body, size, arena, &file, &err);
    fuzz_claim_told(status, &err);
    if (status == ATTN_OK) {
        check_covered(&file, body, size);
        check_back(&file, arena);
        for (int kind = 0; kind < 2; kind++) {
            status = envelope_decode_safetensors(body, size, kind ? ENVELOPE_LAYER : ENVELOPE_ATTENTION, arena,
                                                 &envelope, &err);
            fuzz_claim_told(status, &err);
        }
        status = kept_layer_read(body, size, arena, &base, &facts, &err);
        fuzz_claim_told(status, &err);
    }
    attn_arena_destroy(arena);
    return 0;
}
