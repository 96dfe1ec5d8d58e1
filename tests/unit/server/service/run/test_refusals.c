/*
 * test_refusals.c: what services refuse beyond what decoding does: limits, labels, forms that do not go with an
 * endpoint, names, caches, parameters of lists; each with its code, its kind, its field and its reason.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attn/runtime.h"
#include "check_main.h"
#include "codec/request/envelope.h"
#include "service/cache/cache.h"
#include "service/cache/request.h"
#include "service/endpoints.h"
#include "service/registry/layer/keeper.h"

enum { ARENA_BYTES = 8 << 20, LARGE = 1 << 30 };

static const struct log silence = {.fd = 2, .format = LOG_TEXT, .level = LOG_OFF};
static const struct font_set no_fonts;
static struct layer_keeper *layers;
static struct cache_store *caches;
static attn_error err;

/* What is asked, and what is said; limits of 0 are none to speak of. */
struct refusal {
    service_function *service;
    const char *path_name, *body;
    attn_status status;
    enum call_refusal refusal;
    const char *field, *fragment;
    struct call_limits limits;
    struct text_pair parameter;
};

static attn_status ask(const struct refusal *refusal, enum call_refusal *why)
{
    const attn_runtime runtime = attn_runtime_serial(NULL);
    attn_arena *arena = attn_arena_create(ARENA_BYTES);
    ck_assert_ptr_nonnull(arena);
    struct chunks out = chunks_begin(arena);
    const struct text_span names[] = {text_span_of(refusal->path_name), text_span_of("")};
    const struct call_limits *limits = &refusal->limits;
    err = (attn_error){.status = ATTN_OK};
    struct call call = {
        .in.body = refusal->body,
        .in.body_bytes = strlen(refusal->body),
        .in.names = names,
        .in.parameters = &refusal->parameter,
        .in.parameter_count = refusal->parameter.name != NULL,
        .in.limits = {.result_bytes = limits->result_bytes > 0 ? limits->result_bytes : LARGE,
                      .memory_bytes = limits->memory_bytes > 0 ? limits->memory_bytes : LARGE,
                      .flops = limits->flops > 0 ? limits->flops : 1e12},
        .in.layers = layers,
        .in.key = "",
        .in.caches = caches,
        .in.runtime = &runtime,
        .in.fonts = &no_fonts,
        .out = &out,
        .err = &err,
    };
    const attn_status status = refusal->service(&call);
    *why = call.refusal;
    version_release(call.version);
    attn_arena_destroy(arena);
    return status;
}

#define Q               "\"inputs\":{\"query\":[[1,2],[3,4]]}"
#define A(more)         "{" Q more "}"
#define GRADIENTS(more) "{\"inputs\":{\"query\":[[1,2]],\"grad_output\":[[1,1]]}" more "}"
#define LAYER(more)     "{\"weights\":{\"qkv\":{\"weight\":[[1,0,1,0,1,0],[0,1,0,1,0,1]]}}" more "}"
#define INFER           "{\"inputs\":[{\"name\":\"QUERY\",\"shape\":[1,2],\"datatype\":\"FP32\",\"data\":[1,2]}]}"

/* What is too large for a limit of so many bytes of result or memory, or operations; 0: none to speak of. */
static const struct {
    service_function *service;
    const char *body, *field, *fragment;
    size_t result_bytes, memory_bytes;
    double flops;
} too_large[] = {
    {attend_attention, A(""), "/options/return", "this server's limit is 100;", 100, 0, 0},
    {attend_attention, A(",\"options\":{\"return\":[\"output\"]}"), "/options/return",
     "the largest part is \"output\": leave it out of options.return, or use", 100, 0, 0},
    {attend_attention, A(",\"options\":{\"return\":[\"attention_mean\"]}"), "/options/return", "select some of it", 100,
     0, 0},
    {attend_attention, A(""), "/inputs", "bytes of memory, this server's limit", 0, 100, 0},
    {attend_attention, A(""), "/inputs", "floating-point operations, this server's", 0, 0, 1},
    {gradients_attention, GRADIENTS(""), "/inputs", "floating-point operations", 0, 0, 1},
    {gradients_attention, GRADIENTS(",\"options\":{\"return\":[\"query\",\"attention\",\"output\"]}"),
     "/options/return", "this server's limit is 100", 100, 0, 0},
};

/* What is refused for what it is. */
struct row {
    service_function *service;
    const char *path_name, *body;
    attn_status status;
    enum call_refusal refusal;
    const char *field, *fragment;
};

/* Labels, and forms that mean nothing there */
static const struct row form_rows[] = {
    {attend_attention, "", A(",\"tokens\":{\"key\":[\"a\"]}"), ATTN_ERR_SHAPE, CALL_FAILED, "/tokens/key",
     "has 1 labels for 2 positions"},
    {attend_attention, "", A(",\"tokens\":{\"query\":[\"a\",\"b\",\"c\"]}"), ATTN_ERR_SHAPE, CALL_FAILED,
     "/tokens/query", "3 labels for 2 positions"},
    {gradients_attention, "", GRADIENTS(",\"options\":{\"pool\":{\"rows\":1}}"), ATTN_ERR_FIELD, CALL_FAILED,
     "/options/pool", "gradients"},
    {gradients_attention, "", GRADIENTS(",\"options\":{\"top_k\":1,\"return\":[\"query\",\"attention\"]}"),
     ATTN_ERR_FIELD, CALL_FAILED, "/options/top_k", "gradients"},
    {gradients_attention, "", GRADIENTS(",\"options\":{\"dtype\":\"float16\",\"format\":\"base64\"}"), ATTN_ERR_FIELD,
     CALL_FAILED, "/options/dtype", "gradients"},
    {gradients_attention, "", GRADIENTS(",\"options\":{\"view\":\"rows\"}"), ATTN_ERR_FIELD, CALL_FAILED,
     "/options/view", ""},
    {gradients_attention, "", GRADIENTS(",\"options\":{\"cache\":\"a\"}"), ATTN_ERR_FIELD, CALL_FAILED,
     "/options/cache", "gradients"},
    {infer_run, "pooled", INFER, ATTN_ERR_FIELD, CALL_FAILED, "/parameters/pool", "does not go with this protocol"},
    {infer_run, "topped", INFER, ATTN_ERR_FIELD, CALL_FAILED, "/parameters/top_k", "does not go with this protocol"},
    {infer_run, "halved", INFER, ATTN_ERR_FIELD, CALL_FAILED, "/parameters/dtype", "does not go with this protocol"},
    {infer_run, "viewed", INFER, ATTN_ERR_FIELD, CALL_FAILED, "/parameters/return", "does not go with options.view"},
};

/* Names */
static const struct row name_rows[] = {
    {infer_metadata, "absent", "", ATTN_ERR_VALUE, CALL_NOT_FOUND, "", "\"absent\""},
    {layers_get, "absent", "", ATTN_ERR_VALUE, CALL_NOT_FOUND, "", "there is no layer \"absent\" here"},
    {attend_kept, "absent", A(""), ATTN_ERR_VALUE, CALL_NOT_FOUND, "", "there is no layer \"absent\" here"},
    {layers_put, ".hidden", LAYER(""), ATTN_ERR_VALUE, CALL_FAILED, "", "\".hidden\" cannot name a layer"},
    {layers_put, "stats", LAYER(""), ATTN_ERR_VALUE, CALL_CONFLICT, "", "a name of this server's own"},
    {layers_put, "new", "{}", ATTN_ERR_FIELD, CALL_FAILED, "", "has no \"weights\""},
};

/* Caches */
static const struct row cache_rows[] = {
    {caches_get, "absent", "", ATTN_ERR_VALUE, CALL_NOT_FOUND, "", "there is no cache \"absent\" here"},
    {caches_remove, "absent", "", ATTN_ERR_VALUE, CALL_NOT_FOUND, "", "there is no cache \"absent\" here"},
    {attend_attention, "", A(",\"options\":{\"cache\":\"a/b\"}"), ATTN_ERR_VALUE, CALL_FAILED, "/options/cache",
     "\"a/b\" cannot name a cache"},
    {attend_attention, "",
     "{\"inputs\":{\"query\":[[1,2]],\"past_key\":[[[1,2]]],\"past_value\":[[[1,2]]]},\"options\":{\"cache\":\"a\"}}",
     ATTN_ERR_FIELD, CALL_FAILED, "/options/cache", "two ways to say the same"},
    {attend_attention, "", A(",\"options\":{\"cache\":{\"name\":\"fresh\",\"length\":3}}"), ATTN_ERR_VALUE, CALL_GONE,
     "", "it was to hold 3 positions"},
    {attend_attention, "", A(",\"options\":{\"cache\":{\"name\":\"begun\",\"length\":3}}"), ATTN_ERR_VALUE,
     CALL_CONFLICT, "", "holds 2 positions, the request goes on from 3"},
    {attend_attention, "", "{\"inputs\":{\"query\":[[1,2,3]]},\"options\":{\"cache\":\"begun\"}}", ATTN_ERR_SHAPE,
     CALL_FAILED, "/options/cache",
     "is of 1 batch items, 1 key heads of 2 features and 1 value heads of 2, in float32"},
    {attend_kept, "kept", A(",\"options\":{\"cache\":\"begun\"}"), ATTN_ERR_VALUE, CALL_CONFLICT, "",
     "was begun with another layer"},
    {attend_attention, "",
     "{\"inputs\":{\"query\":{\"shape\":[64,64],\"data\":[0]}},\"options\":{\"cache\":\"large\"}}", ATTN_ERR_SHAPE,
     CALL_FAILED, "/inputs/query/data", ""},
};

/* Parameters of lists */
static const struct {
    const char *name, *value;
    attn_status status;
    const char *fragment;
} parameters[] = {
    {"from", "a", ATTN_ERR_FIELD, "query parameter \"from\" is not known"},
    {"limit", "0", ATTN_ERR_VALUE, "limit is 0; expected a whole number"},
    {"limit", "1001", ATTN_ERR_VALUE, "limit is 1001;"},
    {"limit", "x", ATTN_ERR_VALUE, "limit is x;"},
};

static void check(const struct refusal *refusal, int row)
{
    enum call_refusal why;
    const attn_status status = ask(refusal, &why);
    ck_assert_msg(status == refusal->status, "%d: %s: %s", row, attn_status_name(status), err.message);
    ck_assert_msg(why == refusal->refusal, "%d: %d: %s", row, (int)why, err.message);
    ck_assert_msg(strcmp(err.field, refusal->field) == 0, "%d: %s: %s", row, err.field, err.message);
    ck_assert_msg(strstr(err.message, refusal->fragment) != NULL, "%d: %s", row, err.message);
}

START_TEST(what_is_over_a_limit_says_which)
{
    check(&(struct refusal){.service = too_large[_i].service,
                            .path_name = "",
                            .body = too_large[_i].body,
                            .status = ATTN_ERR_TOO_LARGE,
                            .refusal = CALL_FAILED,
                            .field = too_large[_i].field,
                            .fragment = too_large[_i].fragment,
                            .limits = {.result_bytes = too_large[_i].result_bytes,
                                       .memory_bytes = too_large[_i].memory_bytes,
                                       .flops = too_large[_i].flops}},
          _i);
}
END_TEST

static void check_row(const struct row *row, int i)
{
    check(&(struct refusal){.service = row->service,
                            .path_name = row->path_name,
                            .body = row->body,
                            .status = row->status,
                            .refusal = row->refusal,
                            .field = row->field,
                            .fragment = row->fragment},
          i);
}

START_TEST(a_form_that_means_nothing_is_refused)
{
    check_row(&form_rows[_i], _i);
}
END_TEST

START_TEST(a_name_that_is_wrong_or_absent_is_refused)
{
    check_row(&name_rows[_i], _i);
}
END_TEST

START_TEST(a_cache_that_does_not_go_with_the_request_is_refused)
{
    check_row(&cache_rows[_i], _i);
}
END_TEST

START_TEST(a_parameter_of_a_list_is_refused)
{
    check(&(struct refusal){.service = layers_list,
                            .path_name = "",
                            .body = "",
                            .status = parameters[_i].status,
                            .refusal = CALL_FAILED,
                            .field = "",
                            .fragment = parameters[_i].fragment,
                            .parameter = {parameters[_i].name, parameters[_i].value}},
          _i);
}
END_TEST

static void must(service_function *service, const char *name, const char *body)
{
    const struct refusal request = {.service = service, .path_name = name, .body = body};
    enum call_refusal why;
    const attn_status status = ask(&request, &why);
    ck_assert_msg(status == ATTN_OK, "%s: %s", name, err.message);
}

static void prepare(void)
{
    static const struct layer_settings settings = {.max_count = 8, .max_bytes = 1 << 20, .older = 1};
    char message[320];
    attn_blas_use_one_thread();
    envelope_prepare();
    layers = layer_keeper_open(&settings, &silence, message, sizeof message);
    ck_assert_msg(layers != NULL, "%s", message);
    caches = cache_store_create(4096, 4, 60);
    ck_assert_ptr_nonnull(caches);
    must(layers_put, "kept", LAYER(""));
    must(layers_put, "pooled", LAYER(",\"options\":{\"pool\":{\"rows\":1}}"));
    must(layers_put, "topped", LAYER(",\"options\":{\"top_k\":1}"));
    must(layers_put, "halved", LAYER(",\"options\":{\"dtype\":\"float16\"}"));
    must(layers_put, "viewed", LAYER(",\"options\":{\"view\":\"rows\"}"));
    must(attend_attention, "", A(",\"options\":{\"cache\":\"begun\"}"));
}

static void release(void)
{
    layer_keeper_close(layers);
    cache_store_destroy(caches);
}

CHECK_MAIN("refusals")
{
    tcase_add_checked_fixture(tests, prepare, release);
    tcase_add_loop_test(tests, what_is_over_a_limit_says_which, 0, COUNT(too_large));
    tcase_add_loop_test(tests, a_form_that_means_nothing_is_refused, 0, COUNT(form_rows));
    tcase_add_loop_test(tests, a_name_that_is_wrong_or_absent_is_refused, 0, COUNT(name_rows));
    tcase_add_loop_test(tests, a_cache_that_does_not_go_with_the_request_is_refused, 0, COUNT(cache_rows));
    tcase_add_loop_test(tests, a_parameter_of_a_list_is_refused, 0, COUNT(parameters));
}
