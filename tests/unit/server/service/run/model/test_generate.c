/*
 * test_generate.c: tests of server/service/run/model/generate.c with small models: the same tokens however they are found,
 * memory, and cancellation.
 */
#include <stdio.h>
#include <string.h>

#include "model_stage.h"

static struct prepared_store *roomy;
static struct model_version *gpt2, *t5;

static void prepare(void)
{
    stage_begin();
    roomy = prepared_store_create(1 << 26);
    gpt2 = open_model("tests/others/models/gpt2");
    t5 = open_model("tests/others/models/t5");
}

static void release(void)
{
    model_version_release(gpt2);
    model_version_release(t5);
    prepared_store_destroy(roomy);
    stage_end();
}

static attn_status plan_job(struct run *run, const struct model_version *version, bool generates,
                            struct prepared_store *prepared, const attn_runtime *runtime, attn_arena *in)
{
    fill_job(run, version, prepared, runtime, in);
    run->job.generation = generates ? &run->generation : NULL;
    return model_job_plan(&run->job);
}

static attn_status plan(struct run *run, const struct model_version *version, const char *body,
                        struct prepared_store *prepared, const attn_runtime *runtime, attn_arena *in)
{
    err = (attn_error){.status = ATTN_OK};
    struct outcome outcome = {.arena = in, .err = &err};
    const bool is_ok =
        outcome_note(&outcome,
                     model_request_decode(body, strlen(body), MODEL_REQUEST_ATTENTION, in, &run->request, &err)) &&
        model_generation_check(version, &run->request, &outcome) &&
        outcome_note(&outcome,
                     model_batch_make(&run->batch, version, &run->request, MODEL_REQUEST_ATTENTION, in, &err)) &&
        model_generation_begin(&run->generation, &run->batch, &run->request, &outcome) &&
        outcome_note(&outcome, plan_job(run, version, true, prepared, runtime, in));
    run->planned_bytes = is_ok ? run->job.run_bytes : 0;
    return outcome.status;
}

/* Behind plan: the tokens, and then all that the request asks for. */
static attn_status generate_and_run(struct run *run)
{
    const struct model_job job = run->job;
    attn_status status = model_job_generate(&run->job);
    if (status == ATTN_OK)
        status = plan_job(run, job.version, false, job.prepared, job.runtime, job.outcome.arena);
    return status == ATTN_OK ? model_job_run(&run->job) : status;
}

static struct run *run_by(const struct model_version *version, const char *body, struct prepared_store *prepared,
                          const attn_runtime *runtime)
{
    struct run *run = attn_arena_take_zeroed(arena, 1, sizeof *run);
    attn_status status = plan(run, version, body, prepared, runtime, arena);
    if (status == ATTN_OK)
        status = generate_and_run(run);
    ck_assert_msg(status == ATTN_OK, "%s: %s: %s", body, err.field, err.message);
    return run;
}

static void check_same(const struct run *run, const struct run *other)
{
    for (size_t i = 0; i < run->request.inputs.batch; i++) {
        const struct model_continuation *a = &run->generation.items[i], *b = &other->generation.items[i];
        ck_assert_uint_eq(a->count, b->count);
        ck_assert_mem_eq(a->ids, b->ids, a->count * sizeof *a->ids);
        ck_assert_str_eq(a->ended_by, b->ended_by);
    }
    ck_assert_uint_eq(run->answer.output_count, other->answer.output_count);
    for (size_t i = 0; i < run->answer.output_count; i++) {
        const attn_tensor *a = &run->answer.outputs[i].tensor, *b = &other->answer.outputs[i].tensor;
        ck_assert_mem_eq(a->data, b->data, attn_tensor_count(a) * attn_dtype_bytes(a->dtype));
    }
}

#define IDS    "\"inputs\":{\"ids\":[[5,6,7,8],[9],[11,12,13]]"
#define PAIRED IDS ",\"target_ids\":[[0,4,9],[0],[0,7]]}"
#define ALL    "\"return\":[\"attention\",\"hidden\",\"output\",\"logits\",\"rollout\",\"logit_lens\"]"

static const char *const bodies[] = {
    "{" IDS "},\"options\":{\"new_tokens\":5," ALL "}}",
    "{" IDS "},\"options\":{\"new_tokens\":4,\"compute\":\"float64\",\"return\":[\"generated\"]}}",
    "{" PAIRED ",\"options\":{\"new_tokens\":5," ALL "}}",
    "{" IDS "},\"options\":{\"new_tokens\":3,\"compute\":\"float64\",\"stop\":[3,\"no such text\"]," ALL "}}",
};

static const struct model_version *version_of(size_t body)
{
    return body < 2 ? gpt2 : t5;
}

START_TEST(the_tokens_are_the_same_by_threads_and_with_prepared_weights)
{
    attn_pool *pool = attn_pool_create(&(attn_pool_options){.threads = 2}, &err);
    ck_assert_ptr_nonnull(pool);
    const attn_runtime serial = attn_runtime_serial(NULL), parallel = attn_pool_runtime(pool, NULL);
    struct model_version *prepared =
        open_model(version_of((size_t)_i) == gpt2 ? "tests/others/models/gpt2" : "tests/others/models/t5");
    const struct run *whole = run_by(version_of((size_t)_i), bodies[_i], none, &serial);
    check_same(run_by(version_of((size_t)_i), bodies[_i], none, &parallel), whole);
    check_same(run_by(prepared, bodies[_i], roomy, &serial), whole);
    check_same(run_by(prepared, bodies[_i], roomy, &parallel), whole);
    model_version_release(prepared);
    attn_pool_destroy(pool);
}
END_TEST

/* The keys and values that were kept are those of a sequence that is read at once. */
START_TEST(tokens_found_in_two_requests_are_those_of_one)
{
    char body[512], ids[256];
    const attn_runtime serial = attn_runtime_serial(NULL);
    const struct run *whole = run_by(
        gpt2, "{\"inputs\":{\"ids\":[5,6]},\"options\":{\"new_tokens\":12,\"return\":\"generated\"}}", none, &serial);
    const struct model_continuation *item = &whole->generation.items[0];
    ck_assert_uint_eq(item->count, 14);
    for (size_t given = 3; given < 14; given++) {
        size_t used = 0;
        for (size_t i = 0; i < given; i++)
            used +=
                (size_t)snprintf(ids + used, sizeof ids - used, "%s%lld", i > 0 ? "," : "", (long long)item->ids[i]);
        snprintf(body, sizeof body,
                 "{\"inputs\":{\"ids\":[%s]},\"options\":{\"new_tokens\":%zu,\"return\":\"generated\"}}", ids,
                 14 - given);
        const struct run *rest = run_by(gpt2, body, none, &serial);
        ck_assert_mem_eq(rest->generation.items[0].ids, item->ids, 14 * sizeof *item->ids);
    }
}
END_TEST

/* ---- memory ---- */

static const char *const large_options[] = {
    "\"new_tokens\":20,\"return\":[\"generated\"]",
    "\"new_tokens\":3,\"return\":[\"attention\",\"hidden\"]",
    "\"new_tokens\":12,\"return\":[\"generated\"],\"compute\":\"float64\"",
    "\"new_tokens\":9,\"stop\":[\"no such text\",\"nor this\"],\"return\":[\"logits\"]",
};

static void check_memory(const struct model_version *version, const char *body, const attn_runtime *runtime)
{
    static struct run run;
    attn_arena *own = attn_arena_create(ROOMY_BYTES);
    attn_status status = plan(&run, version, body, none, runtime, own);
    ck_assert_msg(status == ATTN_OK, "%s", err.message);
    const size_t before = attn_arena_bytes(own);
    ck_assert_msg(generate_and_run(&run) == ATTN_OK, "%s", err.message);
    const size_t taken = attn_arena_peak_bytes(own) - before;
    ck_assert_msg((double)taken <= run.planned_bytes, "%s: takes %zu bytes, planned %.0f", strstr(body, "options"),
                  taken, run.planned_bytes);
    attn_arena_destroy(own);
}

START_TEST(generating_takes_no_more_memory_than_planned)
{
    attn_pool *pool = attn_pool_create(&(attn_pool_options){.threads = 2}, &err);
    const attn_runtime serial = attn_runtime_serial(NULL), parallel = attn_pool_runtime(pool, NULL);
    char body[8192];
    for (size_t paired = 0; paired < 2; paired++) {
        const size_t length = paired ? 700 : 20;
        size_t used = (size_t)snprintf(body, sizeof body, "{\"inputs\":{\"ids\":[[9],[");
        for (size_t i = 0; i < length; i++)
            used += (size_t)snprintf(body + used, sizeof body - used, "%s%zu", i > 0 ? "," : "", 3 + i % 300);
        snprintf(body + used, sizeof body - used, "]]%s},\"options\":{%s}}",
                 paired ? ",\"target_ids\":[[0,4,5],[0]]" : "", large_options[_i]);
        check_memory(paired ? t5 : gpt2, body, &serial);
        check_memory(paired ? t5 : gpt2, body, &parallel);
    }
    attn_pool_destroy(pool);
}
END_TEST

static attn_status run_body(struct run *run, size_t i, const attn_runtime *runtime, attn_arena *in)
{
    const attn_status status = plan(run, version_of(i), bodies[i], none, runtime, in);
    return status == ATTN_OK ? generate_and_run(run) : status;
}

START_TEST(a_refused_block_of_memory_is_a_clean_failure)
{
    refuse_every_block(run_body, (size_t)_i, 61);
}
END_TEST

/* ---- cancellation ---- */

START_TEST(cancellation_is_noticed_at_every_look)
{
    cancel_at_every_look(run_body, (size_t)_i, 41, 3 * 3 * 3); /* each block of each step of each item */
}
END_TEST

CHECK_MAIN("generate")
{
    tcase_add_checked_fixture(tests, prepare, release);
    tcase_add_loop_test(tests, the_tokens_are_the_same_by_threads_and_with_prepared_weights, 0, COUNT(bodies));
    tcase_add_test(tests, tokens_found_in_two_requests_are_those_of_one);
    tcase_add_loop_test(tests, generating_takes_no_more_memory_than_planned, 0, COUNT(large_options));
    tcase_add_loop_test(tests, a_refused_block_of_memory_is_a_clean_failure, 0, COUNT(bodies));
    tcase_add_loop_test(tests, cancellation_is_noticed_at_every_look, 0, COUNT(bodies));
}
