/*
 * model_stage.h: for tests that plan and run whole models: an arena and stores per test, the error of the last call, a model
 * of a folder, and a watch that cancels after so many looks.
 */
#ifndef TESTS_SUPPORT_SERVER_MODEL_STAGE_H
#define TESTS_SUPPORT_SERVER_MODEL_STAGE_H

#include "check_main.h"
#include "codec/request/envelope.h"
#include "service/run/model/job.h"

enum { ROOMY_BYTES = 1 << 30 };

static attn_arena *arena;
static attn_error err;
static struct prepared_store *none; /* keeps no weights */

static inline struct model_version *open_model(const char *path)
{
    struct model_files files;
    struct model_version *version;
    ck_assert_msg(model_files_open(&files, NULL, path, &err) == ATTN_OK, "%s", err.message);
    ck_assert_msg(model_version_create("m", &files, &version, &err) == ATTN_OK, "%s", err.message);
    return version;
}

static inline void stage_begin(void)
{
    envelope_prepare();
    arena = attn_arena_create(ROOMY_BYTES);
    none = prepared_store_create(0);
}

static inline void stage_end(void)
{
    prepared_store_destroy(none);
    attn_arena_destroy(arena);
}

static size_t looks, looks_allowed;

static inline bool is_cancelled(void *context)
{
    (void)context;
    return ++looks > looks_allowed;
}

#endif
