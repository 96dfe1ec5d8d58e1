/*
 * test_at_once.c: tests of server/http/at_once.c: which requests an I/O thread computes, and that each of them costs it
 * little. The test counts bytes of the arena and planned operations, never time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attn/multihead.h"
#include "check_main.h"
#include "codec/request/envelope.h"
#include "http/steps.h"
#include "http_client.h"
#include "http_stage.h"
#include "service/cache/cache.h"

enum { BODY = 4096, ARENA_MAX = 1 << 20 };
static const double OPERATIONS_MAX = 1e6;

/* Of the one request at a time. */
static bool is_at_once;
static size_t peak_bytes;
static double operations;

bool __real_at_once_suffices(const struct request *request);
bool __wrap_at_once_suffices(const struct request *request);
enum problem __real_compute_answer(struct request *request, attn_runtime runtime);
enum problem __wrap_compute_answer(struct request *request, attn_runtime runtime);
attn_status __real_attn_plan_run(const attn_plan *plan, const attn_bindings *bindings, const attn_runtime *runtime,
                                 attn_arena *arena, attn_result *result, attn_error *err);
attn_status __wrap_attn_plan_run(const attn_plan *plan, const attn_bindings *bindings, const attn_runtime *runtime,
                                 attn_arena *arena, attn_result *result, attn_error *err);

bool __wrap_at_once_suffices(const struct request *request)
{
    is_at_once = __real_at_once_suffices(request);
    return is_at_once;
}

enum problem __wrap_compute_answer(struct request *request, attn_runtime runtime)
{
    const enum problem problem = __real_compute_answer(request, runtime);
    peak_bytes = is_at_once ? attn_arena_peak_bytes(request->arena) : 0;
    return problem;
}

attn_status __wrap_attn_plan_run(const attn_plan *plan, const attn_bindings *bindings, const attn_runtime *runtime,
                                 attn_arena *arena, attn_result *result, attn_error *err)
{
    operations = is_at_once ? plan->time_flops : 0;
    return __real_attn_plan_run(plan, bindings, runtime, arena, result, err);
}

#define QUERY "{\"inputs\":{\"query\":"
#define ONE   QUERY "[[1]]}"

/* Bodies: before, then piece up to most times, as often as it fits into a small body, then behind. */
static const struct {
    const char *before, *piece, *behind;
    size_t most;
    bool is_at_once;
} bodies[] = {
    {ONE, "", "}", 0, true},
    {QUERY "[[1]", ",[1]", "]}}", 31, true},
    {QUERY "[[1]", ",[1]", "]}}", BODY, false},
    {QUERY "[[1", ",1", "]]}}", BODY, true},
    {QUERY "[[[[1,2],[3,4]],[[1,2],[3,4]]]]},\"options\":{\"return\":\"attention\"}", "", "}", 0, true},
    {QUERY "[[1,2]],\"key\":[[1,2]", ",[1,2]", "]}}", 300, true},
    {QUERY "[[1,2]],\"key\":{\"shape\":[3,2],\"data\":[1,2,3,4,5,6]}}", "", "}", 0, true},
    {"{\"inputs\":{\"key\":[[1]],\"query\":[[1]", ",[1]", "]}}", BODY, false},
    {"{\"inputs\":{\"key\":[[1]],\"qu\\u0065ry\":[[1]", ",[1]", "]}}", 40, false},
    {QUERY "{\"shape\":[32,2],\"dtype\":\"float16\",\"base64\":\"AAAAAAAA", "e9999999", "\"}}}", 4, true},
    {QUERY "{\"shape\":[512,2],\"dtype\":\"float16\",\"base64\":\"", "AAAAAAAA", "\"}}}", 342, false},
    {QUERY "[[1,2,3,4],[1,2,3,4]]},\"options\":{\"num_heads\":4}", "", "}", 0, true},
    {QUERY "[[1,2,3,4],[1,2,3,4]]},\"options\":{\"num_heads\":4096}", "", "}", 0, false},
    {ONE ",\"options\":{\"heads\":[0,4095],\"queries\":[0,1048575],\"keys\":[0,1048575]}", "", "}", 0, false},
    {ONE ",\"options\":{\"queries\":\"0-1048575\"}", "", "}", 0, false},
    {ONE ",\"options\":{\"keys\":[[0,500000],[500001,1000000]]}", "", "}", 0, false},
    {ONE ",\"options\":{\"keys\":[[0,9]", ",[0,9]", "]}}", 20, true},
    {"{\"a\":[{}", ",{}", "]}", BODY, true},
    {"{\"tokens\":{\"query\":[\"\"", ",\"\"", "]},\"inputs\":{\"query\":[[1]]}}", BODY, true},
    {"{\"tokens\":{\"query\":[\"[\",\"\\u0444\"]},\"inputs\":{\"query\":[[1],[2]]}}", "", "", 0, true},
    {ONE ",\"options\":{\"mechanism\":{\"type\":\"performer\",\"features\":65536}}", "", "}", 0, false},
    {ONE ",\"options\":{\"mechanism\":{\"type\":\"performer\",\"features\":64}}", "", "}", 0, true},
    {ONE ",\"options\":{\"cache\":\"a\"}", "", "}", 0, false},
    {ONE ",\"masks\":{\"bias\":[[-1e9]]}", "", "}", 0, true},
    {QUERY "[[1]", ",[1]", "]},\"masks\":{\"blocks\":{\"size\":1,\"attend\":[[true]]}}}", BODY, false},
    {QUERY "{\"shape\":[1048576,1048576],\"data\":[1]}}", "", "}", 0, false},
};

static void ask(unsigned port, size_t i, const char *accept)
{
    char body[BODY + 1], request[BODY + 512];
    size_t used = (size_t)snprintf(body, sizeof body, "%s", bodies[i].before);
    const size_t piece = strlen(bodies[i].piece), behind = strlen(bodies[i].behind);
    for (size_t count = 0; count < bodies[i].most && used + piece + behind <= BODY; used += piece, count++)
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
    stage.setup.caches = cache_store_create(4096, 4, 60);
    http_stage_start(&stage);
    for (size_t c = 0; c < COUNT(codings); c++) {
        peak_bytes = 0;
        operations = 0;
        ask(stage.port, (size_t)_i, codings[c]);
        ck_assert_msg(is_at_once == bodies[_i].is_at_once, "%s: at once: %d", bodies[_i].before, is_at_once);
        ck_assert_msg(peak_bytes <= ARENA_MAX, "%s: %zu bytes", bodies[_i].before, peak_bytes);
        ck_assert_msg(operations <= OPERATIONS_MAX, "%s: %g operations", bodies[_i].before, operations);
    }
    http_stage_stop(&stage);
    cache_store_destroy(stage.setup.caches);
}
END_TEST

CHECK_MAIN("at_once")
{
    tcase_add_loop_test(tests, a_small_body_costs_an_io_thread_little, 0, COUNT(bodies));
}
