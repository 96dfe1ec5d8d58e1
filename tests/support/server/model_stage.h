/*
 * model_stage.h: for tests that plan and run whole models: an arena and stores per test, the error of the last call, a model
 * of a folder, a request while it runs, and two frames: every block of memory is refused, and every look cancels.
 *
 * A program that includes it is linked with TAKES_CAN_FAIL (failing_take.h).
 */
#ifndef TESTS_SUPPORT_SERVER_MODEL_STAGE_H
#define TESTS_SUPPORT_SERVER_MODEL_STAGE_H

#include "check_main.h"
#include "codec/request/envelope.h"
#include "failing_take.h"
#include "service/run/model/gradients/gradients.h"
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

/* ---- a request ---- */

/* A request while it runs. It refers to itself, and so is not moved. */
struct run {
    const char *body;
    struct model_request request;
    struct model_batch batch;
    struct model_generation generation;
    struct model_answer answer;
    struct model_job job;
    struct model_gradients gradients;
    double planned_bytes;
};

static inline void fill_job(struct run *run, const struct model_version *version, struct prepared_store *prepared,
                            const attn_runtime *runtime, attn_arena *in)
{
    run->answer = (struct model_answer){.output_count = 0};
    run->job = (struct model_job){.version = version,
                                  .request = &run->request,
                                  .prepared = prepared,
                                  .runtime = runtime,
                                  .outcome = {.arena = in, .err = &err},
                                  .items = run->batch.items,
                                  .answer = &run->answer};
}

/* Reads the request, and fills in the job. */
static inline attn_status read_run(struct run *run, const struct model_version *version, const char *body,
                                   model_request_kind kind, struct prepared_store *prepared,
                                   const attn_runtime *runtime, attn_arena *in)
{
    err = (attn_error){.status = ATTN_OK};
    attn_status status = model_request_decode(body, strlen(body), kind, in, &run->request, &err);
    if (status == ATTN_OK)
        status = model_batch_make(&run->batch, version, &run->request, MODEL_REQUEST_ATTENTION, in, &err);
    run->body = body;
    if (status == ATTN_OK)
        fill_job(run, version, prepared, runtime, in);
    return status;
}

static inline attn_status plan_run(struct run *run, const struct model_version *version, const char *body,
                                   struct prepared_store *prepared, const attn_runtime *runtime, attn_arena *in)
{
    const attn_status status = read_run(run, version, body, MODEL_REQUEST_ATTENTION, prepared, runtime, in);
    return status == ATTN_OK ? model_job_plan(&run->job) : status;
}

static inline attn_status plan_and_run(struct run *run, const struct model_version *version, const char *body,
                                       struct prepared_store *prepared, const attn_runtime *runtime, attn_arena *in)
{
    const attn_status status = plan_run(run, version, body, prepared, runtime, in);
    return status == ATTN_OK ? model_job_run(&run->job) : status;
}

/* ---- the frames ---- */

/* Plans and runs request i of a test. */
typedef attn_status run_function(struct run *run, size_t i, const attn_runtime *runtime, attn_arena *in);

/* Refuses one block of memory after another; each is a clean failure. */
static inline void refuse_every_block(run_function *work, size_t i, size_t stride)
{
    const attn_runtime runtime = attn_runtime_serial(NULL);
    bool was_refused = true;
    for (size_t take = 0; was_refused; take += one_in(stride)) {
        static struct run run;
        attn_arena *own = attn_arena_create(ROOMY_BYTES);
        fail_take(take);
        const attn_status status = work(&run, i, &runtime, own);
        was_refused = take_has_failed();
        if (was_refused)
            ck_assert_msg(status == ATTN_ERR_NO_MEMORY && err.status == status && err.message[0] != '\0',
                          "block %zu: %s: %s", take, attn_status_name(status), err.message);
        else
            ck_assert_int_eq(status, ATTN_OK);
        attn_arena_destroy(own);
    }
}

static size_t looks, looks_allowed;

static inline bool is_cancelled(void *context)
{
    (void)context;
    return ++looks > looks_allowed;
}

/* Cancels at one look after another, until a run is done, which looks more than that many times. */
static inline void cancel_at_every_look(run_function *work, size_t i, size_t stride, size_t times)
{
    attn_runtime runtime = attn_runtime_serial(NULL);
    runtime.is_cancelled = is_cancelled;
    attn_status status = ATTN_ERR_CANCELLED;
    for (looks_allowed = 0; status == ATTN_ERR_CANCELLED; looks_allowed += one_in(stride)) {
        static struct run run;
        attn_arena *own = attn_arena_create(ROOMY_BYTES);
        looks = 0;
        attn_arena_watch(own, is_cancelled, NULL);
        status = work(&run, i, &runtime, own);
        ck_assert_msg(status == ATTN_OK || status == ATTN_ERR_CANCELLED, "%s", err.message);
        ck_assert_int_eq(err.status, status);
        attn_arena_destroy(own);
    }
    ck_assert_int_eq(status, ATTN_OK);
    ck_assert_uint_gt(looks, times);
}

#endif
