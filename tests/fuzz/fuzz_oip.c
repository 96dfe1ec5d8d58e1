/*
 * fuzz_oip.c: bodies of the Open Inference Protocol, with and without bytes behind the JSON, to their plan.
 *
 * The first byte, when it is no brace: bit 0, a kept layer is asked; bit 1, the two bytes behind it are the length of
 * the JSON; bits 2 and 3, what else the body could be; bit 4, a whole model is asked.
 */
#include <string.h>

#include "codec/oip/oip.h"
#include "codec/request/envelope.h"
#include "fuzz.h"

enum { ARENA_BYTES = 16 << 20, ASKS_LAYER = 1, HAS_BYTES = 2, REPOSITORY = 12, ASKS_WHOLE = 16 };

static const char layer[] = "{\"weights\":{\"query\":{\"weight\":[[1,0],[0,1]]},\"key\":{\"weight\":[[1,0],[0,1]]},"
                            "\"value\":{\"weight\":[[1,0],[0,1]]}},\"options\":{\"num_heads\":2}}";

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    envelope_prepare();
    return 0;
}

static void decode(const struct fuzz_input *input, size_t json_bytes, attn_arena *arena)
{
    const struct envelope_source base = {.text = layer, .length = strlen(layer)};
    attn_error err = {.status = ATTN_OK};
    struct oip_request request;
    struct oip_sent sent[ATTN_STEP_COUNT];
    attn_plan plan;
    const struct oip_raw raw = {2, ATTN_F32};
    const bool asks_layer = input->choice & ASKS_LAYER;
    attn_status status = oip_decode(input->text, input->length, json_bytes, asks_layer ? &base : NULL,
                                    asks_layer ? &raw : NULL, arena, &request, &err);
    fuzz_claim_told(status, &err);
    if (status != ATTN_OK)
        return;
    status = attn_plan_make(&request.envelope.request, &plan, &err);
    fuzz_claim_told(status, &err);
    if (status != ATTN_OK)
        oip_translate(&err);
    else
        oip_send_steps(&request, plan.step, sent);
    fuzz_claim(status != ATTN_OK || oip_bound(&request, sent) > 0, "answers have a bound");
    fuzz_claim(request.output_count <= ATTN_STEP_COUNT, "outputs are counted");
}

static void decode_whole(const struct fuzz_input *input, size_t json_bytes, attn_arena *arena)
{
    attn_error err = {.status = ATTN_OK};
    struct oip_request request;
    const attn_status status =
        oip_decode_whole(input->text, input->length, json_bytes, input->choice & ASKS_LAYER, arena, &request, &err);
    fuzz_claim_told(status, &err);
    if (status != ATTN_OK)
        return;
    const struct oip_model_inputs *whole = &request.whole;
    fuzz_claim(whole->batch > 0 && (whole->texts == NULL) != (whole->ids == NULL), "there is one input");
    for (size_t i = 0; i < whole->batch; i++)
        fuzz_claim(whole->texts == NULL || whole->texts[i].at[whole->texts[i].length] == '\0', "texts are whole");
    fuzz_claim(request.output_count <= 3, "outputs are counted");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = fuzz_read(data, size, '{');
    size_t json_bytes = OIP_ALL_JSON;
    if ((input.choice & HAS_BYTES) && input.length >= 2) {
        json_bytes = (size_t)(unsigned char)input.text[0] << 8 | (unsigned char)input.text[1];
        input.text += 2;
        input.length -= 2;
    }
    attn_arena *arena = attn_arena_create(ARENA_BYTES);
    if (input.choice & REPOSITORY) {
        attn_error err = {.status = ATTN_OK};
        const oip_repository_kind kind = (oip_repository_kind)((input.choice >> 2 & 3) % 3);
        fuzz_claim_told(oip_check_repository(input.text, input.length, kind, arena, &err), &err);
    }
    if (input.choice & ASKS_WHOLE)
        decode_whole(&input, json_bytes, arena);
    else
        decode(&input, json_bytes, arena);
    attn_arena_destroy(arena);
    return 0;
}
