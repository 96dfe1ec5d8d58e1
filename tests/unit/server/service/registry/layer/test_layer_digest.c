/*
 * test_layer_digest.c: which requests wait for the digest of a kept layer. One request computes it and pauses in the
 * middle; meanwhile each other request to the same layer is answered.
 */
#include <pthread.h>
#include <semaphore.h>
#include <string.h>

#include "adopt_file.h"
#include "check_main.h"
#include "codec/request/envelope.h"
#include "service/endpoints.h"
#include "service/registry/layer/keeper.h"

/* Three weights of a MiB each, so that a digest takes several pieces. */
enum { WIDTH = 512, ARENA_BYTES = 64 << 20, LIMIT_BYTES = 32 << 20 };

static const struct log silence = {.fd = 2, .format = LOG_TEXT, .level = LOG_OFF};
static struct layer_keeper *keeper;
static attn_arena *arena;

/* ---- a layer whose digest is not known ---- */

static void write_weight(struct chunks *out, const char *name, const char *after)
{
    chunks_format(out, "\"%s\":{\"weight\":[", name);
    for (int row = 0; row < WIDTH; row++) {
        chunks_text(out, row > 0 ? ",[" : "[");
        for (int column = 0; column < WIDTH; column++)
            chunks_format(out, column > 0 ? ",%d" : "%d", row == column);
        chunks_text(out, "]");
    }
    chunks_format(out, "]}%s", after);
}

static void prepare(struct chunks *file)
{
    attn_error err = {.status = ATTN_OK};
    arena = attn_arena_create(ARENA_BYTES);
    ck_assert_ptr_nonnull(arena);
    struct chunks text = chunks_begin(arena);
    envelope_prepare();
    chunks_text(&text, "{\"weights\":{");
    write_weight(&text, "query", ",");
    write_weight(&text, "key", ",");
    write_weight(&text, "value", "}}");
    const char *whole = chunks_join(&text);
    ck_assert_ptr_nonnull(whole);
    *file = chunks_begin(arena);
    ck_assert_int_eq(kept_layer_write(whole, text.total_bytes, arena, file, &err), ATTN_OK);
}

/* A layer that belongs to a model has no digest until a request needs it. */
static void begin(const struct chunks *file)
{
    const struct layer_settings settings = {.max_count = 4, .max_bytes = LIMIT_BYTES, .older = 1};
    char message[320];
    keeper = layer_keeper_open(&settings, &silence, message, sizeof message);
    ck_assert_msg(keeper != NULL, "%s", message);
    ck_assert_int_eq(adopt_file(keeper, "kept", file), ATTN_OK);
}

static struct layer_version *version_of_kept(void)
{
    struct registry_row row;
    registry_look(layer_keeper_registry(keeper), KIND_LAYER, "kept", &row);
    ck_assert_ptr_nonnull(row.layer);
    return row.layer;
}

/* ---- a digest that is held up ---- */

struct held_up {
    struct layer_version *version;
    sem_t is_in_the_middle, goes_on;
    int looks;
};

/* The second check for cancellation follows the first piece. */
static bool stand(void *context)
{
    struct held_up *held_up = context;
    if (++held_up->looks == 2) {
        sem_post(&held_up->is_in_the_middle);
        sem_wait(&held_up->goes_on);
    }
    return false;
}

static void *compute_digest(void *argument)
{
    struct held_up *held_up = argument;
    attn_runtime runtime = attn_runtime_serial(NULL);
    runtime.is_cancelled = stand;
    runtime.cancel_context = held_up;
    ck_assert_ptr_nonnull(layer_version_digest(held_up->version, &runtime));
    return NULL;
}

/* ---- a request beside it ---- */

enum { NAMES_DIGEST = 1, REFUSED = 2 };

struct request {
    const char *name;
    service_function *service;
    enum media answer_media;
    const char *version, *if_match, *if_none_match;
    const char *body;
    unsigned outcome;
};

static const char *whole_text(struct chunks *out)
{
    chunks_bytes(out, "", 1);
    const char *text = chunks_join(out);
    ck_assert_ptr_nonnull(text);
    return text;
}

static void ask(const struct request *request)
{
    attn_error err = {.status = ATTN_OK};
    const attn_runtime runtime = attn_runtime_serial(NULL);
    const attn_arena_mark mark = attn_arena_mark_here(arena);
    struct chunks out = chunks_begin(arena);
    const struct text_span names[] = {text_span_of("kept"), text_span_of(request->version)};
    const char *body = request->body != NULL ? request->body : "";
    struct call call = {
        .in.body = body,
        .in.body_bytes = strlen(body),
        .in.answer_media = request->answer_media,
        .in.names = names,
        .in.limits = {.result_bytes = LIMIT_BYTES, .memory_bytes = LIMIT_BYTES, .flops = 1e9},
        .in.if_match = request->if_match,
        .in.if_none_match = request->if_none_match,
        .in.layers = keeper,
        .in.key = "",
        .in.runtime = &runtime,
        .out = &out,
        .err = &err,
    };
    struct layer_version *version = version_of_kept();
    char digest[DIGEST_TEXT];
    const attn_status status = request->service(&call);
    ck_assert_msg((status == ATTN_OK) == ((request->outcome & REFUSED) == 0), "%s: %s", request->name, err.message);
    (void)layer_version_known_digest(version, digest);
    ck_assert_msg((digest[0] != '\0') == ((request->outcome & NAMES_DIGEST) != 0), "%s: digest \"%s\"", request->name,
                  digest);
    if (request->outcome == NAMES_DIGEST && strstr(call.etag, digest) == NULL)
        ck_assert_msg(strstr(whole_text(&out), digest) != NULL, "%s does not name the digest", request->name);
    layer_version_release(version);
    version_release(call.version);
    attn_arena_release(arena, mark);
}

static void ask_while_a_digest_is_held_up(const struct request *request, const struct chunks *file)
{
    struct held_up held_up = {.looks = 0};
    pthread_t thread;
    begin(file);
    held_up.version = version_of_kept();
    ck_assert_int_eq(sem_init(&held_up.is_in_the_middle, 0, 0), 0);
    ck_assert_int_eq(sem_init(&held_up.goes_on, 0, 0), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, compute_digest, &held_up), 0);
    sem_wait(&held_up.is_in_the_middle);
    ask(request);
    sem_post(&held_up.goes_on);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    sem_destroy(&held_up.is_in_the_middle);
    sem_destroy(&held_up.goes_on);
    layer_version_release(held_up.version);
    layer_keeper_close(keeper);
}

static void ask_each(const struct request *requests, size_t count)
{
    struct chunks file;
    prepare(&file);
    for (size_t i = 0; i < count; i++)
        ask_while_a_digest_is_held_up(&requests[i], &file);
    attn_arena_destroy(arena);
}

/* One token of zeros. */
static const char *zeros(const char *before, const char *after)
{
    static char text[2 * WIDTH + 256];
    char *to = stpcpy(text, before);
    for (int column = 0; column < WIDTH; column++)
        to = stpcpy(to, column > 0 ? ",0" : "0");
    strcpy(to, after);
    return text;
}

START_TEST(requests_that_do_not_name_the_version_leave_the_digest_alone)
{
    const char *body = zeros("{\"inputs\":{\"query\":[[", "]]}}");
    const struct request requests[] = {
        {"attention", attend_kept, MEDIA_JSON, "", NULL, NULL, body, 0},
        {"attention, If-Match: *", attend_kept, MEDIA_JSON, "", "*", NULL, body, 0},
        {"attention, If-None-Match: *", attend_kept, MEDIA_JSON, "", NULL, "*", body, REFUSED},
        {"delete, If-None-Match: *", layers_remove, MEDIA_JSON, "", NULL, "*", NULL, REFUSED},
        {"put, If-None-Match: *", layers_put, MEDIA_JSON, "", NULL, "*", body, REFUSED},
        {"models", infer_models, MEDIA_JSON, "", NULL, NULL, NULL, 0},
        {"index", infer_index, MEDIA_JSON, "", NULL, NULL, "{}", 0},
        {"ready", infer_model_ready, MEDIA_JSON, "", NULL, NULL, NULL, 0},
        {"config", infer_config, MEDIA_JSON, "1", NULL, NULL, NULL, 0},
        {"statistics", infer_statistics, MEDIA_JSON, "", NULL, NULL, NULL, 0},
        {"statistics of all", infer_all_statistics, MEDIA_JSON, "", NULL, NULL, NULL, 0},
        {"a version that is no digest", infer_model_ready, MEDIA_JSON, "2", NULL, NULL, NULL, REFUSED},
        {"infer that is refused", infer_run, MEDIA_JSON, "", NULL, NULL, "{\"inputs\":[]}", REFUSED},
    };
    ask_each(requests, COUNT(requests));
}
END_TEST

START_TEST(requests_that_name_the_version_finish_a_digest_that_is_held_up)
{
    static const char none[] = "0000000000000000000000000000000000000000000000000000000000000000";
    const char *body =
        zeros("{\"inputs\":[{\"name\":\"QUERY\",\"datatype\":\"FP32\",\"shape\":[1,1,512],\"data\":[", "]}]}");
    const struct request requests[] = {
        {"list", layers_list, MEDIA_JSON, "", NULL, NULL, NULL, NAMES_DIGEST},
        {"get", layers_get, MEDIA_JSON, "", NULL, NULL, NULL, NAMES_DIGEST},
        {"get tensors", layers_get, MEDIA_SAFETENSORS, "", NULL, NULL, NULL, NAMES_DIGEST},
        {"metadata", infer_metadata, MEDIA_JSON, "", NULL, NULL, NULL, NAMES_DIGEST},
        {"infer", infer_run, MEDIA_JSON, "", NULL, NULL, body, NAMES_DIGEST},
        {"a digest in the path", infer_model_ready, MEDIA_JSON, none, NULL, NULL, NULL, NAMES_DIGEST | REFUSED},
        {"delete, If-Match: a tag", layers_remove, MEDIA_JSON, "", "\"x\"", NULL, NULL, NAMES_DIGEST | REFUSED},
        {"attention, If-Match: a tag", attend_kept, MEDIA_JSON, "", "\"x\"", NULL, NULL, NAMES_DIGEST | REFUSED},
    };
    ask_each(requests, COUNT(requests));
}
END_TEST

/* ---- changes of layers ---- */

static void *remove_if_match(void *argument)
{
    struct held_up *held_up = argument;
    attn_error err = {.status = ATTN_OK};
    attn_runtime runtime = attn_runtime_serial(NULL);
    runtime.is_cancelled = stand;
    runtime.cancel_context = held_up;
    struct call call = {.err = &err, .in.if_match = "\"x\"", .in.runtime = &runtime};
    ck_assert_int_ne(layer_keeper_remove(keeper, text_span_of("kept"), &call), ATTN_OK);
    ck_assert_int_eq(call.refusal, CALL_PRECONDITION);
    return NULL;
}

START_TEST(a_change_that_needs_a_digest_lets_other_changes_go_on)
{
    struct held_up held_up = {.looks = 0};
    struct chunks file;
    pthread_t thread;
    attn_error err = {.status = ATTN_OK};
    struct call call = {.err = &err};
    prepare(&file);
    begin(&file);
    ck_assert_int_eq(sem_init(&held_up.is_in_the_middle, 0, 0), 0);
    ck_assert_int_eq(sem_init(&held_up.goes_on, 0, 0), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, remove_if_match, &held_up), 0);
    sem_wait(&held_up.is_in_the_middle);
    ck_assert_int_eq(layer_keeper_put(keeper, text_span_of("other"), &file, &call), ATTN_OK);
    ck_assert_int_eq(call.outcome, CALL_CREATED);
    version_release(call.version);
    ck_assert_int_eq(layer_keeper_remove(keeper, text_span_of("other"), &call), ATTN_OK);
    sem_post(&held_up.goes_on);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    sem_destroy(&held_up.is_in_the_middle);
    sem_destroy(&held_up.goes_on);
    layer_keeper_close(keeper);
    attn_arena_destroy(arena);
}
END_TEST

CHECK_MAIN("layer_digest")
{
    tcase_add_test(tests, requests_that_do_not_name_the_version_leave_the_digest_alone);
    tcase_add_test(tests, requests_that_name_the_version_finish_a_digest_that_is_held_up);
    tcase_add_test(tests, a_change_that_needs_a_digest_lets_other_changes_go_on);
}
