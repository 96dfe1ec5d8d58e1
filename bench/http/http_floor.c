/*
 * http_floor.c: the least that HTTP costs: libmicrohttpd, a body that is received and dropped, a ready answer.
 *
 *     http_floor THREADS        prints its port, then serves until its standard input ends
 *
 * The answer to a request for /N is N bytes. Options are those of server/http/daemon.c where they matter for speed; no
 * work is handed to other threads, nothing is parsed, written or logged.
 */
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CONNECTION_MEMORY = 64 << 10, ANSWER_BYTES_MAX = 64 << 20 };

struct echo {
    char *body;
    size_t room, used;
};

static char *answer;

static struct echo *echo_begin(struct MHD_Connection *connection)
{
    const char *length = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
    struct echo *echo = calloc(1, sizeof *echo);
    if (echo == NULL)
        return NULL;
    echo->room = length != NULL ? strtoull(length, NULL, 10) : 0;
    echo->body = malloc(echo->room + 1);
    return echo;
}

static void echo_end(void *cls, struct MHD_Connection *connection, void **con_cls,
                     enum MHD_RequestTerminationCode termination)
{
    struct echo *echo = *con_cls;
    (void)cls;
    (void)connection;
    (void)termination;
    if (echo != NULL)
        free(echo->body);
    free(echo);
    *con_cls = NULL;
}

static enum MHD_Result reply(struct MHD_Connection *connection, const char *url)
{
    const size_t bytes = strtoull(url + 1, NULL, 10);
    struct MHD_Response *response =
        MHD_create_response_from_buffer(bytes < ANSWER_BYTES_MAX ? bytes : 0, answer, MHD_RESPMEM_PERSISTENT);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
    const enum MHD_Result result = MHD_queue_response(connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result handle(void *cls, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *data, size_t *length, void **con_cls)
{
    struct echo *echo = *con_cls;
    (void)cls;
    (void)method;
    (void)version;
    if (echo == NULL) {
        *con_cls = echo_begin(connection);
        return *con_cls != NULL ? MHD_YES : MHD_NO;
    }
    if (*length == 0)
        return reply(connection, url);
    if (echo->body == NULL || *length > echo->room - echo->used)
        return MHD_NO;
    memcpy(echo->body + echo->used, data, *length);
    echo->used += *length;
    *length = 0;
    return MHD_YES;
}

int main(int argc, char **argv)
{
    char byte;
    const unsigned threads = argc == 2 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
    answer = malloc(ANSWER_BYTES_MAX);
    if (threads == 0 || answer == NULL) {
        fprintf(stderr, "usage: http_floor THREADS\n");
        return EXIT_FAILURE;
    }
    memset(answer, '1', ANSWER_BYTES_MAX);
    struct MHD_OptionItem more[] = {{threads > 1 ? MHD_OPTION_THREAD_POOL_SIZE : MHD_OPTION_END, threads, NULL},
                                    {MHD_OPTION_END, 0, NULL}};
    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, handle, NULL, MHD_OPTION_NOTIFY_COMPLETED, echo_end, NULL,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY, MHD_OPTION_ARRAY, more, MHD_OPTION_END);
    if (daemon == NULL) {
        fprintf(stderr, "http_floor: libmicrohttpd does not start\n");
        return EXIT_FAILURE;
    }
    printf("listening on 127.0.0.1:%u\n", MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0)
        continue;
    MHD_stop_daemon(daemon);
    free(answer);
    return EXIT_SUCCESS;
}
