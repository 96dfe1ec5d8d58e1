/*
 * fuzz_envelope.c: JSON bodies of every kind of request, to their plan.
 */
#include <jansson.h>
#include <string.h>

#include "attn/gradient.h"
#include "codec/request/envelope.h"
#include "fuzz.h"

enum { ARENA_BYTES = 32 << 20 };

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    envelope_prepare();
    return 0;
}

/* jansson on the whole body, tensors and all: the two passes of ours may take nothing that it does not. */
static bool is_json(const char *text, size_t length)
{
    json_error_t error;
    json_t *tree = json_loadb(text, length, JSON_DECODE_INT_AS_REAL | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    json_decref(tree);
    return tree != NULL || json_error_code(&error) == json_error_numeric_overflow;
}

static void plan(const struct envelope *envelope, bool is_gradients)
{
    attn_error err = {.status = ATTN_OK};
    attn_plan plan;
    attn_gradient_plan back;
    const attn_gradient_request request = {&envelope->request, envelope->grad_output, envelope->of};
    attn_status status =
        is_gradients ? attn_gradient_plan_make(&request, &back, &err) : attn_plan_make(&envelope->request, &plan, &err);
    fuzz_claim_told(status, &err);
    if (status == ATTN_OK && !is_gradients)
        fuzz_claim(attn_plan_bytes(&plan, 2) >= plan.result_bytes, "a run takes at least its result");
}

static void decode(const struct fuzz_input *input, envelope_kind kind)
{
    attn_arena *arena = attn_arena_create(ARENA_BYTES);
    attn_error err = {.status = ATTN_OK};
    struct envelope envelope;
    attn_status status = envelope_decode(input->text, input->length, kind, arena, &envelope, &err);
    fuzz_claim_told(status, &err);
    if (status == ATTN_OK) {
        fuzz_claim(is_json(input->text, input->length), "only JSON is taken");
        plan(&envelope, envelope_is_gradients(kind));
    }
    attn_arena_destroy(arena);
}

/* A request to a kept layer: the text is its own, or the layer's. */
static void decode_over(const struct fuzz_input *input, bool is_layer)
{
    static const char usual[] = "{\"weights\":{\"query\":{\"weight\":[[1,0],[0,1]]},\"key\":{\"weight\":[[1,0],[0,1]]},"
                                "\"value\":{\"weight\":[[1,0],[0,1]]}},\"options\":{\"num_heads\":2}}";
    static const char ask[] = "{\"inputs\":{\"query\":[[1,2],[3,4]]}}";
    const struct envelope_source base = is_layer
                                            ? (struct envelope_source){.text = input->text, .length = input->length}
                                            : (struct envelope_source){.text = usual, .length = strlen(usual)};
    const char *text = is_layer ? ask : input->text;
    const size_t length = is_layer ? strlen(ask) : input->length;
    attn_arena *arena = attn_arena_create(ARENA_BYTES);
    attn_error err = {.status = ATTN_OK};
    struct envelope envelope;
    attn_status status = envelope_decode_over(&base, &(struct envelope_source){.text = text, .length = length},
                                              ENVELOPE_LAYER, arena, &envelope, &err);
    fuzz_claim_told(status, &err);
    if (status == ATTN_OK)
        plan(&envelope, false);
    attn_arena_destroy(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct fuzz_input input = fuzz_read(data, size, '{');
    if (input.choice == 0) {
        decode(&input, ENVELOPE_ATTENTION);
        decode(&input, ENVELOPE_LAYER);
    } else if (input.choice % 4 == 0) {
        decode(&input, ENVELOPE_ATTENTION_GRADIENTS);
    } else if (input.choice % 4 == 1) {
        decode(&input, ENVELOPE_LAYER_GRADIENTS);
    } else {
        decode_over(&input, input.choice % 4 == 2);
    }
    return 0;
}
