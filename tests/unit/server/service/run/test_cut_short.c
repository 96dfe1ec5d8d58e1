/*
 * test_cut_short.c: runs every service with too little memory, and some bytes more each time. Each try is a clean
 * refusal, until one succeeds with the same answer as with ample memory. The same holds when each block of a request,
 * or each allocation of the JSON library, is refused in turn, and when a request is cancelled at each check in turn.
 *
 * The requests are those of tests/api/cases; the tables below have what is missing there.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attn/runtime.h"
#include "check_main.h"
#include "codec/request/envelope.h"
#include "failing_json.h"
#include "failing_take.h"
#include "service/cache/cache.h"
#include "service/cache/request.h"
#include "service/endpoints.h"
#include "service/registry/layer/keeper.h"
#include "service/registry/model/list.h"

enum { ROOMY_BYTES = 32 << 20, FINE_BYTES = 32 << 10, BODY_MAX = 1 << 20 };

static const struct log silence = {.fd = 2, .format = LOG_TEXT, .level = LOG_OFF};
static struct font_set fonts;
static struct layer_keeper *layers;
static struct cache_store *caches;
static struct models *models;

/* One request, with its path and media types. */
struct request {
    const char *name;
    service_function *service;
    const char *path_name;               /* what stands in the path */
    enum media body_media, answer_media; /* JSON when nothing is said */
    const char *body;
    size_t bytes; /* 0: up to the body's end */
    size_t json_bytes;
    struct text_pair parameter; /* of the query; name NULL: none */
};

/* The result of a request; the caller owns the bytes of the answer. */
struct outcome {
    attn_status status;
    attn_error err;
    char *answer;
    size_t bytes;
};

static size_t looks_left = SIZE_MAX;

static bool is_cancelled(void *context)
{
    (void)context;
    if (looks_left == 0)
        return true;
    looks_left--;
    return false;
}

static struct outcome ask(const struct request *request, size_t limit)
{
    struct outcome outcome = {.status = ATTN_ERR_NO_MEMORY};
    attn_runtime runtime = attn_runtime_serial(NULL);
    runtime.is_cancelled = is_cancelled;
    attn_arena *arena = attn_arena_create(limit);
    ck_assert_ptr_nonnull(arena);
    struct chunks out = chunks_begin(arena);
    const struct text_span names[] = {text_span_of(request->path_name), text_span_of("")};
    struct call call = {
        .in.body = request->body,
        .in.body_bytes = request->bytes > 0 ? request->bytes : strlen(request->body),
        .in.body_media = request->body_media,
        .in.answer_media = request->answer_media,
        .in.has_json_bytes = request->json_bytes > 0,
        .in.json_bytes = request->json_bytes,
        .in.names = names,
        .in.parameters = &request->parameter,
        .in.parameter_count = request->parameter.name != NULL,
        .in.limits = {.result_bytes = ROOMY_BYTES, .memory_bytes = ROOMY_BYTES, .flops = 1e9},
        .in.layers = layers,
        .in.models = models,
        .in.key = "",
        .in.caches = caches,
        .in.runtime = &runtime,
        .in.fonts = &fonts,
        .out = &out,
        .err = &outcome.err,
    };
    outcome.status = request->service(&call);
    if (outcome.status == ATTN_OK) {
        ck_assert(out.is_ok && !out.has_deferred);
        outcome.answer = malloc(out.total_bytes + 1);
        ck_assert_ptr_nonnull(outcome.answer);
        for (const struct chunk *chunk = out.first; chunk != NULL; chunk = chunk->next) {
            memcpy(outcome.answer + outcome.bytes, chunk->data, chunk->length);
            outcome.bytes += chunk->length;
        }
    }
    version_release(call.version);
    attn_arena_destroy(arena);
    return outcome;
}

static bool is_out_of_memory(const struct request *request, size_t limit, const struct outcome *outcome)
{
    if (outcome->status != ATTN_ERR_NO_MEMORY && outcome->status != ATTN_ERR_TOO_LARGE)
        return false;
    ck_assert_msg(outcome->err.status == outcome->status, "%s, %zu bytes: the record says %s", request->name, limit,
                  attn_status_name(outcome->err.status));
    ck_assert_msg(outcome->err.message[0] != '\0', "%s, %zu bytes: no message", request->name, limit);
    return true;
}

/* The answer to a put contains the time. */
static void check_same(const struct request *request, const struct outcome *tight, const struct outcome *roomy)
{
    ck_assert_msg(tight->status == roomy->status && strcmp(tight->err.field, roomy->err.field) == 0,
                  "%s: %s (%s), with room %s (%s)", request->name, attn_status_name(tight->status), tight->err.message,
                  attn_status_name(roomy->status), roomy->err.message);
    if (request->service == layers_put)
        return;
    ck_assert_msg(tight->bytes == roomy->bytes &&
                      (tight->bytes == 0 || memcmp(tight->answer, roomy->answer, tight->bytes) == 0),
                  "%s: another answer than with room", request->name);
}

/* Each limit in turn, in finer steps for small limits, where most allocations are. */
static void starve_by(const struct request *request, size_t step)
{
    struct outcome roomy = ask(request, ROOMY_BYTES), tight;
    ck_assert_msg(roomy.status != ATTN_ERR_NO_MEMORY, "%s: %s", request->name, roomy.err.message);
    for (size_t limit = 0;; limit += limit < FINE_BYTES ? step : limit / 32 / 64 * 64) {
        ck_assert_msg(limit <= ROOMY_BYTES, "%s: no memory is enough", request->name);
        tight = ask(request, limit);
        if (roomy.status == tight.status || !is_out_of_memory(request, limit, &tight))
            break;
    }
    check_same(request, &tight, &roomy);
    free(tight.answer);
    free(roomy.answer);
}

static void starve(const struct request *request)
{
    starve_by(request, 64);
}

/* There are many cases, and what one steps over another meets. */
static void starve_case(const struct request *request)
{
    starve_by(request, 192);
}

/* Refuses each block in turn, and grants all later ones. */
static void refuse_each(const struct request *request)
{
    const struct outcome roomy = ask(request, ROOMY_BYTES);
    bool was_refused = true;
    for (size_t take = 0; was_refused; take += one_in(5)) {
        fail_take(take);
        struct outcome cut = ask(request, ROOMY_BYTES);
        was_refused = take_has_failed();
        if (cut.status == roomy.status || !is_out_of_memory(request, take, &cut))
            check_same(request, &cut, &roomy);
        free(cut.answer);
    }
    free(roomy.answer);
}

/* Cancels at the first check, the second, … */
static void cancel(const struct request *request)
{
    const struct outcome roomy = ask(request, ROOMY_BYTES);
    struct outcome cut;
    for (size_t looks = 0;; looks += one_in(29)) {
        looks_left = looks;
        cut = ask(request, ROOMY_BYTES);
        looks_left = SIZE_MAX;
        if (cut.status != ATTN_ERR_CANCELLED)
            break;
        ck_assert_msg(cut.err.status == ATTN_ERR_CANCELLED && cut.err.message[0] != '\0', "%s, look %zu: %s",
                      request->name, looks, cut.err.message);
    }
    check_same(request, &cut, &roomy);
    free(cut.answer);
    free(roomy.answer);
}

/* ---- the cases ---- */

static char *read_file(const char *path)
{
    FILE *stream = fopen(path, "rb");
    ck_assert_msg(stream != NULL, "%s", path);
    char *text = malloc(BODY_MAX + 1);
    ck_assert_ptr_nonnull(text);
    const size_t length = fread(text, 1, BODY_MAX, stream);
    fclose(stream);
    ck_assert_uint_lt(length, BODY_MAX);
    text[length] = '\0';
    return text;
}

struct endpoint {
    const char *folder;
    service_function *service;
};

static const struct endpoint endpoints[] = {
    {"attention", attend_attention},
    {"multi-head-attention", attend_layer},
    {"attention-gradients", gradients_attention},
    {"multi-head-attention-gradients", gradients_layer},
};

static size_t each_case(const struct endpoint *endpoint, void (*try)(const struct request *request))
{
    char folder[128], path[512];
    size_t count = 0;
    snprintf(folder, sizeof folder, "tests/api/cases/%s", endpoint->folder);
    DIR *directory = opendir(folder);
    ck_assert_msg(directory != NULL, "%s: tests are run from the top folder", folder);
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s/request.json", folder, entry->d_name);
        char *body = read_file(path);
        const struct request request = {
            .name = entry->d_name, .service = endpoint->service, .path_name = "", .body = body};
        try(&request);
        free(body);
        count++;
    }
    closedir(directory);
    return count;
}

static void every_case(void (*try)(const struct request *request))
{
    for (size_t i = 0; i < COUNT(endpoints); i++)
        ck_assert_uint_gt(each_case(&endpoints[i], try), 3);
}

START_TEST(every_case_in_too_little_memory_is_refused_cleanly)
{
    every_case(starve_case);
}
END_TEST

START_TEST(every_case_has_each_of_its_blocks_refused)
{
    every_case(refuse_each);
}
END_TEST

START_TEST(every_case_is_cancelled_at_every_look)
{
    every_case(cancel);
}
END_TEST

/* ---- what the cases have none of ---- */

#define LAYER                                                                                                          \
    "{\"weights\":{\"qkv\":{\"weight\":[[1,0,1,0,1,0],[0,1,0,1,0,1]]},\"output\":{\"weight\":[[1,2],[3,4]],"           \
    "\"bias\":[0.5,0.25]}},\"masks\":{\"causal\":true},\"options\":{\"num_heads\":2}}"
#define LABELLED                                                                                                       \
    "{\"inputs\":{\"query\":[[1,2],[3,4],[5,6]]},\"tokens\":{\"query\":[\"a\\u00e7\",\"b\\\"\",\"<c&\"]},"             \
    "\"options\":{\"num_heads\":2,\"return\":[\"output\",\"attention\",\"masked\",\"mask\"]},\"masks\":{\"causal\":"   \
    "true}}"
#define BATCHED(options)                                                                                               \
    "{\"inputs\":{\"query\":[[[1,2],[3,4]],[[5,6],[7,8]]]},\"tokens\":{\"query\":[[\"a\",\"b\"],[\"c\","               \
    "\"\\u2003\\udb40\\udc01\"]]},"                                                                                    \
    "\"masks\":{\"causal\":true},\"options\":{\"num_heads\":2," options "}}"
#define ALONE(options)                                                                                                 \
    "{\"inputs\":{\"query\":[[1,2],[3,4],[5,6]]},\"tokens\":{\"query\":[\"a\",\"b\",\"c\"]},\"options\":{" options "}" \
    "}"
#define QUERY_V2 "{\"name\":\"QUERY\",\"shape\":[2,2],\"datatype\":\"FP32\",\"data\":[1,2,3,4]}"
#define HALVES_V2                                                                                                      \
    "{\"id\":\"7\",\"inputs\":[{\"name\":\"QUERY\",\"shape\":[2,2],\"datatype\":\"FP16\",\"parameters\":"              \
    "{\"binary_data_size\":8}}],\"parameters\":{\"binary_data_output\":true}}"

#define SHORTS_V2                                                                                                      \
    "{\"inputs\":[{\"name\":\"QUERY\",\"shape\":[2,2],\"datatype\":\"INT16\",\"parameters\":{\"binary_data_size\":8}}" \
    "]}"

/* Of /v1/attention, each answer in its form. */
static const struct {
    const char *name;
    enum media answer_media;
    const char *body, *parameter, *value; /* of the query; NULL: none */
} attentions[] = {
    {"csv", MEDIA_CSV, LABELLED, NULL, NULL},
    {"svg", MEDIA_SVG, LABELLED, NULL, NULL},
    {"png", MEDIA_PNG, LABELLED, NULL, NULL},
    {"tensors", MEDIA_SAFETENSORS, LABELLED, NULL, NULL},
    {"svg of a batch", MEDIA_SVG, BATCHED("\"heads\":[1,0]"), NULL, NULL},
    {"png of a batch", MEDIA_PNG, BATCHED("\"compute\":\"float64\""), NULL, NULL},
    {"svg of a batch of one head", MEDIA_SVG, BATCHED("\"heads\":[0]"), NULL, NULL},
    {"csv of a batch", MEDIA_CSV,
     BATCHED("\"return\":[\"q\",\"k\",\"v\",\"attention_mean\",\"lse\",\"mask\",\"output\"]"), NULL, NULL},
    {"bertviz", MEDIA_JSON, ALONE("\"view\":\"bertviz\",\"digits\":3"), NULL, NULL},
    {"circuitsvis", MEDIA_JSON, ALONE("\"view\":\"circuitsvis\""), NULL, NULL},
    {"inspectus", MEDIA_JSON, ALONE("\"view\":\"inspectus\",\"compute\":\"float64\""), NULL, NULL},
    {"rows", MEDIA_JSON, BATCHED("\"view\":\"rows\",\"digits\":2"), NULL, NULL},
    {"rows of doubles", MEDIA_JSON, BATCHED("\"view\":\"rows\",\"compute\":\"float64\""), NULL, NULL},
    {"pool of doubles", MEDIA_JSON,
     BATCHED("\"compute\":\"float64\",\"pool\":{\"rows\":1,\"op\":\"mean\"},\"return\":[\"attention\",\"mask\"]"), NULL,
     NULL},
    {"top 1 of doubles", MEDIA_JSON, BATCHED("\"compute\":\"float64\",\"top_k\":1,\"keys\":[0,1]"), NULL, NULL},
    {"top 2 as tensors", MEDIA_SAFETENSORS, BATCHED("\"top_k\":2"), NULL, NULL},
    {"bytes", MEDIA_SAFETENSORS, BATCHED("\"dtype\":\"uint8\",\"return\":[\"attention\"]"), NULL, NULL},
    {"halves", MEDIA_JSON, BATCHED("\"dtype\":\"float16\",\"format\":\"base64\",\"return\":[\"attention\",\"output\"]"),
     NULL, NULL},
    {"svg of all of a batch", MEDIA_SVG, BATCHED("\"heads\":[1,0]"), "batch", "all"},
    {"svg of one head of a batch", MEDIA_SVG, "{\"inputs\":{\"query\":[[[1,2],[3,4]],[[5,6],[7,8]]]}}", "batch", "all"},
    {"png of one item", MEDIA_PNG, BATCHED("\"scale\":0.5"), "batch", "1"},
    {"svg that is not known", MEDIA_SVG, LABELLED, "colormap",
     "a \"colour\" \\ whose name is longer than any that there is or was"},
    {"csv of doubles", MEDIA_CSV, ALONE("\"compute\":\"float64\",\"return\":[\"attention\"]"), NULL, NULL},
    {"csv of scores", MEDIA_CSV,
     ALONE("\"compute\":\"float64\",\"sinks\":[1],\"return\":[\"scores\",\"scaled\",\"masked\",\"entropy\",\"lse_"
           "keys\",\"sink\"]"),
     NULL, NULL},
    {"csv of the top", MEDIA_CSV, ALONE("\"top_k\":2,\"return\":[\"attention\"]"), NULL, NULL},
    {"inspectus of heads", MEDIA_JSON, ALONE("\"view\":\"inspectus\",\"num_heads\":2,\"heads\":[1,0]"), NULL, NULL},
    {"labels of nine items", MEDIA_JSON, /* more than a list of the JSON library has room for at first */
     "{\"inputs\":{\"query\":[[[1]],[[1]],[[1]],[[1]],[[1]],[[1]],[[1]],[[1]],[[1]]]},\"tokens\":{\"query\":[[\"a\"],"
     "[\"b\"],[\"c\"],[\"d\"],[\"e\"],[\"f\"],[\"g\"],[\"h\"],[\"i\"]]}}",
     NULL, NULL},
    {"rows of nothing finite", MEDIA_JSON, "{\"inputs\":{\"query\":[[1],[\"NaN\"]]},\"options\":{\"view\":\"rows\"}}",
     NULL, NULL},
};

/* Of the other services. */
static const struct {
    const char *name;
    service_function *service;
    const char *path_name;
    enum media answer_media;
    const char *body;
} others[] = {
    {"infer of doubles", infer_run, "attention", MEDIA_JSON,
     "{\"inputs\":[{\"name\":\"QUERY\",\"shape\":[1,2],\"datatype\":\"FP64\",\"data\":[1,2]}],\"outputs\":[{\"name\":"
     "\"MASK\"},"
     "{\"name\":\"ATTENTION\",\"parameters\":{\"binary_data\":true}}],\"parameters\":{\"rope\":\"{\\\"theta\\\":5}\"}"
     "}"},
    {"put", layers_put, "other", MEDIA_JSON, LAYER},
    {"get", layers_get, "kept", MEDIA_JSON, ""},
    {"get tensors", layers_get, "kept", MEDIA_SAFETENSORS, ""},
    {"get nothing", layers_get, "absent", MEDIA_JSON, ""},
    {"list", layers_list, "", MEDIA_JSON, ""},
    {"kept attention", attend_kept, "kept", MEDIA_JSON, "{\"inputs\":{\"query\":[[1,2],[3,4]]}}"},
    {"kept gradients", gradients_kept, "kept", MEDIA_JSON,
     "{\"inputs\":{\"query\":[[1,2],[3,4]],\"grad_output\":[[1,2],[3,4]]}}"},
    {"kept attention overridden", attend_kept, "kept", MEDIA_JSON,
     "{\"inputs\":{\"query\":[[1,2],[3,4]]},\"masks\":{\"causal\":false,\"window\":[1,0]},\"options\":{\"scale\":2}}"},
    {"caches", caches_list, "", MEDIA_JSON, ""},
    {"no cache", caches_get, "absent", MEDIA_JSON, ""},
    {"models", infer_models, "", MEDIA_JSON, ""},
    {"all statistics", infer_all_statistics, "", MEDIA_JSON, ""},
    {"metadata", infer_metadata, "kept", MEDIA_JSON, ""},
    {"metadata of the built-in model", infer_metadata, "attention", MEDIA_JSON, ""},
    {"ready", infer_model_ready, "kept", MEDIA_JSON, ""},
    {"config", infer_config, "kept", MEDIA_JSON, ""},
    {"statistics", infer_statistics, "attention", MEDIA_JSON, ""},
    {"index", infer_index, "", MEDIA_JSON, "{\"ready\":true}"},
    {"load", infer_load, "kept", MEDIA_JSON, "{\"parameters\":{}}"},
    {"infer", infer_run, "attention", MEDIA_JSON,
     "{\"id\":\"a\",\"inputs\":[" QUERY_V2 "],\"outputs\":[{\"name\":\"OUTPUT\"},{\"name\":\"ATTENTION\"}],"
     "\"parameters\":{\"scale\":0.5,\"causal\":true}}"},
    {"infer with gaps", infer_run, "attention", MEDIA_JSON,
     "{\"inputs\":[" QUERY_V2 "],\"outputs\":[{\"name\":\"Q\"},{\"name\":\"K\",\"parameters\":{\"binary_data\":true}}],"
     "\"parameters\":{\"num_heads\":2}}"},
    {"infer kept", infer_run, "kept", MEDIA_JSON, "{\"inputs\":[" QUERY_V2 "]}"},
    {"list of models", model_list_all, "", MEDIA_JSON, ""},
    {"a model", model_list_one, "bert", MEDIA_JSON, ""},
    {"tokens of pairs", model_tokens_read, "bert", MEDIA_JSON,
     "{\"inputs\":{\"text\":[\"a cat\",\"\xE6\xB3\xA8\"],\"pair\":[\"b\",\"\"]}}"},
    {"tokens that the tokenizer refuses", model_tokens_read, "bert", MEDIA_JSON,
     "{\"inputs\":{\"text\":\"a\\u0000\"}}"},
    {"text of ids", model_tokens_read, "t5", MEDIA_JSON, "{\"inputs\":{\"ids\":[[10,1],[]]}}"},
    {"attention of a model", attend_model, "bert", MEDIA_JSON,
     "{\"inputs\":{\"text\":[\"a cat\",\"b\"]},\"options\":{\"layers\":[0],\"return\":[\"attention\",\"predictions\"]}}"},
    {"attention of two stacks", attend_model, "t5", MEDIA_SAFETENSORS,
     "{\"inputs\":{\"text\":\"a\",\"target\":\"b\"},\"options\":{\"layers\":[1]}}"},
    {"infer nothing", infer_run, "attention", MEDIA_JSON, "{\"inputs\":[]}"},
};

/* Of the inference protocol, with tensors as bytes behind the JSON. */
static const struct {
    const char *name, *body;
    size_t bytes, json_bytes;
} binaries[] = {
    {"infer of integers", SHORTS_V2 "\1\0\2\0\3\0\4\0", sizeof SHORTS_V2 - 1 + 8, sizeof SHORTS_V2 - 1},
    {"infer binary", HALVES_V2 "\0\x3c\0\x40\0\x42\0\x44", sizeof HALVES_V2 - 1 + 8, sizeof HALVES_V2 - 1},
};

/* Of /v1/attention, with more positions than a piece of an answer has room for. */
static const struct {
    const char *name;
    enum media answer_media;
    const char *options;
} larges[] = {
    {"inspectus of many", MEDIA_JSON, "\"view\":\"inspectus\""},
    {"rows of many", MEDIA_JSON, "\"view\":\"rows\""},
    {"csv of many", MEDIA_CSV, ""},
    {"tensors of many, with gaps", MEDIA_SAFETENSORS, "\"num_heads\":2,\"return\":[\"q\",\"attention\"]"},
};

enum { POSITIONS = 700 };

static char *large_body(const char *options)
{
    char *body = malloc(POSITIONS * sizeof "[1,2]," + 128);
    ck_assert_ptr_nonnull(body);
    char *at = stpcpy(body, "{\"inputs\":{\"query\":[");
    for (int i = 0; i < POSITIONS; i++)
        at += sprintf(at, "%s[%d,%d]", i > 0 ? "," : "", i % 3, i % 5);
    sprintf(at, "]},\"options\":{%s}}", options);
    return body;
}

static void every_large(void (*try)(const struct request *request))
{
    for (size_t i = 0; i < COUNT(larges); i++) {
        char *body = large_body(larges[i].options);
        try(&(struct request){.name = larges[i].name,
                              .service = attend_attention,
                              .path_name = "",
                              .answer_media = larges[i].answer_media,
                              .body = body});
        free(body);
    }
}

static void every_attention(void (*try)(const struct request *request))
{
    for (size_t i = 0; i < COUNT(attentions); i++)
        try(&(struct request){.name = attentions[i].name,
                              .service = attend_attention,
                              .path_name = "",
                              .answer_media = attentions[i].answer_media,
                              .body = attentions[i].body,
                              .parameter = {attentions[i].parameter, attentions[i].value}});
}

static void every_other(void (*try)(const struct request *request))
{
    for (size_t i = 0; i < COUNT(others); i++)
        try(&(struct request){.name = others[i].name,
                              .service = others[i].service,
                              .path_name = others[i].path_name,
                              .answer_media = others[i].answer_media,
                              .body = others[i].body});
}

static void every_binary(void (*try)(const struct request *request))
{
    for (size_t i = 0; i < COUNT(binaries); i++)
        try(&(struct request){.name = binaries[i].name,
                              .service = infer_run,
                              .path_name = "attention",
                              .body_media = MEDIA_BINARY,
                              .body = binaries[i].body,
                              .bytes = binaries[i].bytes,
                              .json_bytes = binaries[i].json_bytes});
}

static void everything_else(void (*try)(const struct request *request))
{
    every_attention(try);
    every_other(try);
    every_binary(try);
}

START_TEST(every_other_request_in_too_little_memory_is_refused_cleanly)
{
    everything_else(starve);
}
END_TEST

START_TEST(every_other_request_has_each_of_its_blocks_refused)
{
    everything_else(refuse_each);
}
END_TEST

START_TEST(every_large_request_has_each_of_its_blocks_refused)
{
    every_large(refuse_each);
}
END_TEST

/* A layer as the file that another server has kept. */
START_TEST(a_file_of_tensors_is_put_or_refused)
{
    const struct request get = {
        .name = "get", .service = layers_get, .path_name = "kept", .answer_media = MEDIA_SAFETENSORS, .body = ""};
    const struct outcome file = ask(&get, ROOMY_BYTES);
    ck_assert_int_eq(file.status, ATTN_OK);
    const struct request put = {.name = "put tensors",
                                .service = layers_put,
                                .path_name = "other",
                                .body_media = MEDIA_SAFETENSORS,
                                .body = file.answer,
                                .bytes = file.bytes};
    starve(&put);
    refuse_each(&put);
    free(file.answer);
}
END_TEST

START_TEST(every_other_request_is_cancelled_at_every_look)
{
    everything_else(cancel);
}
END_TEST

/* ---- the JSON library ---- */

static void starve_library(const struct request *request)
{
    struct outcome outcome = {.status = ATTN_ERR_NO_MEMORY};
    struct outcome roomy = ask(request, ROOMY_BYTES);
    fail_json_begin();
    for (size_t tries = 0;; tries += one_in(5)) {
        json_allocations_left = tries;
        outcome = ask(request, ROOMY_BYTES);
        if (outcome.status == roomy.status || !is_out_of_memory(request, tries, &outcome))
            break;
    }
    fail_json_end();
    check_same(request, &outcome, &roomy);
    free(outcome.answer);
    free(roomy.answer);
}

START_TEST(every_failing_allocation_of_the_json_library_is_refused_cleanly)
{
    json_fails_for_good = _i == 1;
    every_case(starve_library);
}
END_TEST

START_TEST(so_it_is_for_every_other_request)
{
    json_fails_for_good = _i == 1;
    everything_else(starve_library);
}
END_TEST

/* ---- the stage ---- */

static void prepare(void)
{
    static const struct layer_settings settings = {.max_count = 4, .max_bytes = 1 << 20, .older = 1};
    static const struct request kept = {.name = "kept", .service = layers_put, .path_name = "kept", .body = LAYER};
    static const struct value_list folders = {{"bert=tests/others/models/bert,t5=tests/others/models/t5"}, 1};
    char message[320];
    envelope_prepare();
    ck_assert_msg(font_set_open(&fonts, "auto", message, sizeof message), "%s", message);
    layers = layer_keeper_open(&settings, &silence, message, sizeof message);
    ck_assert_msg(layers != NULL, "%s", message);
    caches = cache_store_create(1 << 20, 4, 60);
    ck_assert_ptr_nonnull(caches);
    const struct models_settings of_models = {.named = &folders, .registry = layer_keeper_registry(layers)};
    models = models_create(&of_models, &silence, message, sizeof message);
    ck_assert_msg(models != NULL, "%s", message);
    models_load(models);
    struct outcome outcome = ask(&kept, ROOMY_BYTES);
    ck_assert_msg(outcome.status == ATTN_OK, "%s", outcome.err.message);
    free(outcome.answer);
}

static void release(void)
{
    models_destroy(models);
    layer_keeper_close(layers);
    cache_store_destroy(caches);
    font_set_close(&fonts);
}

CHECK_MAIN("cut_short")
{
    tcase_add_checked_fixture(tests, prepare, release);
    tcase_add_test(tests, every_case_in_too_little_memory_is_refused_cleanly);
    tcase_add_test(tests, every_other_request_in_too_little_memory_is_refused_cleanly);
    tcase_add_test(tests, every_case_has_each_of_its_blocks_refused);
    tcase_add_test(tests, every_other_request_has_each_of_its_blocks_refused);
    tcase_add_test(tests, every_large_request_has_each_of_its_blocks_refused);
    tcase_add_test(tests, a_file_of_tensors_is_put_or_refused);
    tcase_add_test(tests, every_case_is_cancelled_at_every_look);
    tcase_add_test(tests, every_other_request_is_cancelled_at_every_look);
    tcase_add_loop_test(tests, every_failing_allocation_of_the_json_library_is_refused_cleanly, 0, 2);
    tcase_add_loop_test(tests, so_it_is_for_every_other_request, 0, 2);
}
