/*
 * fuzz_model.c: a model's config.json, a NUL, and its file of tensors or its index: it is described within the file, or
 * refused with a sentence.
 */
#include <string.h>

#include "codec/checkpoint/description.h"
#include "codec/request/envelope.h"
#include "fuzz.h"

enum { ARENA_BYTES = 64 << 20 };

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    envelope_prepare();
    return 0;
}

static void check_blocks(const struct model_stack *stack, const struct checkpoint_model *model)
{
    for (size_t i = 0; i < stack->block_count; i++) {
        const struct model_block *block = &stack->blocks[i];
        fuzz_claim(block->slot < model->slots && block->layer < stack->layers, "a block has a slot and a layer");
        fuzz_claim(block->facts.dims.d_query == block->facts.dims.d_out, "a block gives what it takes");
    }
}

static void check_model(const struct checkpoint_model *model)
{
    fuzz_claim(model->stack_count == 1 || model->stack_count == 2, "a model has one stack or two");
    for (size_t i = 0; i < model->stack_count; i++) {
        const struct model_embedding *embedding = &model->stacks[i].embedding;
        fuzz_claim(model->stacks[i].block_count >= model->stacks[i].layers, "each layer has a block");
        fuzz_claim(embedding->words.data != NULL || embedding->kernel.data != NULL, "a model takes words or images");
        check_blocks(&model->stacks[i], model);
    }
    fuzz_claim(!model->has_head || model->head.words > 0, "a head has words");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *end = size > 0 ? memchr(data, '\0', size) : NULL;
    const size_t length = end != NULL ? (size_t)(end - text) : size, rest = end != NULL ? size - length - 1 : 0;
    attn_arena *arena = attn_arena_create(ARENA_BYTES);
    attn_error err = {.status = ATTN_OK};
    struct safetensors file;
    struct checkpoint_model model;
    const char *const *names;
    size_t count;
    if (arena == NULL)
        return 0;
    attn_status status = checkpoint_read_index((struct text_span){text, length}, arena, &names, &count, &err);
    fuzz_claim_told(status, &err);
    err = (attn_error){.status = ATTN_OK};
    status = safetensors_read(rest > 0 ? end + 1 : "", rest, arena, &file, &err);
    if (status == ATTN_OK) {
        struct checkpoint checkpoint = {
            .config = {text, length}, .tensors = file.tensors, .tensor_count = file.tensor_count};
        status = checkpoint_read_model(&checkpoint, arena, &model, &err);
        if (status == ATTN_OK)
            check_model(&model);
    }
    fuzz_claim_told(status, &err);
    attn_arena_destroy(arena);
    return 0;
}
