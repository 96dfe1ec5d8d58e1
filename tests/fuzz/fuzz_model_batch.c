/*
 * fuzz_model_batch.c: JSON bodies of requests to whole models, to what the model runs on and what the answer says of it.
 *
 * The first byte chooses the model, and whether the request is for attention or for tokens.
 */
#include <jansson.h>
#include <string.h>

#include "attn/model.h"
#include "codec/request/envelope.h"
#include "fuzz.h"
#include "service/run/batch/batch.h"

enum { ARENA_BYTES = 32 << 20, WORDS = 7, WIDTH = 2, LONGEST = 6, MODELS = 5 };

static const char tokenizer_text[] =
    "{\"added_tokens\":[{\"id\":0,\"content\":\"[U]\",\"special\":true}],\"post_processor\":{\"type\":\"BertProcessing\","
    "\"sep\":[\"[U]\",0],\"cls\":[\"b\",3]},\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\"decoder\":{\"type\":"
    "\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true},\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[U]\",\"vocab\":"
    "{\"[U]\":0,\"a\":1,\"##a\":2,\"b\":3,\"##b\":4,\".\":5}}}";

static char nothing[1];
/* With a tokenizer; with two stacks; without a tokenizer; for images; for audio. */
static struct model_version models[MODELS] = {{.common.name = "text"},
                                              {.common.name = "two"},
                                              {.common.name = "bare"},
                                              {.common.name = "image"},
                                              {.common.name = "audio"}};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    envelope_prepare();
    attn_arena *scratch = attn_arena_create(ARENA_BYTES);
    const struct tokenizer *tokenizer;
    models[0].files.arena = attn_arena_create(ARENA_BYTES);
    fuzz_claim(tokenizer_load(tokenizer_text, strlen(tokenizer_text), models[0].files.arena, scratch, &tokenizer,
                              NULL) == ATTN_OK,
               "the tokenizer can be used");
    attn_arena_destroy(scratch);
    const attn_tensor table = attn_tensor_view(nothing, ATTN_F32, 2, (const size_t[]){WORDS, WIDTH});
    for (size_t i = 0; i < MODELS; i++) {
        struct checkpoint_model *model = &models[i].model;
        *model = (struct checkpoint_model){
            .stack_count = i == 1 || i == 4 ? 2 : 1, .longest = LONGEST, .decoder_start_id = 5};
        models[i].tokenizer = i < 2 || i == 4 ? tokenizer : NULL;
        model->stacks[0].embedding = (struct model_embedding){.words = table, .types = table};
        model->stacks[1].embedding = (struct model_embedding){.words = table};
    }
    models[3].model.stacks[0].embedding = (struct model_embedding){
        .kernel = attn_tensor_view(nothing, ATTN_F32, 4, (const size_t[]){WIDTH, 1, 1, 1}), .image = 2};
    models[4].model.stacks[0].embedding = (struct model_embedding){
        .kernel = attn_tensor_view(nothing, ATTN_F32, 3, (const size_t[]){WIDTH, 1, 3}),
        .second_kernel = attn_tensor_view(nothing, ATTN_F32, 3, (const size_t[]){WIDTH, WIDTH, 3}),
        .positions = table};
    return 0;
}

static void check_sequence(const struct model_sequence *sequence, bool is_run)
{
    fuzz_claim(!is_run || sequence->ids == NULL || sequence->count <= LONGEST, "no sequence is too long");
    fuzz_claim(sequence->audio.data == NULL || sequence->audio.shape[0] <= (size_t)2 * WORDS * ATTN_AUDIO_HOP,
               "no sound is too long");
    for (size_t i = 0; is_run && sequence->ids != NULL && i < sequence->count; i++)
        fuzz_claim(sequence->ids[i] >= 0 && sequence->ids[i] < WORDS, "every id has a row");
    for (size_t i = 0; is_run && sequence->types != NULL && i < sequence->count; i++)
        fuzz_claim(sequence->types[i] >= 0 && sequence->types[i] < WORDS, "every type has a row");
}

/* Whether a member of an answer, whose closing brace comes here, is JSON. */
static void check_json(struct chunks *out)
{
    json_error_t error;
    chunks_text(out, "}");
    const char *text = chunks_join(out);
    fuzz_claim(text != NULL, "there is memory for the answer");
    json_t *tree = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    fuzz_claim(tree != NULL, "what is written is JSON");
    json_decref(tree);
}

static void check_written(const struct model_batch *batch, bool is_run, attn_arena *arena)
{
    struct chunks out = chunks_begin(arena);
    chunks_text(&out, "{");
    if (is_run) {
        chunks_text(&out, "\"tokens\":");
        model_batch_write_tokens(batch, &out);
        chunks_text(&out, ",\"lengths\":");
        model_batch_write_lengths(batch, &out);
    } else {
        model_batch_write_columns(batch, &out);
    }
    fuzz_claim(out.total_bytes <= model_batch_tokens_bound(batch), "no text is longer than its bound");
    check_json(&out);
    out = chunks_begin(arena);
    chunks_text(&out, "{");
    size_t count = 0;
    model_batch_add_hints(batch, &count, &out);
    chunks_text(&out, count > 0 ? "]" : "");
    check_json(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct fuzz_input input = fuzz_read(data, size, '{');
    const struct model_version *version = &models[input.choice % MODELS];
    const bool is_run = input.choice / MODELS % 2 == 0;
    const model_request_kind kind = is_run ? MODEL_REQUEST_ATTENTION : MODEL_REQUEST_TOKENS;
    attn_arena *arena = attn_arena_create(ARENA_BYTES);
    attn_error err = {.status = ATTN_OK};
    struct model_request request;
    struct model_batch batch;
    attn_status status = model_request_decode(input.text, input.length, kind, arena, &request, &err);
    if (status == ATTN_OK)
        status = model_batch_make(&batch, version, &request, kind, arena, &err);
    fuzz_claim_told(status, &err);
    for (size_t item = 0; status == ATTN_OK && item < request.inputs.batch; item++)
        for (size_t stack = 0; stack < 2; stack++)
            check_sequence(&batch.items[item].of[stack], is_run);
    if (status == ATTN_OK)
        check_written(&batch, is_run, arena);
    attn_arena_destroy(arena);
    return 0;
}
