/*
 * library.c: what libmicrohttpd says, and the requests that it refuses before it asks for them. Such a request has a
 * first line that is wrong, so there is no struct request; it is logged and counted when its connection ends.
 */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "http/connections/server.h"
#include "http/wire/problems.h"
#include "http/wire/wire.h"

/*
 * Refusals of a first line, and how many of each the library told in this thread whose connection has not ended. It does
 * not tell the connections, and there may be many between two looks at those that ended. A bad request may have a struct
 * request, too.
 */
static const unsigned of_first_line[] = {400, 414, 505};
static _Thread_local unsigned told[ARRAY_LENGTH(of_first_line)], told_in_all;

static void tell(unsigned status)
{
    for (size_t i = 0; i < ARRAY_LENGTH(told); i++)
        if (of_first_line[i] == status) {
            told[i]++;
            told_in_all++;
        }
}

/* One of that status has ended. */
static void forget(unsigned status)
{
    for (size_t i = 0; i < ARRAY_LENGTH(told); i++)
        if (of_first_line[i] == status && told[i] > 0) {
            told[i]--;
            told_in_all--;
        }
}

/* Most messages of the library are about clients that misbehave or leave. */
void library_says(void *cls, const char *format, va_list arguments)
{
    const struct http_server *server = cls;
    char text[512];
    unsigned status;
    vsnprintf(text, sizeof text, format, arguments);
    text[strcspn(text, "\n")] = '\0';
    log_say(server->setup.log, LOG_DEBUG, "libmicrohttpd: %s", text);
    /* The words are those of libmicrohttpd 0.9.75 to 1.0. */
    if (sscanf(text, "Error processing request (HTTP response code is %u", &status) == 1)
        tell(status);
}

unsigned library_status(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_HTTP_STATUS);
    const unsigned status = info != NULL ? info->http_status : 0;
    forget(status);
    return status;
}

static bool is_idle(const struct connection *connection)
{
    pthread_mutex_lock(&connection->server->lock);
    const bool is_idle = connection->member.line == LINE_IDLE;
    pthread_mutex_unlock(&connection->server->lock);
    return is_idle;
}

/* A refusal without a struct request. Its header is freed already, and which connection it was is not known. */
static void account(struct http_server *server, unsigned status)
{
    const enum problem problem = problems_of_library(status);
    char type[64];
    struct log_line line;
    log_begin(&line, server->setup.log, LOG_INFO, "request");
    log_count(&line, "status", status);
    snprintf(type, sizeof type, "/problems/%s", problems_row(problem)->type);
    log_text(&line, "problem", type);
    log_text(&line, "end", "refused");
    log_end(&line);
    metrics_add(&server->setup.metrics->rejected[problem], 1);
    metrics_count_request(server->setup.metrics, server->route_count, status, 0);
}

/* The library ends a connection after a refusal, so each refusal without a request has a connection that ends idle. */
void library_left(const struct connection *connection)
{
    if (told_in_all == 0 || !is_idle(connection))
        return;
    size_t i = 0;
    while (i + 1 < ARRAY_LENGTH(told) && told[i] == 0)
        i++;
    forget(of_first_line[i]);
    account(connection->server, of_first_line[i]);
}
