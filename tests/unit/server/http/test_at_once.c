/*
 * test_at_once.c: tests of job_compute_at_once in server/http/job.c: the cost of a small request on an I/O thread is
 * bounded for every body. The test counts bytes of the arena and planned operations, never time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attn/multihead.h"
#include "check_main.h"
#include "codec/request/envelope_decode.h"
#include "http_client.h"
#include "http_stage.h"

enum { BODY = 4096, ARENA_MAX = 1 << 20 };
static const double OPERATIONS_MAX = 1e6;

/* Of the one request at a time: job_compute_at_once sets a ceiling, then the former one again. */
static size_t tries, peak_bytes;
static double operations;
static bool is_trying;

void __real_attn_arena_set_limit(attn_arena *arena, size_t limit_bytes);
void __wrap_attn_arena_set_limit(attn_arena *arena, size_t limit_bytes);
attn_status __real_attn_plan_run(const attn_plan *plan, const attn_bindings *bindings, const attn_runtime *runtime,
                                 attn_arena *arena, attn_result *result, attn_error *err);
attn_status __wrap_attn_plan_run(const attn_plan *plan, const attn_bindings *bindings, const attn_runtime *runtime,
                                 attn_arena *arena, attn_result *result, attn_error *err);

void __wrap_attn_arena_set_limit(attn_arena *arena, size_t limit_bytes)
{
    if (is_trying)
        peak_bytes = attn_arena_peak_bytes(arena);
    tries += !is_trying;
    is_trying = !is_trying;
    __real_attn_arena_set_limit(arena, limit_bytes);
}

attn_status __wrap_attn_plan_run(const attn_plan *plan, const attn_bindings *bindings, const attn_runtime *runtime,
                                 attn_arena *arena, attn_result *result, attn_error *err)
{
    operations = is_trying ? plan->time_flops : operations;
    return __real_attn_plan_run(plan, bindings, runtime, arena, result, err);
}

/* Bodies: before, then piece as often as it fits into a small body, then behind. */
static const struct {
    const char *before, *piece, *behind;
    bool is_tried;
} bodies[] = {
    {"{\"inputs\":{\"query\":[[1]]}", "", "}", true},
    {"{\"inputs\":{\"query\":[[1]", ",[1]", "]}}", true},
    {"{\"inputs\":{\"query\":[[1", ",1", "]]}}", true},
    {"{\"inputs\":{\"query\":[[1]]},\"options\":{\"heads\":[0,4095],\"queries\":[0,1048575],\"keys\":[0,1048575]}", "",
     "}", true},
    {"{\"inputs\":{\"query\":[[1]]},\"options\":{\"keys\":[[0,500000],[500001,1000000]]}", "", "}", true},
    {"{\"inputs\":{\"query\":[[1]]},\"options\":{\"keys\":[[0,9]", ",[0,9]", "]}}", true},
    {"{\"a\":[{}", ",{}", "]}", true},
    {"{\"tokens\":{\"query\":[\"\"", ",\"\"", "]},\"inputs\":{\"query\":[[1]]}}", true},
    {"{\"inputs\":{\"query\":[[1]]},\"options\":{\"mechanism\":{\"type\":\"performer\",\"features\":65536}}", "", "}",
     true},
    {"{\"inputs\":{\"query\":[[1]", ",[1]", "]},\"masks\":{\"blocks\":{\"size\":1,\"attend\":[[true]]}}}", true},
    {"{\"inputs\":{\"query\":{\"shape\":[1048576,1048576],\"data\":[1]}}", "", "}", true},
};

static void ask(unsigned port, size_t i, const char *accept)
{
    char body[BODY + 1], request[BODY + 512];
    size_t used = (size_t)snprintf(body, sizeof body, "%s", bodies[i].before);
    const size_t piece = strlen(bodies[i].piece), behind = strlen(bodies[i].behind);
    for (; piece > 0 && used + piece + behind <= BODY; used += piece)
        memcpy(body + used, bodies[i].piece, piece);
    memcpy(body + used, bodies[i].behind, behind + 1);
    snprintf(request, sizeof request,
             "POST /v1/attention HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nAccept-Encoding: %s\r\n"
             "Content-Length: %zu\r\n\r\n%s",
             accept, used + behind, body);
    struct http_answer answer = http_ask(port, request);
    ck_assert_msg(answer.status == 200 || answer.status == 400 || answer.status == 413, "%s: %d: %.300s",
                  bodies[i].before, answer.status, answer.body);
    http_free(&answer);
}

START_TEST(a_small_body_costs_an_io_thread_little)
{
    static const char *const codings[] = {"identity", "gzip", "zstd"};
    struct http_stage stage = http_stage_of(NULL);
    envelope_prepare();
    stage.setup.limits.memory_bytes = 64 << 20;
    stage.setup.limits.result_bytes = 16 << 20;
    stage.setup.limits.flops = 1e12;
    http_stage_start(&stage);
    for (size_t c = 0; c < COUNT(codings); c++) {
        tries = 0;
        peak_bytes = 0;
        operations = 0;
        ask(stage.port, (size_t)_i, codings[c]);
        ck_assert_msg((tries == 1) == bodies[_i].is_tried, "%s: %zu tries", bodies[_i].before, tries);
        ck_assert_msg(peak_bytes <= ARENA_MAX, "%s: %zu bytes", bodies[_i].before, peak_bytes);
        ck_assert_msg(operations <= OPERATIONS_MAX, "%s: %g operations", bodies[_i].before, operations);
    }
    http_stage_stop(&stage);
}
END_TEST

CHECK_MAIN("at_once")
{
    tcase_add_loop_test(tests, a_small_body_costs_an_io_thread_little, 0, COUNT(bodies));
}
