/*
 * routes.c: method and path to what answers, as one table.
 */
#include "http/routes.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "http/openapi.h"
#include "http/page.h"
#include "http/reply.h"
#include "http/request.h"

static void answer_live(struct request *request)
{
    health_write_live(reply_begin_json(request, MHD_HTTP_OK));
}

static void answer_ready(struct request *request)
{
    const bool is_draining = atomic_load(&request->server->is_draining);
    const unsigned status = is_draining ? MHD_HTTP_SERVICE_UNAVAILABLE : MHD_HTTP_OK;
    health_write_ready(is_draining, reply_begin_json(request, status));
}

static void answer_version(struct request *request)
{
    health_write_version(&request->server->setup.facts, reply_begin_json(request, MHD_HTTP_OK));
}

static void answer_openapi(struct request *request)
{
    reply_constant(request, "application/json", openapi_text());
}

static const struct route routes[] = {
    {"/v1/attention", "POST", NULL, ENVELOPE_ATTENTION, false},
    {"/v1/multi-head-attention", "POST", NULL, ENVELOPE_LAYER, false},
    {"/livez", "GET", answer_live, 0, true},
    {"/readyz", "GET", answer_ready, 0, true},
    {"/version", "GET", answer_version, 0, false},
    {"/openapi.json", "GET", answer_openapi, 0, false},
    {"/", "GET", page_answer, 0, true},
};

enum { ROUTES = sizeof routes / sizeof routes[0], WANTED_MAX = 64 };

static bool is_method(const struct route *route, const char *method)
{
    return strcmp(route->method, method) == 0 || (strcmp(route->method, "GET") == 0 && strcmp(method, "HEAD") == 0);
}

const struct route *route_find(struct text_span path, const char *method)
{
    for (size_t i = 0; i < ROUTES; i++)
        if (text_equal(path, routes[i].path) && is_method(&routes[i], method))
            return &routes[i];
    return NULL;
}

const char *route_methods(struct text_span path, char *text, size_t size)
{
    bool has_get = false, has_post = false;
    for (size_t i = 0; i < ROUTES; i++)
        if (text_equal(path, "*") || text_equal(path, routes[i].path)) {
            has_get |= strcmp(routes[i].method, "GET") == 0;
            has_post |= strcmp(routes[i].method, "POST") == 0;
        }
    if (has_get || has_post)
        snprintf(text, size, "%s%sOPTIONS", has_get ? "GET, HEAD, " : "", has_post ? "POST, " : "");
    else
        snprintf(text, size, "%s", "");
    return text;
}

/* A path that ends in a slash stands for everything below it as well. */
static const char *const planned[] = {
    "/v1/attention/gradients",
    "/v1/multi-head-attention/gradients",
    "/v1/layers",
    "/v1/layers/",
    "/v2",
    "/v2/",
    "/metrics",
    "/docs",
};

bool route_is_planned(struct text_span path)
{
    for (size_t i = 0; i < sizeof planned / sizeof planned[0]; i++) {
        const size_t length = strlen(planned[i]);
        const bool is_folder = planned[i][length - 1] == '/';
        if (text_equal(path, planned[i]) ||
            (is_folder && path.length > length && strncmp(path.at, planned[i], length) == 0))
            return true;
    }
    return false;
}

const char *route_nearest(struct text_span path, char *text, size_t size)
{
    char wanted[WANTED_MAX];
    snprintf(wanted, sizeof wanted, "%.*s", (int)(path.length < WANTED_MAX ? path.length : WANTED_MAX), path.at);
    size_t least = SIZE_MAX, length = 0;
    for (size_t i = 0; i < ROUTES; i++) {
        const size_t distance = text_distance(wanted, routes[i].path);
        least = distance < least ? distance : least;
    }
    text[0] = '\0';
    for (size_t i = 0; i < ROUTES && length < size; i++)
        if (text_distance(wanted, routes[i].path) <= least + 1)
            length += (size_t)snprintf(text + length, size - length, "%s%s %s", length > 0 ? ", " : "",
                                       routes[i].method, routes[i].path);
    return text;
}
