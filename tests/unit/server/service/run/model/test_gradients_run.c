/*
 * test_gradients_run.c: tests of server/service/run/model/gradients: a run takes no more memory than its plan says, gives
 * the same bytes by every thread and whatever else is asked for, stops at every look, and fails cleanly.
 */
#include <stdio.h>
#include <string.h>

#include "model_stage.h"

static struct model_version *bert, *gpt2, *t5;

static void prepare(void)
{
    stage_begin();
    bert = open_model("tests/others/models/bert");
    gpt2 = open_model("tests/others/models/gpt2");
    t5 = open_model("tests/others/models/t5");
}

static void release(void)
{
    model_version_release(bert);
    model_version_release(gpt2);
    model_version_release(t5);
    stage_end();
}

static attn_status plan(struct run *run, const struct model_version *version, const char *body,
                        const attn_runtime *runtime, attn_arena *in)
{
    const attn_status status = read_run(run, version, body, MODEL_REQUEST_GRADIENTS, none, runtime, in);
    if (status != ATTN_OK)
        return status;
    run->gradients = (struct model_gradients){.job = &run->job};
    model_gradients_plan(&run->gradients);
    return run->job.outcome.status;
}

static attn_status run_gradients(struct run *run, const struct model_version *version, const char *body,
                                 const attn_runtime *runtime, attn_arena *in)
{
    const attn_status status = plan(run, version, body, runtime, in);
    if (status == ATTN_OK)
        model_gradients_run(&run->gradients);
    return status == ATTN_OK ? run->job.outcome.status : status;
}

#define INPUTS "{\"inputs\":{\"ids\":[[5,6,7,8],[9],[11,12,3]]"
#define TARGET ",\"target_ids\":[[0,4,9],[0,4,9,7,6],[0,3]]"
#define ALL    "\"attention\",\"embedding\",\"attention_gradient\",\"integrated\""
#define METRIC "\"metric\":{\"words\":[3,7]},\"steps\":2"

static const struct {
    const char *model, *body;
} asked[] = {
    {"bert", INPUTS "},\"options\":{\"return\":[" ALL "]," METRIC "}}"},
    {"gpt2", INPUTS "},\"options\":{\"return\":[" ALL "],\"compute\":\"float64\"," METRIC "}}"},
    {"t5", INPUTS TARGET "},\"options\":{\"return\":[" ALL "],\"layers\":[1],\"baseline\":\"pad\"," METRIC "}}"},
    {"t5", INPUTS TARGET "},\"options\":{\"return\":[" ALL
                         "],\"heads\":[2,0],\"queries\":[0],\"compute\":\"float64\"," METRIC "}}"},
};

static const struct model_version *version_of(int i)
{
    return strcmp(asked[i].model, "bert") == 0 ? bert : strcmp(asked[i].model, "gpt2") == 0 ? gpt2 : t5;
}

/* Many tokens, where the buffers of blocks count. */
static const char *long_body(size_t length, size_t target_length, const char *options)
{
    char *text = attn_arena_take(arena, 8 * (length + target_length) + 512, 1), *at = text;
    at += sprintf(at, "{\"inputs\":{\"ids\":[[1],[");
    for (size_t i = 0; i < length; i++)
        at += sprintf(at, "%s%zu", i > 0 ? "," : "", 3 + i % 300);
    at += sprintf(at, target_length > 0 ? "]],\"target_ids\":[[0],[" : "]]");
    for (size_t i = 0; i < target_length; i++)
        at += sprintf(at, "%s%zu", i > 0 ? "," : "", i % 300);
    sprintf(at, "%s},\"options\":{%s," METRIC "}}", target_length > 0 ? "]]" : "", options);
    return text;
}

START_TEST(a_run_takes_no_more_memory_than_planned)
{
    static const char *const options[] = {"\"return\":[" ALL "]", "\"return\":[" ALL "],\"compute\":\"float64\"",
                                          "\"return\":[\"embedding\",\"integrated\"]"};
    attn_pool *pool = attn_pool_create(&(attn_pool_options){.threads = 2}, &err);
    const attn_runtime serial = attn_runtime_serial(NULL), parallel = attn_pool_runtime(pool, NULL);
    const struct {
        const struct model_version *version;
        size_t length, target_length;
        const attn_runtime *runtime;
    } runs[] = {{t5, 200, 150, &serial}, {t5, 100, 250, &parallel}, {bert, 64, 0, &serial}, {gpt2, 40, 0, &parallel}};
    for (size_t i = 0; i < COUNT(runs); i++) {
        static struct run run;
        attn_arena *own = attn_arena_create(ROOMY_BYTES);
        const char *body = long_body(runs[i].length, runs[i].target_length, options[_i]);
        ck_assert_msg(plan(&run, runs[i].version, body, runs[i].runtime, own) == ATTN_OK, "%s", err.message);
        const size_t before = attn_arena_bytes(own);
        ck_assert_msg(model_gradients_run(&run.gradients), "%s", err.message);
        const size_t taken = attn_arena_peak_bytes(own) - before;
        ck_assert_msg((double)taken <= run.job.run_bytes, "%zu, %s: takes %zu bytes, planned %.0f", i, options[_i],
                      taken, run.job.run_bytes);
        attn_arena_destroy(own);
    }
    attn_pool_destroy(pool);
}
END_TEST

static const struct model_output *find(const struct run *run, const char *name)
{
    for (size_t i = 0; i < run->answer.output_count; i++)
        if (strcmp(run->answer.outputs[i].name, name) == 0)
            return &run->answer.outputs[i];
    return NULL;
}

static void expect_same(const struct run *a, const struct run *b)
{
    for (size_t i = 0; i < a->answer.output_count; i++) {
        const attn_tensor *one = &a->answer.outputs[i].tensor;
        const struct model_output *other = find(b, a->answer.outputs[i].name);
        ck_assert_msg(other == NULL || memcmp(one->data, other->tensor.data,
                                              attn_tensor_count(one) * attn_dtype_bytes(one->dtype)) == 0,
                      "%s has other bytes", a->answer.outputs[i].name);
    }
}

START_TEST(every_thread_gives_the_same_bytes_whatever_else_is_asked_for)
{
    attn_pool *pool = attn_pool_create(&(attn_pool_options){.threads = 3}, &err);
    const attn_runtime serial = attn_runtime_serial(NULL), parallel = attn_pool_runtime(pool, NULL);
    struct run *whole = attn_arena_take_zeroed(arena, 1, sizeof *whole),
               *other = attn_arena_take_zeroed(arena, 1, sizeof *other);
    char less[512];
    ck_assert_int_eq(run_gradients(whole, version_of(_i), asked[_i].body, &serial, arena), ATTN_OK);
    ck_assert_int_eq(run_gradients(other, version_of(_i), asked[_i].body, &parallel, arena), ATTN_OK);
    ck_assert_uint_eq(whole->answer.output_count, other->answer.output_count);
    expect_same(whole, other);
    const char *names = strstr(asked[_i].body, ALL);
    snprintf(less, sizeof less, "%.*s\"embedding\"%s", (int)(names - asked[_i].body), asked[_i].body,
             names + strlen(ALL));
    char *steps = strstr(less, ",\"steps\":2"), *baseline = strstr(less, ",\"baseline\":\"pad\"");
    memmove(steps, steps + strlen(",\"steps\":2"), strlen(steps + strlen(",\"steps\":2")) + 1);
    if (baseline != NULL)
        memmove(baseline, baseline + strlen(",\"baseline\":\"pad\""),
                strlen(baseline + strlen(",\"baseline\":\"pad\"")) + 1);
    const attn_status status = run_gradients(other, version_of(_i), less, &serial, arena);
    ck_assert_msg(status == ATTN_OK, "%s: %s", less, err.message);
    expect_same(other, whole);
    attn_pool_destroy(pool);
}
END_TEST

static attn_status run_asked(struct run *run, size_t i, const attn_runtime *runtime, attn_arena *in)
{
    return run_gradients(run, version_of((int)i), asked[i].body, runtime, in);
}

START_TEST(cancellation_is_noticed_at_every_look)
{
    /* forward and back through each block of each item, in each pass */
    cancel_at_every_look(run_asked, (size_t)_i, 397, 3 * 4 * 2 * 2);
}
END_TEST

START_TEST(a_refused_block_of_memory_is_a_clean_failure)
{
    refuse_every_block(run_asked, (size_t)_i, 211);
}
END_TEST

CHECK_MAIN("gradients_run")
{
    tcase_add_checked_fixture(tests, prepare, release);
    tcase_add_loop_test(tests, a_run_takes_no_more_memory_than_planned, 0, 3);
    tcase_add_loop_test(tests, every_thread_gives_the_same_bytes_whatever_else_is_asked_for, 0, COUNT(asked));
    tcase_add_loop_test(tests, cancellation_is_noticed_at_every_look, 0, COUNT(asked));
    tcase_add_loop_test(tests, a_refused_block_of_memory_is_a_clean_failure, 0, COUNT(asked));
}
