/* account.c: accounts for a request: its line of the log, the metrics, and what its key is charged. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "http/steps.h"
#include "http/wire/wire.h"

static const char *end_name(const struct request *request, enum MHD_RequestTerminationCode termination)
{
    if (request->is_refused_unasked)
        return "refused";
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

/* The milliseconds of each stage. */
struct stages {
    double ms[METRICS_STAGES];
    int first; /* a request that was not computed has its total alone */
};

static struct stages stages_of(const struct request *request)
{
    const struct request_clock *clock = &request->clock;
    const double later_ms = request->reply.sender != NULL ? sender_write_ms(request->reply.sender) : 0;
    return (struct stages){
        .ms = {[METRICS_RECEIVE] = clock->received - clock->begun,
               [METRICS_QUEUE] = clock->queue_ms,
               [METRICS_PARSE] = clock->times.parse_ms,
               [METRICS_COMPUTE] = clock->times.compute_ms,
               [METRICS_WRITE] = clock->times.write_ms + later_ms,
               [METRICS_TOTAL] = clock->ended - clock->begun},
        .first = clock->is_computed ? 0 : METRICS_TOTAL,
    };
}

static void log_stages(struct log_line *line, const struct stages *stages)
{
    static const char *const names[METRICS_STAGES] = {"receive_ms", "queue_ms", "parse_ms",
                                                      "compute_ms", "write_ms", "total_ms"};
    for (int i = stages->first; i < METRICS_STAGES; i++)
        log_ms(line, names[i], stages->ms[i]);
}

/* Logs the path without its query, because clients put keys there by mistake. */
static void log_path(struct log_line *line, const char *target)
{
    char path[LOG_LINE_MAX];
    const size_t length = strcspn(target, "?");
    text_copy(path, length < sizeof path ? length + 1 : sizeof path, target);
    log_text(line, "path", path);
}

void account_client(struct request *request)
{
    if (!client_address(request->connection->mhd, request->server->setup.trusted_proxies, request->client))
        request->client[0] = '\0';
}

static void log_client(struct log_line *line, struct request *request)
{
    if (line->log != NULL && request->events == NULL)
        account_client(request);
    if (line->log != NULL && request->client[0] != '\0')
        log_text(line, "client", request->client);
}

/* Why the request was refused. The message stays out: it may repeat what the client sent. */
static void log_refusal(struct log_line *line, const struct refusal *refusal)
{
    char type[64];
    if (refusal->problem == PROBLEM_NONE)
        return;
    snprintf(type, sizeof type, "/problems/%s", problems_row(refusal->problem)->type);
    log_text(line, "problem", type);
    if (refusal->error.field[0] != '\0')
        log_text(line, "pointer", refusal->error.field);
}

/* Status 0 means that the request ended before it was answered. */
static void log_request(struct request *request, enum MHD_RequestTerminationCode termination,
                        const struct stages *stages)
{
    struct log_line line;
    log_begin(&line, request->server->setup.log, LOG_INFO, "request");
    log_text(&line, "id", request->id);
    trace_log(&request->trace, &line);
    log_client(&line, request);
    if (request->key_name[0] != '\0')
        log_text(&line, "key", request->key_name);
    if (request->method[0] != '\0') /* the library has refused it before it told the method */
        log_text(&line, "method", request->method);
    log_path(&line, request->target);
    log_count(&line, "status", request->reply.status);
    log_refusal(&line, &request->refusal);
    log_text(&line, "end", end_name(request, termination));
    log_count(&line, "bytes_in", request->body_bytes);
    log_count(&line, "bytes_out", request->reply.sent_bytes);
    log_stages(&line, stages);
    log_end(&line);
}

/* The index of the route's row. Requests without a route have the index after the last row. */
static size_t row_of(const struct request *request)
{
    const struct http_server *server = request->server;
    return request->route != NULL ? (size_t)(request->route - server->routes) : server->route_count;
}

/* A client that left before its answer is counted under 499, the status that proxies use for it. */
static void count_request(const struct request *request, const struct stages *stages)
{
    enum { LEFT = 499 };
    struct metrics *metrics = request->server->setup.metrics;
    const unsigned status = request->reply.status != 0 ? request->reply.status : LEFT;
    metrics_add(&metrics->received_bytes, request->body_bytes);
    metrics_add(&metrics->sent_bytes, request->reply.sent_bytes);
    if (!request->is_counted && !request->is_refused_unasked)
        return;
    metrics_count_request(metrics, row_of(request), status, stages->ms[METRICS_TOTAL]);
    for (int i = stages->first; i < METRICS_STAGES; i++)
        metrics_observe(&metrics->stages[i], stages->ms[i]);
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
void account_body(struct request *request)
{
    const struct keys_cost cost = {(double)request->body_bytes, request->owed.flops};
    if (guard_is_chunked(&request->fields))
        settle(request, &cost);
}

void account_refused(struct request *request, unsigned status)
{
    const enum problem problem = problems_of_library(status);
    request->is_refused_unasked = true;
    request->reply.status = status;
    request->refusal = (struct refusal){.problem = problem};
    metrics_add(&request->server->setup.metrics->rejected[problem], 1);
}

void account_stopped(const struct request *request, enum problem problem)
{
    struct metrics *metrics = request->server->setup.metrics;
    if (request->events != NULL ? atomic_load(&request->events->is_gone)
                                : atomic_load(&request->connection->is_abandoned))
        metrics_add(&metrics->cancelled[METRICS_CLIENT_GONE], 1);
    else if (problem == PROBLEM_DEADLINE)
        metrics_add(&metrics->cancelled[METRICS_DEADLINE], 1);
    else if (problem != PROBLEM_NONE && atomic_load(&request->server->is_cancelled))
        metrics_add(&metrics->cancelled[METRICS_SHUTDOWN], 1);
}

void account_end(struct request *request, enum MHD_RequestTerminationCode termination)
{
    if (request->events != NULL && request->events->has_begun)
        request->reply.sent_bytes = request->events->sent_bytes;
    else if (termination != MHD_REQUEST_TERMINATED_COMPLETED_OK)
        reply_was_broken(request);
    const struct stages stages = stages_of(request);
    log_request(request, termination, &stages);
    count_request(request, &stages);
    const struct keys_cost cost = {(double)(request->body_bytes + request->reply.sent_bytes), request->flops};
    settle(request, &cost);
}
