/* request.c: creates and frees a request and the memory that it owns. */
#include "http/request.h"

#include <assert.h>
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
    version_release(request->held);
    attn_arena_destroy(request->arena); /* frees the request, too */
    if (is_counted)
        server_request_out(server);
}
