/*
 * watch.c: every open connection, and a thread that looks after them.
 */
#include "http/watch.h"

#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#include "http/request.h"

/* A client that left is noticed within a round; deadlines are kept by one. Quiet peers are asked less often. */
enum { ROUND_MS = 30, QUIET_ROUNDS = 8 };

/* Guarded by the lock of the server, in whose list it is. */
struct watched {
    struct http_server *server;
    int fd;
    double since_ms;         /* accepted, or the end of its last request */
    bool is_new;             /* has had no request yet */
    bool is_newcomer;        /* as counted in server.newcomers */
    bool is_closing;         /* shut down by us, no longer counted */
    struct request *request; /* NULL between two */
    struct watched *next, **link;
};

enum peer { PEER_PRESENT, PEER_HALF_CLOSED, PEER_GONE };

/* A client that closed looks like one that only has nothing more to send, until it resets the connection. */
static enum peer peer_of(int fd)
{
    struct tcp_info info;
    socklen_t length = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0)
        return PEER_PRESENT;
    if (info.tcpi_state == TCP_CLOSE_WAIT)
        return PEER_HALF_CLOSED;
    return info.tcpi_state == TCP_CLOSE ? PEER_GONE : PEER_PRESENT;
}

/* ---- deadlines --------------------------------------------------------------------------------------------------- */

/* When the connection is to be cut, whatever it sends; a job has a deadline of its own. */
static double cut_at_ms(const struct watched *watched, const struct http_setup *setup)
{
    const struct request *request = watched->request;
    if (request == NULL)
        return watched->since_ms + 1e3 * (watched->is_new ? setup->header_timeout_s : setup->idle_timeout_s);
    const double begun_ms = request->clock.begun;
    switch (atomic_load(&request->phase)) {
    case REQUEST_HEADERS:
        return (watched->is_new ? watched->since_ms : begun_ms) + 1e3 * setup->header_timeout_s;
    case REQUEST_BODY:
    case REQUEST_DISCARD:
        return begun_ms + 1e3 * setup->receive_timeout_s;
    case REQUEST_COMPUTING:
        break;
    case REQUEST_REPLY:
        return begun_ms + 1e3 * setup->request_timeout_s;
    }
    return (double)INFINITY;
}

/*
 * A shutdown of the reading half wakes the library anew, which then reads what there is and comes to the end of the
 * stream. Of both halves, it ends the connection whatever comes.
 */
static void look_after(struct watched *watched, const struct http_server *server, double now_ms, bool asks_quiet)
{
    struct request *request = watched->request;
    const bool computes = request != NULL && atomic_load(&request->phase) == REQUEST_COMPUTING;
    if (now_ms > cut_at_ms(watched, &server->setup)) {
        shutdown(watched->fd, SHUT_RDWR);
        return;
    }
    if (!(computes || asks_quiet))
        return;
    const enum peer peer = peer_of(watched->fd);
    if (request == NULL && peer != PEER_PRESENT) /* nothing can come any more */
        shutdown(watched->fd, SHUT_RDWR);
    else if (computes && (peer == PEER_GONE || (peer == PEER_HALF_CLOSED && server->setup.cancels_on_half_close)))
        atomic_store(&request->is_abandoned, true);
    else if (!computes && peer != PEER_PRESENT)
        shutdown(watched->fd, SHUT_RD);
}

/* ---- room for new connections ------------------------------------------------------------------------------------ */

/* What closing it would cost: nothing was begun, a header, a body. -1: it has been heard, and is not for closing. */
static int cost_of_closing(const struct watched *watched)
{
    if (watched->is_closing)
        return -1;
    if (watched->request == NULL)
        return 0;
    const enum request_phase phase = atomic_load(&watched->request->phase);
    return phase == REQUEST_HEADERS ? 1 : phase == REQUEST_BODY || phase == REQUEST_DISCARD ? 2 : -1;
}

/* Of those that cost least, the one that has waited for longest; NULL when all are being served. */
static struct watched *one_to_close(const struct http_server *server, const struct watched *newest)
{
    struct watched *chosen = NULL;
    int least = 0;
    for (struct watched *watched = server->watched; watched != NULL; watched = watched->next) {
        const int cost = cost_of_closing(watched);
        if (cost < 0 || watched == newest)
            continue;
        if (chosen == NULL || cost < least || (cost == least && watched->since_ms < chosen->since_ms)) {
            chosen = watched;
            least = cost;
        }
    }
    return chosen;
}

static void close_one(struct http_server *server, struct watched *newest)
{
    struct watched *chosen = one_to_close(server, newest);
    if (chosen == NULL)
        chosen = newest;
    chosen->is_closing = true;
    server->connections--;
    shutdown(chosen->fd, SHUT_RDWR);
    metrics_add(&server->setup.metrics->connections_evicted, 1);
}

struct http_server *watch_server(const void *context)
{
    const struct watched *watched = context;
    return watched != NULL ? watched->server : NULL;
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

static void add_connection(struct http_server *server, struct watched *watched)
{
    pthread_mutex_lock(&server->lock);
    watched->next = server->watched;
    watched->link = &server->watched;
    if (watched->next != NULL)
        watched->next->link = &watched->next;
    else
        pthread_cond_signal(&server->watch_wakes);
    server->watched = watched;
    if (++server->connections > server->setup.connections)
        close_one(server, watched);
    pthread_mutex_unlock(&server->lock);
}

void watch_expect(struct http_server *server)
{
    pthread_mutex_lock(&server->lock);
    server->newcomers++;
    pthread_mutex_unlock(&server->lock);
}

void watch_expect_no_more(struct http_server *server)
{
    pthread_mutex_lock(&server->lock);
    server->newcomers--;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
}

static void count_as_known(struct watched *watched)
{
    if (!watched->is_newcomer)
        return;
    watched->is_newcomer = false;
    watched->server->newcomers--;
    pthread_cond_broadcast(&watched->server->changed);
}

void watch_heard(struct request *request)
{
    if (request->watched != NULL)
        count_as_known(request->watched);
}

static void remove_connection(struct http_server *server, struct watched *watched)
{
    pthread_mutex_lock(&server->lock);
    *watched->link = watched->next;
    if (watched->next != NULL)
        watched->next->link = watched->link;
    server->connections -= !watched->is_closing;
    count_as_known(watched);
    pthread_mutex_unlock(&server->lock);
    free(watched);
}

void watch_connection(void *cls, struct MHD_Connection *connection, void **context,
                      enum MHD_ConnectionNotificationCode code)
{
    struct http_server *server = cls;
    struct metrics *metrics = server->setup.metrics;
    struct watched *watched = *context;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        atomic_fetch_sub_explicit(&metrics->connections, 1, memory_order_relaxed);
        if (watched != NULL)
            remove_connection(server, watched);
        *context = NULL;
        return;
    }
    atomic_fetch_add_explicit(&metrics->connections, 1, memory_order_relaxed);
    metrics_add(&metrics->connections_begun, 1);
    const int fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    watched = malloc(sizeof *watched);
    *context = watched;
    if (watched == NULL) {
        shutdown(fd, SHUT_RDWR);
        watch_expect_no_more(server);
        return;
    }
    *watched =
        (struct watched){.server = server, .fd = fd, .since_ms = request_now_ms(), .is_new = true, .is_newcomer = true};
    add_connection(server, watched);
}

void watch_add(struct request *request)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    request->watched = info != NULL ? info->socket_context : NULL;
    if (request->watched == NULL)
        return;
    pthread_mutex_lock(&request->server->lock);
    request->watched->request = request;
    pthread_mutex_unlock(&request->server->lock);
}

void watch_remove(struct request *request)
{
    if (request->watched == NULL)
        return;
    pthread_mutex_lock(&request->server->lock);
    request->watched->request = NULL;
    request->watched->is_new = false;
    request->watched->since_ms = request->clock.ended;
    pthread_mutex_unlock(&request->server->lock);
}

/* ---- the thread -------------------------------------------------------------------------------------------------- */

static void wait_a_round(struct http_server *server)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += ROUND_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    while (!server->watch_ends && pthread_cond_timedwait(&server->watch_wakes, &server->lock, &until) != ETIMEDOUT)
        continue;
}

static void *watch_thread(void *argument)
{
    struct http_server *server = argument;
    pthread_mutex_lock(&server->lock);
    for (unsigned round = 0; !server->watch_ends; round++) {
        if (server->watched == NULL) {
            pthread_cond_wait(&server->watch_wakes, &server->lock);
            continue;
        }
        wait_a_round(server);
        const double now_ms = request_now_ms();
        for (struct watched *watched = server->watched; watched != NULL; watched = watched->next)
            look_after(watched, server, now_ms, round % QUIET_ROUNDS == 0);
    }
    pthread_mutex_unlock(&server->lock);
    return NULL;
}

bool watch_start(struct http_server *server)
{
    return pthread_create(&server->watch, NULL, watch_thread, server) == 0;
}

void watch_stop(struct http_server *server)
{
    pthread_mutex_lock(&server->lock);
    server->watch_ends = true;
    pthread_cond_broadcast(&server->watch_wakes);
    pthread_mutex_unlock(&server->lock);
    pthread_join(server->watch, NULL);
}
