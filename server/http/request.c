/*
 * request.c: one request from its first line to its last byte sent.
 *
 * Everything here runs in an I/O thread except compute_job and what it calls, which run in a compute thread; of that,
 * only compute_at_once is for I/O threads too.
 */
#include "http/request.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "codec/oip.h"
#include "http/admission.h"
#include "http/sender.h"
#include "http/watch.h"
#include "http/write_ahead.h"
#include "service/layer_store.h"

/* A chunked body that turns out to be too large can only be answered at its end, so more patience is had with it. */
enum { DISCARD_CHUNKED_MAX = 8 << 20 };

double request_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

/* ---- begin and end ---------------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

uint64_t request_random(struct http_server *server)
{
    const uint64_t number = atomic_fetch_add_explicit(&server->ids_made, 1, memory_order_relaxed);
    return mix(server->id_seed + number * UINT64_C(0x9e3779b97f4a7c15));
}

static void make_id(struct request *request)
{
    uint64_t random = request_random(request->server);
    enum { DIGITS = 16 };
    static_assert(sizeof request->id > DIGITS, "an id has room for 64 bits");
    for (size_t i = DIGITS; i-- > 0; random >>= 4)
        request->id[i] = "0123456789abcdef"[random & 15];
    request->id[DIGITS] = '\0';
}

void *request_begin(void *cls, const char *target, struct MHD_Connection *connection)
{
    struct http_server *server = cls;
    attn_arena *arena = attn_arena_create_within(server->setup.budget, server->setup.limits.memory_bytes);
    if (arena == NULL)
        return NULL;
    struct request *request = attn_arena_take_zeroed(arena, 1, sizeof *request);
    char *copy = request != NULL ? attn_arena_copy_text(arena, target, strlen(target)) : NULL;
    if (copy == NULL) {
        attn_arena_destroy(arena);
        return NULL;
    }
    request->server = server;
    request->connection = connection;
    request->arena = arena;
    request->before_body = attn_arena_mark_here(arena);
    request->target = copy;
    request->clock.begun = request_now_ms();
    request->fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    request->priority = EXECUTOR_NORMAL;
    request->deadline_ms = 1e3 * server->setup.deadline_s;
    make_id(request);
    watch_add(request);
    return request;
}

/* Counted from the whole header on: a connection that is silent in the middle of one must not hold up the end. */
static void count_in(struct request *request)
{
    struct http_server *server = request->server;
    pthread_mutex_lock(&server->lock);
    server->requests++;
    watch_heard(request);
    pthread_mutex_unlock(&server->lock);
    request->is_counted = true;
}

static void count_out(struct http_server *server, size_t *counter)
{
    pthread_mutex_lock(&server->lock);
    if (--*counter == 0)
        pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
}

static const char *end_name(enum MHD_RequestTerminationCode termination)
{
    switch (termination) {
    case MHD_REQUEST_TERMINATED_COMPLETED_OK:
        return "sent";
    case MHD_REQUEST_TERMINATED_TIMEOUT_REACHED:
        return "timeout";
    case MHD_REQUEST_TERMINATED_DAEMON_SHUTDOWN:
        return "shutdown";
    case MHD_REQUEST_TERMINATED_WITH_ERROR:
    case MHD_REQUEST_TERMINATED_READ_ERROR:
    case MHD_REQUEST_TERMINATED_CLIENT_ABORT:
        break;
    }
    return "aborted";
}

static void log_clock(struct log_line *line, const struct request *request)
{
    const struct request_clock *clock = &request->clock;
    const double later_ms = request->reply.sender != NULL ? sender_write_ms(request->reply.sender) : 0;
    if (clock->is_computed) {
        log_ms(line, "receive_ms", clock->received - clock->begun);
        log_ms(line, "queue_ms", clock->queue_ms);
        log_ms(line, "parse_ms", clock->times.parse_ms);
        log_ms(line, "compute_ms", clock->times.compute_ms);
        log_ms(line, "write_ms", clock->times.write_ms + later_ms);
    }
    log_ms(line, "total_ms", request_now_ms() - clock->begun);
}

static void log_trace(struct log_line *line, const struct trace *trace)
{
    if (trace->id[0] == '\0')
        return;
    log_text(line, "trace_id", trace->id);
    log_text(line, "span_id", trace->span);
    log_text(line, "parent_id", trace->parent);
}

/* Status 0 stands for a request that ended before it was answered. */
static void log_request(const struct request *request, enum MHD_RequestTerminationCode termination)
{
    struct log_line line;
    log_begin(&line, request->server->setup.log, LOG_INFO, "request");
    log_text(&line, "id", request->id);
    log_trace(&line, &request->trace);
    if (request->key_name[0] != '\0')
        log_text(&line, "key", request->key_name);
    log_text(&line, "method", request->method);
    log_text(&line, "path", request->target);
    log_count(&line, "status", request->reply.status);
    log_text(&line, "end", end_name(termination));
    log_count(&line, "bytes_in", request->body_bytes);
    log_count(&line, "bytes_out", request->reply.sent_bytes);
    log_clock(&line, request);
    log_end(&line);
}

static void observe(const struct request *request, struct metrics_histogram *stages)
{
    const struct request_clock *clock = &request->clock;
    const double later_ms = request->reply.sender != NULL ? sender_write_ms(request->reply.sender) : 0;
    if (clock->is_computed) {
        metrics_observe(&stages[METRICS_RECEIVE], clock->received - clock->begun);
        metrics_observe(&stages[METRICS_QUEUE], clock->queue_ms);
        metrics_observe(&stages[METRICS_PARSE], clock->times.parse_ms);
        metrics_observe(&stages[METRICS_COMPUTE], clock->times.compute_ms);
        metrics_observe(&stages[METRICS_WRITE], clock->times.write_ms + later_ms);
    }
    metrics_observe(&stages[METRICS_TOTAL], request_now_ms() - clock->begun);
}

/* A client that left before it was answered is counted as such, under the status that proxies have for it. */
static void count_request(const struct request *request)
{
    enum { LEFT = 499 };
    struct metrics *metrics = request->server->setup.metrics;
    const unsigned status = request->reply.status != 0 ? request->reply.status : LEFT;
    metrics_add(&metrics->received_bytes, request->body_bytes);
    metrics_add(&metrics->sent_bytes, request->reply.sent_bytes);
    if (!request->is_counted)
        return;
    metrics_count_request(metrics, route_number(request->route), status);
    observe(request, metrics->stages);
    if (request->route == NULL || !request->route->has_hints)
        return;
    metrics_add(status == MHD_HTTP_OK ? &metrics->inferences_done : &metrics->inferences_failed, 1);
    observe(request, metrics->inference);
}

/* What it took is known now, and owed by whoever asked. */
static void charge(const struct request *request)
{
    if (request->key_name[0] != '\0')
        keys_charge(request->server->setup.keys, request->key_name, request->body_bytes + request->reply.sent_bytes,
                    request->flops);
}

void request_end(void *cls, struct MHD_Connection *connection, void **con_cls,
                 enum MHD_RequestTerminationCode termination)
{
    struct request *request = *con_cls;
    (void)cls;
    (void)connection;
    if (request == NULL)
        return;
    *con_cls = NULL;
    watch_remove(request);
    log_request(request, termination);
    count_request(request);
    charge(request);
    const bool is_sending = request->reply.sender != NULL && sender_leave(request->reply.sender);
    const bool is_writing = request->ahead != NULL && write_ahead_leave(request->ahead);
    if (!is_sending && !is_writing)
        request_free(request);
}

void request_free(struct request *request)
{
    struct http_server *server = request->server;
    if (request->reply.sender != NULL)
        sender_end(request->reply.sender);
    if (request->ahead != NULL)
        write_ahead_end(request->ahead);
    layer_version_release(request->held);
    const bool is_counted = request->is_counted;
    attn_arena_destroy(request->arena); /* and with it the request */
    if (is_counted)
        count_out(server, &server->requests);
}

/* ---- the body ---------------------------------------------------------------------------------------------------- */

static void fail(struct request *request, attn_status status, const char *message)
{
    attn_error error = {.status = status};
    (void)attn_fail(&error, status, NULL, "%s", message);
    attn_arena_release(request->arena, request->before_body);
    reply_failure(request, &error, CALL_FAILED);
}

static bool prepare_body(struct request *request)
{
    request->pieces = chunks_begin(request->arena);
    if (guard_is_chunked(&request->fields))
        return true;
    /* Bytes behind JSON begin at a multiple that suits every type, so that tensors are computed on where they lie. */
    const size_t lead = (ATTN_ALIGNMENT - request->json_bytes % ATTN_ALIGNMENT) % ATTN_ALIGNMENT;
    request->body = attn_arena_take(request->arena, 1, lead + request->fields.content_length);
    if (request->body != NULL) {
        request->body += lead;
        return true;
    }
    fail(request, ATTN_ERR_NO_MEMORY, "no memory for the body of this request");
    return false;
}

/* An answer that the library is given before it has read the body costs the connection, even when the body is empty. */
static bool is_worth_reading(const struct request *request)
{
    const struct guard_fields *fields = &request->fields;
    if (request->closes || request->reply.status == MHD_HTTP_CONTENT_TOO_LARGE)
        return false;
    return !guard_has_body(fields) || (fields->content_length <= REQUEST_DISCARD_MAX && fields->expect == NULL);
}

static enum MHD_Result answer_header(struct request *request)
{
    if (is_worth_reading(request)) {
        request->phase = REQUEST_DISCARD;
        return MHD_YES;
    }
    request->closes = true;
    request->phase = REQUEST_REPLY;
    return reply_queue(request);
}

static enum MHD_Result take_header(struct request *request, const char *method, const char *version)
{
    snprintf(request->method, sizeof request->method, "%s", method);
    request->may_stream = strcmp(version, "HTTP/1.1") == 0;
    count_in(request);
    if (!admission_admits(request, method, version))
        return answer_header(request);
    if (request->route->answer != NULL) {
        request->route->answer(request);
        return answer_header(request);
    }
    request->ahead = write_ahead_begin(request);
    request->before_body = attn_arena_mark_here(request->arena);
    if (!prepare_body(request))
        return answer_header(request);
    request->phase = REQUEST_BODY;
    return MHD_YES;
}

static void append_piece(struct request *request, const char *data, size_t length)
{
    if (request->body != NULL)
        memcpy(request->body + request->body_bytes - length, data, length);
    else
        chunks_bytes(&request->pieces, data, length);
    if (request->ahead != NULL)
        write_ahead_more(request->ahead);
    if (!request->pieces.is_ok) {
        fail(request, ATTN_ERR_NO_MEMORY, "no memory for the body of this request");
        request->phase = REQUEST_DISCARD;
    }
}

static void refuse_length(struct request *request)
{
    attn_arena_release(request->arena, request->before_body);
    reply_refuse(request, PROBLEM_BODY, "the body has more than %llu bytes, which is the limit (--max-body)",
                 (unsigned long long)request->server->setup.max_body_bytes);
    request->phase = REQUEST_DISCARD;
}

static enum MHD_Result give_up(struct request *request, const char *why)
{
    struct log_line line;
    log_begin(&line, request->server->setup.log, LOG_WARN, why);
    log_text(&line, "id", request->id);
    log_count(&line, "bytes_in", request->body_bytes);
    log_end(&line);
    return MHD_NO;
}

static enum MHD_Result take_body(struct request *request, const char *data, size_t *length)
{
    const struct http_setup *setup = &request->server->setup;
    const size_t taken = *length;
    *length = 0;
    request->body_bytes += taken;
    if (request->phase == REQUEST_BODY && request->body_bytes > setup->max_body_bytes)
        refuse_length(request);
    else if (request->phase == REQUEST_BODY)
        append_piece(request, data, taken);
    else if (request->body_bytes > setup->max_body_bytes + DISCARD_CHUNKED_MAX)
        return give_up(request, "body is far over the limit, connection closed");
    return MHD_YES;
}

/* ---- the job ----------------------------------------------------------------------------------------------------- */

static bool is_late(const struct request *request)
{
    return request_now_ms() - request->clock.received > request->deadline_ms;
}

static bool is_cancelled(const struct request *request)
{
    return is_late(request) || atomic_load_explicit(&request->server->is_cancelled, memory_order_relaxed) ||
           atomic_load_explicit(&request->is_abandoned, memory_order_relaxed);
}

/* A job while it computes: the service may learn from the body that it has less time. */
struct job {
    struct request *request;
    const struct call *call;
};

static void shorten_deadline(const struct job *job)
{
    if (job->call->timeout_ms > 0 && job->call->timeout_ms < job->request->deadline_ms)
        job->request->deadline_ms = job->call->timeout_ms;
}

static bool job_is_cancelled(void *cancel_context)
{
    const struct job *job = cancel_context;
    return is_cancelled(job->request) ||
           (job->call->timeout_ms > 0 && request_now_ms() - job->request->clock.received > job->call->timeout_ms);
}

/* The pieces of a chunked body in one run; NULL without memory. */
static const char *whole_body(struct request *request)
{
    if (request->body != NULL)
        return request->body;
    char *body = attn_arena_take(request->arena, 1, request->pieces.total_bytes);
    size_t used = 0;
    for (const struct chunk *piece = request->pieces.first; body != NULL && piece != NULL; piece = piece->next) {
        memcpy(body + used, piece->data, piece->length);
        used += piece->length;
    }
    return body;
}

/* The body as the service reads it: in one run, and expanded. */
static attn_status read_body(struct request *request, struct call *call)
{
    call->body = whole_body(request);
    if (call->body == NULL)
        return attn_fail(call->err, ATTN_ERR_NO_MEMORY, NULL, "no memory for the body of this request");
    if (request->body_coding == CODING_IDENTITY)
        return ATTN_OK;
    return coding_expand(request->body_coding, call->body, call->body_bytes, request->server->setup.max_body_bytes,
                         request->arena, &call->body, &call->body_bytes, call->err);
}

static void refuse_late(struct request *request)
{
    attn_arena_release(request->arena, request->before_body);
    reply_refuse(request, PROBLEM_DEADLINE,
                 "the answer was not there after %g s, and the work was stopped (--deadline, Request-Timeout)",
                 request->deadline_ms / 1e3);
}

/* After the service: compressed and laid out, or the first batch of what is streamed, still by this thread. */
static bool finish_answer(struct request *request, const struct call *call)
{
    const double since = request_now_ms();
    bool is_ok;
    request->answer_media = call->answer_media;
    request->reply.content_type = media_name(call->answer_media);
    request->reply.json_bytes = call->answer_json_bytes;
    reply_conclude(request, call);
    if (request->reply.content_type == NULL)
        return true;
    if (request->reply.chunks.has_deferred)
        is_ok = reply_stream(request, call->runtime);
    else
        is_ok = reply_compress(request) && reply_lay_out(request);
    request->clock.times.write_ms += request_now_ms() - since;
    return is_ok;
}

/* Within these limits and no others. False: it would take more than them, or they are at fault; there is no reply. */
static bool compute_within(struct request *request, const struct call_limits *limits, attn_runtime runtime)
{
    const struct http_setup *setup = &request->server->setup;
    const bool is_last_try = limits == &setup->limits;
    runtime.is_cancelled = job_is_cancelled;
    struct job job = {.request = request};
    runtime.cancel_context = &job;
    attn_error error = {.status = ATTN_OK};
    struct call call = {
        .body_bytes = request->body_bytes,
        .body_media = request->body_media,
        .answer_media = request->answer_media,
        .has_json_bytes = request->has_json_bytes,
        .json_bytes = request->json_bytes,
        .names = request->names,
        .parameters = request->parameters,
        .parameter_count = request->parameter_count,
        .if_match = request->fields.if_match,
        .if_none_match = request->fields.if_none_match,
        .layers = setup->layers,
        .draft = request->ahead != NULL ? write_ahead_draft(request->ahead) : NULL,
        .caches = setup->caches,
        .queue_ms = request->clock.queue_ms,
        .limits = *limits,
        .is_first_try = !is_last_try,
        .runtime = &runtime,
        .fonts = setup->fonts,
        .out = reply_begin(request, MHD_HTTP_OK, request->answer_media),
        .err = &error,
    };
    call.out->may_defer = request->may_stream;
    job.call = &call;
    attn_status status = read_body(request, &call);
    if (status == ATTN_OK)
        status = (setup->instead != NULL ? setup->instead : request->route->service)(&call);
    request->clock.times = call.times;
    request->flops = call.flops;
    shorten_deadline(&job);
    request->held = call.held;
    if ((status == ATTN_OK || status == ATTN_ERR_CANCELLED) && is_late(request)) {
        refuse_late(request);
    } else if (status == ATTN_ERR_TOO_LARGE && !is_last_try) {
        layer_version_release(request->held);
        request->held = NULL;
        return false;
    } else if (status != ATTN_OK) {
        attn_arena_release(request->arena, request->before_body);
        reply_failure(request, &error, call.refusal);
    } else if (!finish_answer(request, &call)) {
        fail(request, ATTN_ERR_NO_MEMORY, "no memory for the answer");
    }
    return true;
}

static void compute(struct request *request)
{
    const struct http_setup *setup = &request->server->setup;
    (void)compute_within(request, &setup->limits, executor_runtime(setup->executor));
}

static void count_cancelled(const struct request *request)
{
    struct metrics *metrics = request->server->setup.metrics;
    if (atomic_load(&request->is_abandoned))
        metrics_add(&metrics->cancelled[METRICS_CLIENT_GONE], 1);
    else if (request->reply.status == MHD_HTTP_GATEWAY_TIMEOUT)
        metrics_add(&metrics->cancelled[METRICS_DEADLINE], 1);
    else if (request->reply.status != MHD_HTTP_OK && atomic_load(&request->server->is_cancelled))
        metrics_add(&metrics->cancelled[METRICS_SHUTDOWN], 1);
}

/*
 * A small request takes some ten microseconds, and waking a compute thread, which then wakes this one, several times as
 * long. So what is bounded to be small, by its body before it is read and by its plan before it is computed, is done
 * here and now. A body that turns out to mean more is read for nothing and handed over.
 */
static bool compute_at_once(struct request *request)
{
    enum { RESULT_MAX = 16 << 10, MEMORY_MAX = 4 << 20 };
    static const double FLOPS_MAX = 1e6;
    const struct http_setup *setup = &request->server->setup;
    const struct call_limits *full = &setup->limits;
    const struct call_limits limits = {
        .result_bytes = full->result_bytes < RESULT_MAX ? full->result_bytes : RESULT_MAX,
        .memory_bytes = full->memory_bytes < MEMORY_MAX ? full->memory_bytes : MEMORY_MAX,
        .flops = full->flops < FLOPS_MAX ? full->flops : FLOPS_MAX,
    };
    const bool is_picture = request->answer_media == MEDIA_PNG || request->answer_media == MEDIA_SVG;
    if (!request->route->keeps_to_limits || setup->instead != NULL || is_picture ||
        request->body_bytes > REQUEST_AT_ONCE_MAX || request->body_coding != CODING_IDENTITY)
        return false;
    const attn_arena_mark after_body = attn_arena_mark_here(request->arena);
    request->clock.is_computed =
        compute_within(request, &limits, attn_runtime_serial(executor_runtime(setup->executor).kernel));
    if (request->clock.is_computed)
        count_cancelled(request);
    else
        attn_arena_release(request->arena, after_body);
    return request->clock.is_computed;
}

/* After the resume the request may be gone already: an I/O thread sends and ends it. */
static void compute_job(void *argument)
{
    struct request *request = argument;
    struct http_server *server = request->server;
    request->clock.queue_ms = request_now_ms() - request->clock.received;
    request->clock.is_computed = true;
    if (is_late(request))
        refuse_late(request);
    else if (is_cancelled(request))
        reply_refuse(request, PROBLEM_DRAINING, "the server is about to end; ask again elsewhere or later");
    else
        compute(request);
    count_cancelled(request);
    request->phase = REQUEST_REPLY;
    MHD_resume_connection(request->connection);
    count_out(server, &server->jobs);
}

bool request_count_job_in(struct http_server *server)
{
    if (!server->is_closed)
        server->jobs++;
    return !server->is_closed;
}

void request_count_job_out(struct http_server *server)
{
    count_out(server, &server->jobs);
}

static bool count_job_in(struct http_server *server)
{
    pthread_mutex_lock(&server->lock);
    const bool is_open = request_count_job_in(server);
    pthread_mutex_unlock(&server->lock);
    return is_open;
}

/* How urgent a request is may stand in its body, where it is too late for the queue: so it is glanced at. */
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
    request->phase = REQUEST_REPLY;
}

/*
 * Suspended first, submitted then: the job may be done, and resume, before submit returns. To suspend and to resume
 * takes half of the system calls of a refusal, so a full queue is looked for before; somebody else may still take the
 * last place in between.
 */
static enum MHD_Result submit(struct request *request)
{
    struct http_server *server = request->server;
    const executor_priority priority = priority_of(request);
    if (!count_job_in(server)) {
        reply_refuse(request, PROBLEM_DRAINING, "the server is about to end; ask again elsewhere or later");
        request->phase = REQUEST_REPLY;
        return reply_queue(request);
    }
    if (request->ahead == NULL && executor_is_full(server->setup.executor, priority)) {
        count_out(server, &server->jobs);
        refuse_busy(request);
        return reply_queue(request);
    }
    request->phase = REQUEST_COMPUTING;
    MHD_suspend_connection(request->connection);
    if (request->ahead != NULL && write_ahead_defers(request->ahead, compute_job))
        return MHD_YES;
    if (executor_submit(server->setup.executor, priority, compute_job, request))
        return MHD_YES;
    refuse_busy(request);
    MHD_resume_connection(request->connection);
    count_out(server, &server->jobs);
    return MHD_YES;
}

enum MHD_Result request_handle(void *cls, struct MHD_Connection *connection, const char *url, const char *method,
                               const char *version, const char *upload_data, size_t *upload_data_size, void **con_cls)
{
    struct request *request = *con_cls;
    struct http_server *server = cls;
    (void)url; /* decoded: see target.h for what is routed on */
    if (request == NULL)
        return reply_without_memory(connection, server->setup.metrics);
    const enum request_phase phase = request->phase;
    switch (phase) {
    case REQUEST_HEADERS:
        return take_header(request, method, version);
    case REQUEST_BODY:
    case REQUEST_DISCARD:
        if (*upload_data_size > 0)
            return take_body(request, upload_data, upload_data_size);
        request->clock.received = request_now_ms();
        if (phase == REQUEST_BODY && !compute_at_once(request))
            return submit(request);
        request->phase = REQUEST_REPLY;
        return reply_queue(request);
    case REQUEST_COMPUTING:
        return MHD_YES;
    case REQUEST_REPLY:
        return reply_queue(request);
    }
    return MHD_NO;
}
