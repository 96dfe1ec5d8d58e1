/*
 * exchange.c: takes a request and its answer through their steps when the library calls. All of it runs in an I/O
 * thread.
 */
#include "http/exchange.h"

#include <string.h>

#include "base/clock.h"
#include "http/admission.h"
#include "http/job.h"
#include "http/reply.h"
#include "http/sender.h"
#include "http/write_ahead.h"

/*
 * A chunked body that is too large can only be answered at its end, so this many bytes beyond the limit are still read.
 */
enum { DISCARD_CHUNKED_MAX = 8 << 20 };

/* ---- the end ----------------------------------------------------------------------------------------------------- */

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
    log_text(line, "trace_flags", trace->flags);
}

/* Logs the path without its query, because clients put keys there by mistake. */
static void log_path(struct log_line *line, const char *target)
{
    char path[LOG_LINE_MAX];
    const size_t length = strcspn(target, "?");
    text_copy(path, length < sizeof path ? length + 1 : sizeof path, target);
    log_text(line, "path", path);
}

/* Status 0 means that the request ended before it was answered. */
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

/* The index of the route's row. Requests without a route have the index after the last row. */
static size_t row_of(const struct request *request)
{
    const struct http_server *server = request->server;
    return request->route != NULL ? (size_t)(request->route - server->routes) : server->route_count;
}

/* A client that left before its answer is counted under 499, the status that proxies use for it. */
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

/* Charges the key for the actual cost of the request instead of the expected cost. */
static void settle(struct request *request, const struct keys_cost *cost)
{
    const struct keys_cost more = {cost->bytes - request->owed.bytes, cost->flops - request->owed.flops};
    if (request->key_name[0] != '\0')
        keys_charge(request->server->setup.keys, request->key_name, &more);
    request->owed = *cost;
}

/* Charges for a chunked body, whose length is known only at its end. */
static void settle_body(struct request *request)
{
    const struct keys_cost cost = {(double)request->body_bytes, request->owed.flops};
    if (guard_is_chunked(&request->fields))
        settle(request, &cost);
}

/* ---- header and body --------------------------------------------------------------------------------------------- */

/*
 * Counts a request after its whole header has arrived: a client that stops in the middle of a header must not delay the
 * end of the server.
 */
static void count_in(struct request *request)
{
    struct http_server *server = request->server;
    pthread_mutex_lock(&server->lock);
    server->requests++;
    connection_heard(request->connection);
    pthread_mutex_unlock(&server->lock);
    request->is_counted = true;
}

static bool prepare_body(struct request *request)
{
    request->pieces = chunks_begin(request->arena);
    if (guard_is_chunked(&request->fields))
        return true;
    /* The bytes after the JSON begin at an alignment for every type, so that tensors are used in place. */
    const size_t lead = (ATTN_ALIGNMENT - request->json_bytes % ATTN_ALIGNMENT) % ATTN_ALIGNMENT;
    request->body = attn_arena_take(request->arena, 1, lead + request->fields.content_length);
    if (request->body != NULL) {
        request->body += lead;
        return true;
    }
    reply_no_memory(request, "no memory for the body of this request");
    return false;
}

/*
 * Whether to read the body of a refused request. An answer before the end of the body costs the connection, even when
 * the body is empty.
 */
static bool is_worth_reading(const struct request *request)
{
    const struct guard_fields *fields = &request->fields;
    if (request->closes || request->reply.status == MHD_HTTP_CONTENT_TOO_LARGE)
        return false;
    return !guard_has_body(fields) || (fields->content_length <= REQUEST_DISCARD_MAX && fields->expect == NULL);
}

static enum MHD_Result send_reply(struct request *request)
{
    connection_replies(request->connection, clock_now_ms());
    return reply_queue(request);
}

static enum MHD_Result answer_header(struct request *request)
{
    if (is_worth_reading(request)) {
        request->connection->phase = PHASE_DISCARD;
        return MHD_YES;
    }
    request->closes = true;
    return send_reply(request);
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
    request->connection->phase = PHASE_BODY;
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
        reply_no_memory(request, "no memory for the body of this request");
        request->connection->phase = PHASE_DISCARD;
    }
}

static void refuse_length(struct request *request)
{
    attn_arena_release(request->arena, request->before_body);
    reply_refuse(request, PROBLEM_BODY, "the body has more than %llu bytes, which is the limit (--max-body)",
                 (unsigned long long)request->server->setup.max_body_bytes);
    request->connection->phase = PHASE_DISCARD;
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
    if (request->connection->phase == PHASE_BODY && request->body_bytes > setup->max_body_bytes)
        refuse_length(request);
    else if (request->connection->phase == PHASE_BODY)
        append_piece(request, data, taken);
    else if (request->body_bytes > setup->max_body_bytes + DISCARD_CHUNKED_MAX)
        return give_up(request, "body is far over the limit, connection closed");
    return MHD_YES;
}

/* The body has arrived whole: computes it at once, hands it to a job, or sends the refusal. */
static enum MHD_Result take_end(struct request *request)
{
    const bool is_welcome = request->connection->phase == PHASE_BODY;
    request->clock.received = clock_now_ms();
    settle_body(request);
    if (is_welcome && !job_compute_at_once(request) && job_submit(request))
        return MHD_YES;
    return send_reply(request);
}

/* ---- functions that the library calls ---------------------------------------------------------------------------- */

void *exchange_begin(void *cls, const char *target, struct MHD_Connection *mhd)
{
    struct connection *connection = connection_of(mhd);
    struct request *request = connection != NULL ? request_create(connection, target) : NULL;
    (void)cls;
    if (request != NULL)
        connection_begins(connection, request->clock.begun);
    return request;
}

enum MHD_Result exchange_handle(void *cls, struct MHD_Connection *mhd, const char *url, const char *method,
                                const char *version, const char *upload_data, size_t *upload_data_size, void **con_cls)
{
    struct request *request = *con_cls;
    const struct http_server *server = cls;
    (void)url; /* the library has decoded it, but routes are compared with the raw target (target.h) */
    if (request == NULL)
        return reply_without_memory(mhd, server->setup.metrics);
    const enum connection_phase phase = request->connection->phase;
    switch (phase) {
    case PHASE_HEADER:
        return take_header(request, method, version);
    case PHASE_BODY:
    case PHASE_DISCARD:
        return *upload_data_size > 0 ? take_body(request, upload_data, upload_data_size) : take_end(request);
    case PHASE_COMPUTING:
        return MHD_YES;
    case PHASE_REPLY:
        return send_reply(request);
    case PHASE_IDLE:
        break;
    }
    return MHD_NO;
}

void exchange_end(void *cls, struct MHD_Connection *mhd, void **con_cls, enum MHD_RequestTerminationCode termination)
{
    struct request *request = *con_cls;
    (void)cls;
    (void)mhd;
    if (request == NULL)
        return;
    *con_cls = NULL;
    request->clock.ended = clock_now_ms();
    connection_ends(request->connection, request->clock.ended);
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
