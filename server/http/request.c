/* request.c: creates, refuses and frees a request. */
#include "http/request.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "service/registry/version.h"

static void make_id(struct request *request)
{
    uint64_t random = server_random(request->server);
    enum { DIGITS = 16 };
    static_assert(sizeof request->id > DIGITS, "an id has room for 64 bits");
    for (size_t i = DIGITS; i-- > 0; random >>= 4)
        request->id[i] = text_hex_digit(random & 15);
    request->id[DIGITS] = '\0';
}

struct request *request_create(struct connection *connection, const char *target)
{
    struct http_server *server = connection->server;
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
    request->priority = EXECUTOR_NORMAL;
    request->refusal.problem = PROBLEM_NONE;
    request->deadline_ms = 1e3 * server->setup.deadline_s;
    make_id(request);
    return request;
}

void request_free(struct request *request)
{
    struct http_server *server = request->server;
    const bool is_counted = request->is_counted;
    if (request->reply.response != NULL)
        MHD_destroy_response(request->reply.response);
    if (request->events != NULL && request->events->response != NULL)
        MHD_destroy_response(request->events->response);
    version_release(request->held);
    attn_arena_destroy(request->arena); /* frees the request, too */
    if (is_counted)
        server_request_out(server);
}

/* ---- refusals ----------------------------------------------------------------------------------------------------- */

/* Room for a setting and its value, for the log. */
enum { SETTING_MAX = 280 };

enum problem refuse(struct request *request, enum problem problem, const char *format, ...)
{
    attn_error *error = &request->refusal.error;
    va_list arguments;
    request->refusal = (struct refusal){.problem = problem, .error.status = ATTN_ERR_VALUE};
    va_start(arguments, format);
    vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    return problem;
}

enum problem refuse_method(struct request *request, const char *allow, const char *below)
{
    refuse(request, PROBLEM_METHOD, "%s is not allowed here; allowed: %s%s%s", request->method, allow,
           below[0] != '\0' ? "; nearest: " : "", below);
    text_copy(request->refusal.allow, sizeof request->refusal.allow, allow);
    return PROBLEM_METHOD;
}

enum problem refuse_busy(struct request *request)
{
    return refuse(request, PROBLEM_BUSY, "all compute threads are busy and the queue is full; try again later");
}

enum problem refuse_draining(struct request *request)
{
    return refuse(request, PROBLEM_DRAINING, "the server is about to end; ask again elsewhere or later");
}

enum problem refuse_memory(struct request *request, const char *message)
{
    return refuse(request, PROBLEM_NO_MEMORY, "%s", message);
}

/* Logs a refusal with the setting that would allow the request, and the value of that setting. */
static void log_refusal(const struct request *request, const char *message, const char *field, const char *value,
                        const char *setting)
{
    struct log_line line;
    log_begin(&line, request->server->setup.log, LOG_WARN, message);
    log_text(&line, "id", request->id);
    log_text(&line, field, value);
    log_text(&line, "allowed_by", setting);
    log_end(&line);
}

enum problem refuse_page(struct request *request)
{
    const char *origin = request->fields.origin;
    const bool has_name = origin != NULL && strcmp(origin, "null") != 0;
    char setting[SETTING_MAX];
    snprintf(setting, sizeof setting, "--cors-origin %.240s",
             has_name ? origin : "with the origin of the page; null cannot be named");
    request->is_open = false;
    log_refusal(request, "refused a page of another origin", "origin", origin != NULL ? origin : "", setting);
    return refuse(request, PROBLEM_ORIGIN,
                  "a page of another origin, %.100s, may not ask for this (--cors-origin can name its origin)",
                  origin != NULL ? origin : "which sent no Origin");
}

enum problem refuse_host(struct request *request)
{
    const char *host = request->fields.host;
    char setting[SETTING_MAX];
    snprintf(setting, sizeof setting, "--host-names %.*s", (int)strcspn(host, ":"), host);
    log_refusal(request, "refused a Host that is not ours", "host", host, setting);
    return refuse(
        request, PROBLEM_HOST,
        "Host is %.100s; expected an IP address, localhost or a name of this server (--host-names can name it)", host);
}

enum problem refuse_call(struct request *request, const struct call *call)
{
    struct refusal *refusal = &request->refusal;
    if (call->refusal == CALL_FOREIGN)
        return refuse_page(request);
    refusal->problem = problems_of_failure(refusal->error.status, call->refusal);
    refusal->retry_after_s = call->retry_after_s;
    return refusal->problem;
}
