/*
 * library.c: what libmicrohttpd says, and the requests that it refuses before it asks for them. Such a request has a
 * first line that is wrong, so there is no struct request; it is logged and counted when its connection ends.
 */
#include <stdio.h>
#include <string.h>

#include "http/connections/server.h"
#include "http/wire/problems.h"
#include "http/wire/wire.h"

/* The status of the last refusal that the library told in this thread, until its request or its connection ends. */
static _Thread_local unsigned told_status;

/* Most messages of the library are about clients that misbehave or leave. */
void library_says(void *cls, const char *format, va_list arguments)
{
    const struct http_server *server = cls;
    char text[512];
    unsigned status;
    vsnprintf(text, sizeof text, format, arguments);
    text[strcspn(text, "\n")] = '\0';
    log_say(server->setup.log, LOG_DEBUG, "libmicrohttpd: %s", text);
    if (sscanf(text, "Error processing request (HTTP response code is %u", &status) == 1)
        told_status = status;
}

unsigned library_status(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_HTTP_STATUS);
    told_status = 0;
    return info != NULL ? info->http_status : 0;
}

static bool is_idle(const struct connection *connection)
{
    pthread_mutex_lock(&connection->server->lock);
    const bool is_idle = connection->member.line == LINE_IDLE;
    pthread_mutex_unlock(&connection->server->lock);
    return is_idle;
}

/*
 * The library ends a connection at once after a refusal. So the next one that ends idle is most likely the refused one.
 * Its header is freed already, and X-Forwarded-For with it.
 */
void library_left(const struct connection *connection)
{
    struct http_server *server = connection->server;
    const unsigned status = told_status;
    if (status == 0 || !is_idle(connection))
        return;
    told_status = 0;
    const enum problem problem = problems_of_library(status);
    char client[CLIENT_TEXT], type[64];
    struct log_line line;
    log_begin(&line, server->setup.log, LOG_INFO, "request");
    if (client_address(connection->mhd, "", client))
        log_text(&line, "client", client);
    log_count(&line, "status", status);
    snprintf(type, sizeof type, "/problems/%s", problems_row(problem)->type);
    log_text(&line, "problem", type);
    log_text(&line, "end", "refused");
    log_end(&line);
    metrics_add(&server->setup.metrics->rejected[problem], 1);
    metrics_count_request(server->setup.metrics, server->route_count, status, 0);
}
