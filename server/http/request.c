/*
 * request.c: one request from its first line to its last byte sent.
 *
 * Everything here runs in an I/O thread; request_fail, and request_free when request_end left it to a job, in a compute
 * thread too.
 */
#include "http/request.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "http/admission.h"
#include "http/job.h"
#include "http/sender.h"
#include "http/watch.h"
#include "http/write_ahead.h"
#include "service/layers/store.h"

/* A chunked body that turns out to be too large can only be answered at its end, so more patience is had with it. */
enum { DISCARD_CHUNKED_MAX = 8 << 20 };

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
        request->id[i] = text_hex_digit(random & 15);
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
    request->clock.begun = clock_now_ms();
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
    log_ms(line, "total_ms", clock->ended - clock->begun);
}

static void log_trace(struct log_line *line, const struct trace *trace)
{
    if (trace->id[0] == '\0')
        return;
    log_text(line, "trace_id", trace->id);
    log_text(line, "span_id", trace->span);
    log_text(line, "parent_id", trace->parent);
}

/* Without its query, in which a key may stand by mistake. */
static void log_path(struct log_line *line, const char *target)
{
    char path[LOG_LINE_MAX];
    const size_t length = strcspn(target, "?");
    text_copy(path, length < sizeof path ? length + 1 : sizeof path, target);
    log_text(line, "path", path);
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
    log_path(&line, request->target);
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
    metrics_observe(&stages[METRICS_TOTAL], clock->ended - clock->begun);
}

/* The number of the route's row; one more than the last when no route was found. */
static size_t row_of(const struct request *request)
{
    const struct http_server *server = request->server;
    return request->route != NULL ? (size_t)(request->route - server->routes) : server->route_count;
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
    metrics_count_request(metrics, row_of(request), status);
    observe(request, metrics->stages);
}

/* What it took is known now: that is owed, in place of what it might have taken. */
static void settle(struct request *request, const struct keys_cost *cost)
{
    const struct keys_cost more = {cost->bytes - request->owed.bytes, cost->flops - request->owed.flops};
    if (request->key_name[0] != '\0')
        keys_charge(request->server->setup.keys, request->key_name, &more);
    request->owed = *cost;
}

/* A chunked body has its length at its end. */
static void settle_body(struct request *request)
{
    const struct keys_cost cost = {(double)request->body_bytes, request->owed.flops};
    if (guard_is_chunked(&request->fields))
        settle(request, &cost);
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
    request->clock.ended = clock_now_ms();
    watch_remove(request);
    if (termination != MHD_REQUEST_TERMINATED_COMPLETED_OK)
        reply_was_broken(request);
    log_request(request, termination);
    count_request(request);
    const struct keys_cost cost = {(double)(request->body_bytes + request->reply.sent_bytes), request->flops};
    settle(request, &cost);
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

void request_fail(struct request *request, attn_status status, const char *message)
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
    request_fail(request, ATTN_ERR_NO_MEMORY, "no memory for the body of this request");
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
    text_copy(request->method, sizeof request->method, method);
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
        request_fail(request, ATTN_ERR_NO_MEMORY, "no memory for the body of this request");
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
        request->clock.received = clock_now_ms();
        settle_body(request);
        if (phase == REQUEST_BODY && !job_compute_at_once(request))
            return job_submit(request);
        request->phase = REQUEST_REPLY;
        return reply_queue(request);
    case REQUEST_COMPUTING:
        return MHD_YES;
    case REQUEST_REPLY:
        return reply_queue(request);
    }
    return MHD_NO;
}
