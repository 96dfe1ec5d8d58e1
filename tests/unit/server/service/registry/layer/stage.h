/*
 * stage.h: a directory of layers on which each system call can be made to fail. Two test programs include it
 * before any other file.
 */
#ifndef TESTS_UNIT_SERVER_SERVICE_REGISTRY_LAYER_STAGE_H
#define TESTS_UNIT_SERVER_SERVICE_REGISTRY_LAYER_STAGE_H

#include "failing_calls.h"

#include <dirent.h>

#include "check_main.h"
#include "codec/request/envelope.h"
#include "service/registry/layer/keeper.h"

enum { ARENA_BYTES = 1 << 20 };

static const char layer_text[] = "{\"weights\":{\"query\":{\"weight\":[[1]]},\"key\":{\"weight\":[[1]]},"
                                 "\"value\":{\"weight\":[[1]]}}}";
static const struct log silence = {.fd = 2, .format = LOG_TEXT, .level = LOG_OFF};
static char folder[64];
static struct layer_settings settings;
static struct layer_keeper *keeper;
static attn_arena *arena;
static struct chunks content;
static char message[320];

static inline struct layer_keeper *open_keeper(void)
{
    return layer_keeper_open(&settings, &silence, message, sizeof message);
}

static inline void prepare(void)
{
    attn_error err = {.status = ATTN_OK};
    envelope_prepare();
    snprintf(folder, sizeof folder, "/tmp/layer_faults_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    settings = (struct layer_settings){.directory = folder, .max_count = 4, .max_bytes = 1 << 20, .older = 1};
    arena = attn_arena_create(ARENA_BYTES);
    ck_assert_ptr_nonnull(arena);
    content = chunks_begin(arena);
    ck_assert_int_eq(kept_layer_write(layer_text, strlen(layer_text), arena, &content, &err), ATTN_OK);
    keeper = open_keeper();
    ck_assert_msg(keeper != NULL, "%s", message);
}

static inline size_t entries(void)
{
    DIR *directory = opendir(folder);
    size_t count = 0;
    ck_assert_ptr_nonnull(directory);
    while (readdir(directory) != NULL)
        count++;
    closedir(directory);
    return count - 2; /* "." and ".." */
}

static inline void release(void)
{
    DIR *directory = opendir(folder);
    fault.call = NULL;
    layer_keeper_close(keeper);
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;)
        (void)unlinkat(dirfd(directory), entry->d_name, 0);
    closedir(directory);
    ck_assert_int_eq(rmdir(folder), 0);
    attn_arena_destroy(arena);
}

/* One request to the keeper: its status and its message. */
struct asked {
    attn_status status;
    enum call_refusal refusal;
    attn_error err;
};

static inline struct asked put(const char *name)
{
    struct asked asked = {.status = ATTN_OK};
    struct call call = {.err = &asked.err};
    asked.status = layer_keeper_put(keeper, text_span_of(name), &content, &call);
    asked.refusal = call.refusal;
    ck_assert((asked.status == ATTN_OK) == (call.version != NULL));
    version_release(call.version);
    return asked;
}

static inline struct asked find(const char *name)
{
    struct asked asked = {.status = ATTN_OK};
    struct call call = {.err = &asked.err};
    asked.status = layer_keeper_find(keeper, text_span_of(name), &call);
    asked.refusal = call.refusal;
    version_release(call.version);
    return asked;
}

static inline struct asked remove_layer(const char *name)
{
    struct asked asked = {.status = ATTN_OK};
    struct call call = {.err = &asked.err};
    asked.status = layer_keeper_remove(keeper, text_span_of(name), &call);
    asked.refusal = call.refusal;
    return asked;
}

/* A call that fails, and the expected message. */
struct failing {
    const char *call;
    int skip, reason;
    attn_status status;
    enum call_refusal refusal;
    const char *fragment;
};

#endif
