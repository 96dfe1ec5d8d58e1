/*
 * job.c: computes the answer to a request whose body has arrived.
 *
 * job_submit and job_compute_at_once run in an I/O thread, compute_job in a compute thread. compute_within, which both
 * ways share, runs in either.
 */
#include "http/job.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/crash.h"
#include "codec/oip/oip.h"
#include "http/reply.h"
#include "http/sender.h"
#include "http/write_ahead.h"
#include "service/limits.h"
#include "service/registry/layer/keeper.h"

static bool is_late(const struct request *request)
{
    return clock_now_ms() - request->clock.received > request->deadline_ms;
}

static bool is_cancelled(const struct request *request)
{
    return is_late(request) || atomic_load_explicit(&request->server->is_cancelled, memory_order_relaxed) ||
           atomic_load_explicit(&request->connection->is_abandoned, memory_order_relaxed);
}

/* A job during its computation. The body may set a deadline that is shorter than that of the request. */
struct job {
    struct request *request;
    const struct call *call; /* NULL while the body is read */
};

static void shorten_deadline(const struct job *job)
{
    if (job->call->timeout_ms > 0 && job->call->timeout_ms < job->request->deadline_ms)
        job->request->deadline_ms = job->call->timeout_ms;
}

static bool job_is_cancelled(void *cancel_context)
{
    const struct job *job = cancel_context;
    const double timeout_ms = job->call != NULL ? job->call->timeout_ms : 0;
    return is_cancelled(job->request) || (timeout_ms > 0 && clock_now_ms() - job->request->clock.received > timeout_ms);
}

/* Joins the pieces of a chunked body. NULL without memory, and when the request is cancelled. */
static const char *whole_body(struct request *request)
{
    if (request->body != NULL)
        return request->body;
    char *body = attn_arena_take(request->arena, 1, request->pieces.total_bytes);
    size_t used = 0;
    for (const struct chunk *piece = request->pieces.first; body != NULL && piece != NULL; piece = piece->next) {
        if (attn_arena_is_cancelled(request->arena))
            return NULL;
        memcpy(body + used, piece->data, piece->length);
        used += piece->length;
    }
    return body;
}

/* The body in the form that the service reads: in one run and expanded. */
static attn_status read_body(struct request *request, struct text_span *body, attn_error *err)
{
    *body = (struct text_span){whole_body(request), request->body_bytes};
    if (body->at == NULL)
        return attn_fail(err, ATTN_ERR_NO_MEMORY, NULL, "no memory for the body of this request");
    if (request->body_coding == CODING_IDENTITY)
        return ATTN_OK;
    return coding_expand(request->body_coding, *body, request->server->setup.max_body_bytes, request->arena, body, err);
}

static void refuse_late(struct request *request)
{
    attn_arena_release(request->arena, request->before_body);
    reply_refuse(request, PROBLEM_DEADLINE,
                 "the answer was not there after %g s, and the work was stopped (--deadline, Request-Timeout)",
                 request->deadline_ms / 1e3);
}

/* Compresses and lays out the answer of the service, or begins to stream it. This runs in the thread that computed. */
static bool finish_answer(struct request *request, const struct call *call)
{
    const double since = clock_now_ms();
    bool is_ok;
    if (call->answer_json_bytes > 0)
        request->answer_media = MEDIA_BINARY;
    request->reply.content_type = media_name(request->answer_media);
    request->reply.json_bytes = call->answer_json_bytes;
    reply_conclude(request, call);
    if (request->reply.content_type == NULL)
        return true;
    if (request->reply.chunks.has_deferred)
        is_ok = sender_begin(request, call->in.runtime);
    else
        is_ok = reply_compress(request) && reply_lay_out(request);
    request->reply.is_file = call->sends_file && request->reply.coding == CODING_IDENTITY;
    request->clock.times.write_ms += clock_now_ms() - since;
    return is_ok;
}

static attn_status run_service(struct request *request, struct call *call)
{
    service_function *instead = request->server->setup.instead;
    const attn_status status = (instead != NULL ? instead : request->route->service)(call);
    request->clock.times = call->times;
    request->flops = call->flops;
    request->owed = call->owed;
    request->held = call->version;
    request->is_open = request->is_open && !call->is_guarded;
    return status;
}

/* Whether the deadline stopped the work. Work that stops during writing reports a lack of memory instead. */
static bool is_stopped_late(const struct request *request, attn_status status)
{
    return (status == ATTN_OK || status == ATTN_ERR_CANCELLED || status == ATTN_ERR_NO_MEMORY) && is_late(request);
}

/*
 * Charges the key for the answer to a GET before it is sent, so that the next GET is refused if the quota is used up.
 * Its size is known only now.
 */
static attn_status owe_answer(struct request *request, struct call *call)
{
    const struct reply *reply = &request->reply;
    if (strcmp(request->method, MHD_HTTP_METHOD_GET) != 0 || reply->content_type == NULL)
        return ATTN_OK;
    assert(reply->sender == NULL); /* no answer to a GET is written while it is sent */
    const attn_status status = limits_spend(call, &(struct keys_cost){(double)reply->chunks.total_bytes, 0});
    request->owed = call->owed;
    return status;
}

/* Releases everything that a first try took, because it needed more than its limits. The request is then as before. */
static bool leave_first_try(struct request *request)
{
    layer_version_release(request->held);
    request->held = NULL;
    return false;
}

/* Refuses because the service failed, or because its answer could not be finished. */
static void refuse_call(struct request *request, const struct call *call, attn_status status)
{
    if (is_stopped_late(request, status)) {
        refuse_late(request);
    } else if (call->refusal == CALL_FOREIGN) {
        attn_arena_release(request->arena, request->before_body);
        reply_refuse_page(request);
    } else if (status != ATTN_OK) {
        attn_arena_release(request->arena, request->before_body);
        reply_failure(request, call->err, call->refusal);
        if (call->refusal == CALL_QUOTA)
            reply_retry_after(request, call->retry_after_s);
    } else {
        reply_no_memory(request, "no memory for the answer");
    }
}

/* Fills in the input of the service. */
static struct call_input input_of(struct request *request, const struct call_limits *limits, bool is_first_try,
                                  struct text_span body, const attn_runtime *runtime)
{
    const struct http_setup *setup = &request->server->setup;
    return (struct call_input){
        .body = body.at,
        .body_bytes = body.length,
        .received_bytes = request->body_bytes,
        .body_media = request->body_media,
        .answer_media = request->answer_media,
        .has_json_bytes = request->has_json_bytes,
        .json_bytes = request->json_bytes,
        .names = request->names,
        .parameters = request->parameters,
        .parameter_count = request->parameter_count,
        .if_match = request->fields.if_match,
        .if_none_match = request->fields.if_none_match,
        .key = request->key_name,
        .keys = request->key_name[0] != '\0' ? setup->keys : NULL,
        .is_foreign = request->is_foreign,
        .queue_ms = request->clock.queue_ms,
        .limits = *limits,
        .is_first_try = is_first_try,
        .layers = setup->layers,
        .models = setup->models,
        .draft = request->ahead != NULL ? write_ahead_draft(request->ahead) : NULL,
        .caches = setup->caches,
        .runtime = runtime,
        .fonts = setup->fonts,
    };
}

/* Runs the service and finishes its answer. True: the answer is ready. False: *status says why there is none. */
static bool answer(struct request *request, struct job *job, struct call *call, attn_status *status)
{
    bool is_finished = false;
    if (*status == ATTN_OK)
        *status = run_service(request, call);
    shorten_deadline(job);
    if (call->is_kept)
        attn_arena_watch(request->arena, NULL, NULL);
    if (*status == ATTN_OK && (call->is_kept || !is_late(request)))
        is_finished = finish_answer(request, call);
    attn_arena_watch(request->arena, NULL, NULL);
    if (is_finished)
        *status = call->sends_file ? layer_keeper_confirm(call, ATTN_OK) : ATTN_OK; /* a compressor has read the file */
    if (is_finished && *status == ATTN_OK)
        *status = owe_answer(request, call);
    return is_finished && *status == ATTN_OK;
}

/* As compute_within. */
static bool try_within(struct request *request, const struct call_limits *limits, bool is_first_try,
                       attn_runtime runtime)
{
    struct job job = {.request = request};
    attn_error error = {.status = ATTN_OK};
    struct text_span body;
    runtime.is_cancelled = job_is_cancelled;
    runtime.cancel_context = &job;
    attn_arena_watch(request->arena, job_is_cancelled, &job);
    attn_status status = read_body(request, &body, &error);
    struct call call = {
        .in = input_of(request, limits, is_first_try, body, &runtime),
        .out = reply_begin(request, MHD_HTTP_OK, request->answer_media),
        .err = &error,
        .owed = request->owed,
    };
    call.out->may_defer = request->may_stream;
    job.call = &call;
    if (answer(request, &job, &call, &status))
        return true;
    const bool is_over =
        status == ATTN_ERR_TOO_LARGE || (status == ATTN_OK && !call.is_kept && attn_arena_hit_limit(request->arena));
    if (is_over && is_first_try)
        return leave_first_try(request);
    refuse_call(request, &call, status);
    return true;
}

/*
 * Computes within limits. False: this was a first try, the request needs more than its limits, and it has no reply yet.
 */
static bool compute_within(struct request *request, const struct call_limits *limits, bool is_first_try,
                           attn_runtime runtime)
{
    crash_request_begins(request->id, request->target);
    const bool is_decided = try_within(request, limits, is_first_try, runtime);
    crash_request_ends();
    return is_decided;
}

static void compute(struct request *request)
{
    const struct http_setup *setup = &request->server->setup;
    (void)compute_within(request, &setup->limits, false, executor_runtime(setup->executor));
}

static void count_cancelled(const struct request *request)
{
    struct metrics *metrics = request->server->setup.metrics;
    if (atomic_load(&request->connection->is_abandoned))
        metrics_add(&metrics->cancelled[METRICS_CLIENT_GONE], 1);
    else if (request->reply.status == MHD_HTTP_GATEWAY_TIMEOUT)
        metrics_add(&metrics->cancelled[METRICS_DEADLINE], 1);
    else if (request->reply.status != MHD_HTTP_OK && atomic_load(&request->server->is_cancelled))
        metrics_add(&metrics->cancelled[METRICS_SHUTDOWN], 1);
}

/*
 * What an I/O thread may spend on one request: this much memory, whatever the body says, and as many operations as take
 * a millisecond.
 */
enum { AT_ONCE_ARENA_BYTES = 1 << 20, AT_ONCE_RESULT_BYTES = 16 << 10, AT_ONCE_MEMORY_BYTES = 512 << 10 };
static const double AT_ONCE_FLOPS = 1e6;

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* An I/O thread never expands a body or draws a picture. */
static bool may_be_at_once(const struct request *request)
{
    const bool is_picture = request->answer_media == MEDIA_PNG || request->answer_media == MEDIA_SVG;
    return request->route->keeps_to_limits && request->server->setup.instead == NULL && !is_picture &&
           request->body_bytes <= REQUEST_AT_ONCE_MAX && request->body_coding == CODING_IDENTITY;
}

static bool try_at_once(struct request *request)
{
    const struct http_setup *setup = &request->server->setup;
    const struct call_limits *full = &setup->limits;
    const struct call_limits limits = {
        .result_bytes = smaller(full->result_bytes, AT_ONCE_RESULT_BYTES),
        .memory_bytes = smaller(full->memory_bytes, AT_ONCE_MEMORY_BYTES),
        .flops = full->flops < AT_ONCE_FLOPS ? full->flops : AT_ONCE_FLOPS,
    };
    const size_t limit_bytes = attn_arena_limit_bytes(request->arena);
    attn_arena_set_limit(request->arena, smaller(limit_bytes, AT_ONCE_ARENA_BYTES));
    const bool is_computed =
        compute_within(request, &limits, true, attn_runtime_serial(executor_runtime(setup->executor).kernel));
    attn_arena_set_limit(request->arena, limit_bytes);
    return is_computed;
}

bool job_compute_at_once(struct request *request)
{
    if (!may_be_at_once(request))
        return false;
    const attn_arena_mark after_body = attn_arena_mark_here(request->arena);
    request->clock.is_computed = try_at_once(request);
    if (request->clock.is_computed)
        count_cancelled(request);
    else
        attn_arena_release(request->arena, after_body);
    return request->clock.is_computed;
}

static void refuse_draining(struct request *request)
{
    reply_refuse(request, PROBLEM_DRAINING, "the server is about to end; ask again elsewhere or later");
}

/* After the connection is resumed, an I/O thread sends the reply and may free the request at once. */
static void compute_job(void *argument)
{
    struct request *request = argument;
    struct http_server *server = request->server;
    request->clock.queue_ms = clock_now_ms() - request->clock.received;
    request->clock.is_computed = true;
    if (is_late(request))
        refuse_late(request);
    else if (is_cancelled(request))
        refuse_draining(request);
    else
        compute(request);
    count_cancelled(request);
    request->connection->phase = PHASE_REPLY;
    MHD_resume_connection(request->connection->mhd);
    server_job_out(server);
}

static bool count_job_in(struct request *request)
{
    struct http_server *server = request->server;
    pthread_mutex_lock(&server->lock);
    const bool is_open = server_job_in(server);
    if (is_open)
        connection_computes(request->connection, request->clock.received);
    pthread_mutex_unlock(&server->lock);
    return is_open;
}

/*
 * Finds the priority that the body asks for. The queue needs it before the body is parsed, so the bytes are searched.
 */
static executor_priority priority_of(const struct request *request)
{
    if (!request->route->has_hints || request->body == NULL || request->body_coding != CODING_IDENTITY)
        return request->priority;
    switch (oip_priority_hint(request->body, request->body_bytes)) {
    case OIP_PRIORITY_HIGH:
        return EXECUTOR_HIGH;
    case OIP_PRIORITY_LOW:
        return EXECUTOR_LOW;
    case OIP_PRIORITY_USUAL:
        break;
    }
    return request->priority;
}

static void refuse_busy(struct request *request)
{
    attn_arena_release(request->arena, request->before_body);
    reply_busy(request);
}

/*
 * The connection is suspended before the job is submitted, because the job may be done, and resume it, before submit
 * returns. Suspending and resuming are half of the system calls of a refusal, so the queue is checked first. Another
 * request may still take the last place after that check.
 */
bool job_submit(struct request *request)
{
    struct http_server *server = request->server;
    struct MHD_Connection *mhd = request->connection->mhd;
    const executor_priority priority = priority_of(request);
    if (!count_job_in(request)) {
        refuse_draining(request);
        return false;
    }
    if (request->ahead == NULL && executor_is_full(server->setup.executor, priority)) {
        server_job_out(server);
        refuse_busy(request);
        return false;
    }
    MHD_suspend_connection(mhd);
    if (request->ahead != NULL && write_ahead_defers(request->ahead, compute_job))
        return true;
    if (executor_submit(server->setup.executor, priority, compute_job, request))
        return true;
    refuse_busy(request);
    request->connection->phase = PHASE_REPLY;
    MHD_resume_connection(mhd);
    server_job_out(server);
    return true;
}
