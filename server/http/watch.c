/*
 * watch.c: a thread that looks after the requests on their way.
 */
#include "http/watch.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <time.h>

#include "http/request.h"

/* After some rounds without a request the thread sleeps; until then a request that begins need not wake it. */
enum { ROUND_MS = 250, EMPTY_ROUNDS = 8 };

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

/*
 * A shutdown of the reading half wakes the library anew, which then reads what there is and comes to the end of the
 * stream. Of both halves, it ends the connection whatever comes.
 */
static void look_after(struct request *request, double now_ms)
{
    const struct http_setup *setup = &request->server->setup;
    const enum request_phase phase = atomic_load(&request->phase);
    const enum peer peer = peer_of(request->fd);
    if (phase == REQUEST_COMPUTING) {
        if (peer == PEER_GONE || (peer == PEER_HALF_CLOSED && setup->cancels_on_half_close))
            atomic_store(&request->is_abandoned, true);
    } else if (phase != REQUEST_REPLY && now_ms - request->clock.begun > 1e3 * setup->receive_timeout_s) {
        shutdown(request->fd, SHUT_RDWR);
    } else if (peer != PEER_PRESENT) {
        shutdown(request->fd, SHUT_RD);
    }
}

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
    size_t empty_rounds = 0;
    pthread_mutex_lock(&server->lock);
    while (!server->watch_ends) {
        empty_rounds = server->watched == NULL ? empty_rounds + 1 : 0;
        if (empty_rounds > EMPTY_ROUNDS) {
            server->watch_sleeps = true;
            pthread_cond_wait(&server->watch_wakes, &server->lock);
            server->watch_sleeps = false;
            continue;
        }
        wait_a_round(server);
        const double now_ms = request_now_ms();
        for (struct request *request = server->watched; request != NULL; request = request->next_watched)
            look_after(request, now_ms);
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

void watch_add(struct request *request)
{
    struct http_server *server = request->server;
    pthread_mutex_lock(&server->lock);
    request->next_watched = server->watched;
    request->watched_link = &server->watched;
    if (request->next_watched != NULL)
        request->next_watched->watched_link = &request->next_watched;
    else if (server->watch_sleeps)
        pthread_cond_signal(&server->watch_wakes);
    server->watched = request;
    pthread_mutex_unlock(&server->lock);
}

void watch_remove(struct request *request)
{
    struct http_server *server = request->server;
    pthread_mutex_lock(&server->lock);
    *request->watched_link = request->next_watched;
    if (request->next_watched != NULL)
        request->next_watched->watched_link = request->watched_link;
    pthread_mutex_unlock(&server->lock);
}
