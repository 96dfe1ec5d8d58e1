/*
 * fuzz_request.c: whole requests to the services, from body to answer, within small limits: whatever comes is answered
 * or refused with a reason, and an answer in JSON is JSON.
 *
 * The first byte, when it is no brace, says how the rest is meant; see choose.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "attn/runtime.h"
#include "codec/bytes/coding.h"
#include "codec/request/envelope.h"
#include "fuzz.h"
#include "service/cache/cache.h"
#include "service/endpoints.h"
#include "service/registry/layer/keeper.h"

enum { ARENA_BYTES = 16 << 20, ANSWER_BYTES = 1 << 20, BODY_BYTES = 256 << 10, DEADLINE_LOOKS = 20000 };

static const struct log silence = {.fd = 2, .format = LOG_TEXT, .level = LOG_OFF};
static const struct font_set no_fonts;
static struct layer_keeper *layers;
static struct cache_store *caches;
static const struct text_span names[2] = {{"attention", 9}, {"1", 1}};
static const struct text_span kept_name[2] = {{"kept", 4}, {"", 0}};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static const struct layer_settings settings = {.max_count = 2, .max_bytes = 1 << 20, .older = 1};
    char message[320];
    (void)argc, (void)argv;
    attn_blas_use_one_thread();
    envelope_prepare();
    layers = layer_keeper_open(&settings, &silence, message, sizeof message);
    caches = cache_store_create(1 << 16, 4, 60);
    fuzz_claim(layers != NULL && caches != NULL, "layers and caches can be kept");
    return 0;
}

/* One service and the forms of body and answer. */
struct way {
    service_function *service;
    const struct text_span *names;
    enum media body, answer;
};

static const struct way ways[] = {
    {attend_attention, names, MEDIA_JSON, MEDIA_JSON},
    {attend_layer, names, MEDIA_JSON, MEDIA_JSON},
    {gradients_attention, names, MEDIA_JSON, MEDIA_JSON},
    {gradients_layer, names, MEDIA_JSON, MEDIA_JSON},
    {infer_run, names, MEDIA_JSON, MEDIA_JSON},
    {infer_run, names, MEDIA_BINARY, MEDIA_JSON},
    {layers_put, kept_name, MEDIA_JSON, MEDIA_JSON},
    {attend_kept, kept_name, MEDIA_JSON, MEDIA_JSON},
    {gradients_kept, kept_name, MEDIA_JSON, MEDIA_JSON},
    {attend_attention, names, MEDIA_JSON, MEDIA_SAFETENSORS},
    {attend_layer, names, MEDIA_JSON, MEDIA_CSV},
    {attend_attention, names, MEDIA_JSON, MEDIA_CSV},
    {attend_attention, names, MEDIA_JSON, MEDIA_SVG},
    {attend_attention, names, MEDIA_JSON, MEDIA_PNG},
    {attend_attention, names, MEDIA_SAFETENSORS, MEDIA_JSON},
    {attend_layer, names, MEDIA_SAFETENSORS, MEDIA_SAFETENSORS},
    {layers_put, kept_name, MEDIA_SAFETENSORS, MEDIA_JSON},
};

enum { WAYS = sizeof ways / sizeof ways[0] };

/* Counts how often a computation looks, which unlike time is the same on every machine. */
static bool is_late(void *context)
{
    size_t *looks = context;
    return ++*looks > DEADLINE_LOOKS;
}

static void check_answer(const struct call *call)
{
    json_error_t error;
    if (call->in.answer_media != MEDIA_JSON || call->out->total_bytes == 0)
        return;
    const char *text = chunks_join(call->out);
    const size_t length = call->answer_json_bytes > 0 ? call->answer_json_bytes : call->out->total_bytes;
    if (text == NULL)
        return;
    json_t *tree = json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    fuzz_claim(tree != NULL || json_error_code(&error) == json_error_out_of_memory, "an answer in JSON is JSON");
    json_decref(tree);
}

static void ask(const struct way *way, const char *body, size_t bytes, attn_arena *arena)
{
    attn_runtime runtime = attn_runtime_serial(NULL);
    size_t looks = 0;
    runtime.is_cancelled = is_late;
    runtime.cancel_context = &looks;
    attn_error err = {.status = ATTN_OK};
    struct chunks out = chunks_begin(arena);
    const bool has_json_bytes = way->body == MEDIA_BINARY && bytes >= 2;
    const size_t before_body = has_json_bytes ? 2 : 0;
    struct call call = {
        .in.body = body + before_body,
        .in.body_bytes = bytes - before_body,
        .in.has_json_bytes = has_json_bytes,
        .in.json_bytes = has_json_bytes ? (size_t)(unsigned char)body[0] << 8 | (unsigned char)body[1] : 0,
        .in.body_media = way->body,
        .in.answer_media = way->answer,
        .in.names = way->names,
        .in.limits = {.result_bytes = ANSWER_BYTES, .memory_bytes = ARENA_BYTES, .flops = 1e7},
        .in.layers = layers,
        .in.caches = caches,
        .in.key = "",
        .in.runtime = &runtime,
        .in.fonts = &no_fonts,
        .out = &out,
        .err = &err,
    };
    const attn_status status = way->service(&call);
    fuzz_claim_told(status, &err);
    if (status == ATTN_OK)
        check_answer(&call);
    version_release(call.version);
}

/* Low four bits: the way; the two above: a coding of the body. A brace in front, as in all cases, asks the first two.
 */
static void choose(const struct fuzz_input *input, attn_arena *arena)
{
    struct text_span body = {input->text, input->length};
    attn_error err = {.status = ATTN_OK};
    const unsigned coded = input->choice >> 4 & 3;
    if (coded != 0) {
        const enum coding coding = coded == 1 ? CODING_GZIP : coded == 2 ? CODING_ZSTD : CODING_DEFLATE;
        const attn_status status = coding_expand(coding, body, BODY_BYTES, arena, &body, &err);
        fuzz_claim_told(status, &err);
        if (status != ATTN_OK)
            return;
    }
    if (input->choice == 0)
        ask(&ways[1], body.at, body.length, arena);
    ask(&ways[input->choice % WAYS], body.at, body.length, arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct fuzz_input input = fuzz_read(data, size, '{');
    attn_arena *arena = attn_arena_create(ARENA_BYTES);
    fuzz_claim(arena != NULL, "there is memory for a request");
    choose(&input, arena);
    attn_arena_destroy(arena);
    return 0;
}
