/*
 * http_stage.c: a whole server in the test's own process.
 *
 * The counters, and the gate that holds jobs back are global because a service has no argument of its own; check forks
 * every test, so each has its own gate.
 */
#include "http_stage.h"

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static atomic_bool is_released;
static atomic_size_t begun;
static struct metrics metrics;

struct http_stage http_stage_of(service_function *service)
{
    return (struct http_stage){
        .log = {.fd = 2, .format = LOG_TEXT, .level = LOG_OFF},
        .setup = {.host = "127.0.0.1",
                  .port = "0",
                  .cors_origin = "*",
                  .host_names = "a,x,test",
                  .trusted_proxies = "",
                  .io_threads = 2,
                  .connections = 200,
                  /* In an instrumented build, one client takes so long that another one would be cut. */
                  .idle_timeout_s = 240,
                  .header_timeout_s = 240,
                  .receive_timeout_s = 240,
                  .request_timeout_s = 240,
                  .metrics = &metrics,
                  .deadline_s = 240,
                  .cancels_on_half_close = true,
                  .max_body_bytes = 1 << 20,
                  .limits = {.result_bytes = 16 << 20, .memory_bytes = 32 << 20, .flops = 1e12},
                  .instead = service,
                  .facts = {.kernel = "portable", .io_threads = 2, .compute_threads = 2}},
        .compute_threads = 2,
        .queue = 8,
    };
}

void http_stage_start(struct http_stage *stage)
{
    char message[256] = "no executor";
    stage->executor = executor_create(stage->compute_threads, stage->queue, NULL);
    ck_assert_ptr_nonnull(stage->executor);
    stage->setup.executor = stage->executor;
    stage->setup.log = &stage->log;
    stage->server = http_daemon_start(&stage->setup, message, sizeof message);
    ck_assert_msg(stage->server != NULL, "%s", message);
    http_daemon_set_ready(stage->server);
    stage->port = (unsigned)strtoul(strrchr(http_daemon_url(stage->server), ':') + 1, NULL, 10);
}

void http_stage_stop(struct http_stage *stage)
{
    http_daemon_stop(stage->server);
    executor_destroy(stage->executor);
}

attn_status http_stage_echo(struct call *call)
{
    /* In several chunks, as real answers are. */
    for (size_t i = 0; i < call->in.body_bytes; i += 1000)
        chunks_bytes(call->out, call->in.body + i, call->in.body_bytes - i < 1000 ? call->in.body_bytes - i : 1000);
    return call->out->is_ok ? ATTN_OK : attn_fail(call->err, ATTN_ERR_NO_MEMORY, NULL, "no memory to echo");
}

attn_status http_stage_wait(struct call *call)
{
    begun++;
    while (!is_released) {
        if (call->in.runtime->is_cancelled(call->in.runtime->cancel_context))
            return attn_fail(call->err, ATTN_ERR_CANCELLED, NULL, "the computation was ended");
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    return http_stage_echo(call);
}

void http_stage_release(void)
{
    is_released = true;
}

size_t http_stage_begun(void)
{
    return begun;
}

void http_stage_note_begun(void)
{
    begun++;
}
