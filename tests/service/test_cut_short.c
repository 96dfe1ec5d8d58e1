/*
 * test_cut_short.c: every service with less memory than a request takes, some bytes more each time: a clean refusal
 * until it is enough, then the answer that a roomy one gives. The same for each allocation of the JSON library, and for
 * a request that is cancelled at each of the moments in which that is looked for.
 *
 * The requests are those of tests/cases, and below what these have none of.
 */
#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attn/runtime.h"
#include "check_main.h"
#include "codec/envelope.h"
#include "service/attend.h"
#include "service/cache_store.h"
#include "service/caches.h"
#include "service/gradients.h"
#include "service/infer.h"
#include "service/layer_keeper.h"
#include "service/layers.h"

enum { ROOMY_BYTES = 32 << 20, FINE_BYTES = 32 << 10, BODY_MAX = 1 << 20 };

static const struct log silence = {.fd = 2, .format = LOG_TEXT, .level = LOG_OFF};
static struct font_set fonts;
static struct layer_keeper *layers;
static struct cache_store *caches;

/* One request, and how it is asked. */
struct request {
    const char *name;
    service_function *service;
    const char *path_name; /* what stands in the path */
    enum media body_media, answer_media;
    const char *body;
    size_t bytes; /* 0: up to the body's end */
    size_t json_bytes;
    struct text_pair parameter; /* of the query; name NULL: none */
};

/* What came of it; the answer's bytes are the caller's. */
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
        .body = request->body,
        .body_bytes = request->bytes > 0 ? request->bytes : strlen(request->body),
        .body_media = request->body_media,
        .answer_media = request->answer_media,
        .has_json_bytes = request->json_bytes > 0,
        .json_bytes = request->json_bytes,
        .names = names,
        .parameters = &request->parameter,
        .parameter_count = request->parameter.name != NULL,
        .limits = {.result_bytes = ROOMY_BYTES, .memory_bytes = ROOMY_BYTES, .flops = 1e9},
        .layers = layers,
        .caches = caches,
        .runtime = &runtime,
        .fonts = &fonts,
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
    layer_version_release(call.held);
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

/* An answer to a put tells the time. */
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

/* Each limit in turn, in finer steps for the small ones, where most of what is taken is. */
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

/* Cancelled at the first look, the second, … */
static void cancel(const struct request *request)
{
    const struct outcome roomy = ask(request, ROOMY_BYTES);
    struct outcome cut;
    for (size_t looks = 0;; looks++) {
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
    snprintf(folder, sizeof folder, "tests/cases/%s", endpoint->folder);
    DIR *directory = opendir(folder);
    ck_assert_msg(directory != NULL, "%s: tests are run from the top folder", folder);
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s/request.json", folder, entry->d_name);
        char *body = read_file(path);
        const struct request request = {.name = entry->d_name,
                                        .service = endpoint->service,
                                        .path_name = "",
                                        .body_media = MEDIA_JSON,
                                        .answer_media = MEDIA_JSON,
                                        .body = body};
        try(&request);
        free(body);
        count++;
    }
    closedir(directory);
    return count;
}

static void every_case(void (*try)(const struct request *request))
{
    for (size_t i = 0; i < sizeof endpoints / sizeof endpoints[0]; i++)
        ck_assert_uint_gt(each_case(&endpoints[i], try), 3);
}

START_TEST(every_case_in_too_little_memory_is_refused_cleanly)
{
    every_case(starve_case);
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

static const struct request others[] = {
    {"csv", attend_attention, "", MEDIA_JSON, MEDIA_CSV, LABELLED, 0, 0, {NULL, NULL}},
    {"svg", attend_attention, "", MEDIA_JSON, MEDIA_SVG, LABELLED, 0, 0, {NULL, NULL}},
    {"png", attend_attention, "", MEDIA_JSON, MEDIA_PNG, LABELLED, 0, 0, {NULL, NULL}},
    {"tensors", attend_attention, "", MEDIA_JSON, MEDIA_SAFETENSORS, LABELLED, 0, 0, {NULL, NULL}},
    {"svg of a batch", attend_attention, "", MEDIA_JSON, MEDIA_SVG, BATCHED("\"heads\":[1,0]"), 0, 0, {NULL, NULL}},
    {"png of a batch",
     attend_attention,
     "",
     MEDIA_JSON,
     MEDIA_PNG,
     BATCHED("\"compute\":\"float64\""),
     0,
     0,
     {NULL, NULL}},
    {"svg of a batch of one head",
     attend_attention,
     "",
     MEDIA_JSON,
     MEDIA_SVG,
     BATCHED("\"heads\":[0]"),
     0,
     0,
     {NULL, NULL}},
    {"csv of a batch",
     attend_attention,
     "",
     MEDIA_JSON,
     MEDIA_CSV,
     BATCHED("\"return\":[\"q\",\"k\",\"v\",\"attention_mean\",\"lse\",\"mask\",\"output\"]"),
     0,
     0,
     {NULL, NULL}},
    {"bertviz",
     attend_attention,
     "",
     MEDIA_JSON,
     MEDIA_JSON,
     ALONE("\"view\":\"bertviz\",\"digits\":3"),
     0,
     0,
     {NULL, NULL}},
    {"circuitsvis",
     attend_attention,
     "",
     MEDIA_JSON,
     MEDIA_JSON,
     ALONE("\"view\":\"circuitsvis\""),
     0,
     0,
     {NULL, NULL}},
    {"inspectus",
     attend_attention,
     "",
     MEDIA_JSON,
     MEDIA_JSON,
     ALONE("\"view\":\"inspectus\",\"compute\":\"float64\""),
     0,
     0,
     {NULL, NULL}},
    {"rows",
     attend_attention,
     "",
     MEDIA_JSON,
     MEDIA_JSON,
     BATCHED("\"view\":\"rows\",\"digits\":2"),
     0,
     0,
     {NULL, NULL}},
    {"rows of doubles",
     attend_attention,
     "",
     MEDIA_JSON,
     MEDIA_JSON,
     BATCHED("\"view\":\"rows\",\"compute\":\"float64\""),
     0,
     0,
     {NULL, NULL}},
    {"pool of doubles",
     attend_attention,
     "",
     MEDIA_JSON,
     MEDIA_JSON,
     BATCHED("\"compute\":\"float64\",\"pool\":{\"rows\":1,\"op\":\"mean\"},\"return\":[\"attention\",\"mask\"]"),
     0,
     0,
     {NULL, NULL}},
    {"top 1 of doubles",
     attend_attention,
     "",
     MEDIA_JSON,
     MEDIA_JSON,
     BATCHED("\"compute\":\"float64\",\"top_k\":1,\"keys\":[0,1]"),
     0,
     0,
     {NULL, NULL}},
    {"top 2 as tensors",
     attend_attention,
     "",
     MEDIA_JSON,
     MEDIA_SAFETENSORS,
     BATCHED("\"top_k\":2"),
     0,
     0,
     {NULL, NULL}},
    {"bytes",
     attend_attention,
     "",
     MEDIA_JSON,
     MEDIA_SAFETENSORS,
     BATCHED("\"dtype\":\"uint8\",\"return\":[\"attention\"]"),
     0,
     0,
     {NULL, NULL}},
    {"halves",
     attend_attention,
     "",
     MEDIA_JSON,
     MEDIA_JSON,
     BATCHED("\"dtype\":\"float16\",\"format\":\"base64\",\"return\":[\"attention\",\"output\"]"),
     0,
     0,
     {NULL, NULL}},
    {"svg of all of a batch",
     attend_attention,
     "",
     MEDIA_JSON,
     MEDIA_SVG,
     BATCHED("\"heads\":[1,0]"),
     0,
     0,
     {"batch", "all"}},
    {"svg of one head of a batch",
     attend_attention,
     "",
     MEDIA_JSON,
     MEDIA_SVG,
     "{\"inputs\":{\"query\":[[[1,2],[3,4]],[[5,6],[7,8]]]}}",
     0,
     0,
     {"batch", "all"}},
    {"png of one item", attend_attention, "", MEDIA_JSON, MEDIA_PNG, BATCHED("\"scale\":0.5"), 0, 0, {"batch", "1"}},
    {"svg that is not known",
     attend_attention,
     "",
     MEDIA_JSON,
     MEDIA_SVG,
     LABELLED,
     0,
     0,
     {"colormap", "a \"colour\" \\ whose name is longer than any that there is or was"}},
    {"csv of doubles",
     attend_attention,
     "",
     MEDIA_JSON,
     MEDIA_CSV,
     ALONE("\"compute\":\"float64\",\"return\":[\"attention\"]"),
     0,
     0,
     {NULL, NULL}},
    {"csv of scores",
     attend_attention,
     "",
     MEDIA_JSON,
     MEDIA_CSV,
     ALONE("\"compute\":\"float64\",\"sinks\":[1],\"return\":[\"scores\",\"scaled\",\"masked\",\"entropy\",\"lse_"
           "keys\",\"sink\"]"),
     0,
     0,
     {NULL, NULL}},
    {"csv of the top",
     attend_attention,
     "",
     MEDIA_JSON,
     MEDIA_CSV,
     ALONE("\"top_k\":2,\"return\":[\"attention\"]"),
     0,
     0,
     {NULL, NULL}},
    {"inspectus of heads",
     attend_attention,
     "",
     MEDIA_JSON,
     MEDIA_JSON,
     ALONE("\"view\":\"inspectus\",\"num_heads\":2,\"heads\":[1,0]"),
     0,
     0,
     {NULL, NULL}},
    {"rows of nothing finite",
     attend_attention,
     "",
     MEDIA_JSON,
     MEDIA_JSON,
     "{\"inputs\":{\"query\":[[1],[\"NaN\"]]},\"options\":{\"view\":\"rows\"}}",
     0,
     0,
     {NULL, NULL}},
    {"infer of doubles",
     infer_run,
     "attention",
     MEDIA_JSON,
     MEDIA_JSON,
     "{\"inputs\":[{\"name\":\"QUERY\",\"shape\":[1,2],\"datatype\":\"FP64\",\"data\":[1,2]}],\"outputs\":[{\"name\":"
     "\"MASK\"},"
     "{\"name\":\"ATTENTION\",\"parameters\":{\"binary_data\":true}}],\"parameters\":{\"rope\":\"{\\\"theta\\\":5}\"}}",
     0,
     0,
     {NULL, NULL}},
    {"infer of integers",
     infer_run,
     "attention",
     MEDIA_BINARY,
     MEDIA_JSON,
     SHORTS_V2 "\1\0\2\0\3\0\4\0",
     sizeof SHORTS_V2 - 1 + 8,
     sizeof SHORTS_V2 - 1,
     {NULL, NULL}},
    {"put", layers_put, "other", MEDIA_JSON, MEDIA_JSON, LAYER, 0, 0, {NULL, NULL}},
    {"get", layers_get, "kept", MEDIA_JSON, MEDIA_JSON, "", 0, 0, {NULL, NULL}},
    {"get tensors", layers_get, "kept", MEDIA_JSON, MEDIA_SAFETENSORS, "", 0, 0, {NULL, NULL}},
    {"get nothing", layers_get, "absent", MEDIA_JSON, MEDIA_JSON, "", 0, 0, {NULL, NULL}},
    {"list", layers_list, "", MEDIA_JSON, MEDIA_JSON, "", 0, 0, {NULL, NULL}},
    {"kept attention",
     layers_attend,
     "kept",
     MEDIA_JSON,
     MEDIA_JSON,
     "{\"inputs\":{\"query\":[[1,2],[3,4]]}}",
     0,
     0,
     {NULL, NULL}},
    {"kept attention overridden",
     layers_attend,
     "kept",
     MEDIA_JSON,
     MEDIA_JSON,
     "{\"inputs\":{\"query\":[[1,2],[3,4]]},\"masks\":{\"causal\":false,\"window\":[1,0]},\"options\":{\"scale\":2}}",
     0,
     0,
     {NULL, NULL}},
    {"caches", caches_list, "", MEDIA_JSON, MEDIA_JSON, "", 0, 0, {NULL, NULL}},
    {"no cache", caches_get, "absent", MEDIA_JSON, MEDIA_JSON, "", 0, 0, {NULL, NULL}},
    {"models", infer_models, "", MEDIA_JSON, MEDIA_JSON, "", 0, 0, {NULL, NULL}},
    {"all statistics", infer_all_statistics, "", MEDIA_JSON, MEDIA_JSON, "", 0, 0, {NULL, NULL}},
    {"metadata", infer_metadata, "kept", MEDIA_JSON, MEDIA_JSON, "", 0, 0, {NULL, NULL}},
    {"metadata of the built-in model", infer_metadata, "attention", MEDIA_JSON, MEDIA_JSON, "", 0, 0, {NULL, NULL}},
    {"ready", infer_model_ready, "kept", MEDIA_JSON, MEDIA_JSON, "", 0, 0, {NULL, NULL}},
    {"config", infer_config, "kept", MEDIA_JSON, MEDIA_JSON, "", 0, 0, {NULL, NULL}},
    {"statistics", infer_statistics, "attention", MEDIA_JSON, MEDIA_JSON, "", 0, 0, {NULL, NULL}},
    {"index", infer_index, "", MEDIA_JSON, MEDIA_JSON, "{\"ready\":true}", 0, 0, {NULL, NULL}},
    {"load", infer_load, "kept", MEDIA_JSON, MEDIA_JSON, "{\"parameters\":{}}", 0, 0, {NULL, NULL}},
    {"infer",
     infer_run,
     "attention",
     MEDIA_JSON,
     MEDIA_JSON,
     "{\"id\":\"a\",\"inputs\":[" QUERY_V2 "],\"outputs\":[{\"name\":\"OUTPUT\"},{\"name\":\"ATTENTION\"}],"
     "\"parameters\":{\"scale\":0.5,\"causal\":true}}",
     0,
     0,
     {NULL, NULL}},
    {"infer kept", infer_run, "kept", MEDIA_JSON, MEDIA_JSON, "{\"inputs\":[" QUERY_V2 "]}", 0, 0, {NULL, NULL}},
    {"infer binary",
     infer_run,
     "attention",
     MEDIA_BINARY,
     MEDIA_JSON,
     HALVES_V2 "\0\x3c\0\x40\0\x42\0\x44",
     sizeof HALVES_V2 - 1 + 8,
     sizeof HALVES_V2 - 1,
     {NULL, NULL}},
    {"infer nothing", infer_run, "attention", MEDIA_JSON, MEDIA_JSON, "{\"inputs\":[]}", 0, 0, {NULL, NULL}},
};

enum { OTHERS = sizeof others / sizeof others[0] };

START_TEST(every_other_request_in_too_little_memory_is_refused_cleanly)
{
    for (size_t i = 0; i < OTHERS; i++)
        starve(&others[i]);
}
END_TEST

START_TEST(every_other_request_is_cancelled_at_every_look)
{
    for (size_t i = 0; i < OTHERS; i++)
        cancel(&others[i]);
}
END_TEST

/* ---- the JSON library ---- */

static json_malloc_t real_malloc;
static size_t allocations_left;

static void *failing_malloc(size_t size)
{
    if (allocations_left == 0)
        return real_malloc(SIZE_MAX); /* more than a tree may have: noted as a failure of memory */
    allocations_left--;
    return real_malloc(size);
}

static void starve_library(const struct request *request)
{
    json_free_t real_free;
    struct outcome outcome = {.status = ATTN_ERR_NO_MEMORY};
    json_get_alloc_funcs(&real_malloc, &real_free);
    allocations_left = SIZE_MAX;
    struct outcome roomy = ask(request, ROOMY_BYTES);
    json_set_alloc_funcs(failing_malloc, real_free);
    for (size_t tries = 0;; tries++) {
        allocations_left = tries;
        outcome = ask(request, ROOMY_BYTES);
        if (outcome.status == roomy.status || !is_out_of_memory(request, tries, &outcome))
            break;
    }
    json_set_alloc_funcs(real_malloc, real_free);
    check_same(request, &outcome, &roomy);
    free(outcome.answer);
    free(roomy.answer);
}

START_TEST(every_failing_allocation_of_the_json_library_is_refused_cleanly)
{
    every_case(starve_library);
}
END_TEST

START_TEST(so_it_is_for_every_other_request)
{
    for (size_t i = 0; i < OTHERS; i++)
        starve_library(&others[i]);
}
END_TEST

/* ---- the stage ---- */

static void prepare(void)
{
    static const struct layer_settings settings = {.max_count = 4, .max_bytes = 1 << 20, .older = 1};
    static const struct request kept = {"kept", layers_put, "kept", MEDIA_JSON, MEDIA_JSON, LAYER, 0, 0, {NULL, NULL}};
    char message[320];
    attn_blas_prepare();
    envelope_prepare();
    ck_assert_msg(font_set_open(&fonts, "auto", message, sizeof message), "%s", message);
    layers = layer_keeper_open(&settings, &silence, message, sizeof message);
    ck_assert_msg(layers != NULL, "%s", message);
    caches = cache_store_create(1 << 20, 4, 60);
    ck_assert_ptr_nonnull(caches);
    struct outcome outcome = ask(&kept, ROOMY_BYTES);
    ck_assert_msg(outcome.status == ATTN_OK, "%s", outcome.err.message);
    free(outcome.answer);
}

static void release(void)
{
    layer_keeper_close(layers);
    cache_store_destroy(caches);
    font_set_close(&fonts);
}

int main(void)
{
    Suite *suite = suite_create("cut_short");
    TCase *tests = tcase_create("cut_short");
    tcase_add_checked_fixture(tests, prepare, release);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, every_case_in_too_little_memory_is_refused_cleanly);
    tcase_add_test(tests, every_other_request_in_too_little_memory_is_refused_cleanly);
    tcase_add_test(tests, every_case_is_cancelled_at_every_look);
    tcase_add_test(tests, every_other_request_is_cancelled_at_every_look);
    tcase_add_test(tests, every_failing_allocation_of_the_json_library_is_refused_cleanly);
    tcase_add_test(tests, so_it_is_for_every_other_request);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
