/*
 * watch.c: a thread that checks open connections some thirty times a second, as long as there are any.
 *
 * The library does not see that a client left while its connection is suspended. With edge-triggered epoll, it also
 * misses an end of stream that arrived together with the last bytes. Its time-out measures silence only. At its limit
 * of connections, it leaves all others waiting. So this thread keeps the deadlines of a header, a body and a whole
 * request, and lifecycle.c evicts connections to make room for new ones. This thread also cuts answers that clients do
 * not read, when memory is short or other requests wait.
 */
#include <errno.h>
#include <math.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "http/connections/server.h"
#include "http/wire/wire.h"

/*
 * Connections whose request is computed are checked in every round, so that the work for a client that left ends soon.
 * All others are checked once in QUIET_ROUNDS. The lock, which every request needs, is held for a SLICE of connections
 * at a time.
 */
enum { ROUND_MS = 30, QUIET_ROUNDS = 8, SLICE = 128 };

/*
 * An answer stands still while its client takes less than TAKES_BYTES of it. After CONNECTION_STILL_MS it may be cut
 * because memory is short, after STILL_MOST_MS because others wait.
 */
enum { TAKES_BYTES = 4 << 10, STILL_MOST_MS = 20000 };

/* ---- deadlines --------------------------------------------------------------------------------------------------- */

/* The time at which the connection is cut, even if it sends bytes. A job has a deadline of its own (compute.c). */
static double cut_at_ms(const struct connection *connection)
{
    const struct http_setup *setup = &connection->server->setup;
    switch (connection->member.line) {
    case LINE_IDLE:
        return connection->since_ms + 1e3 * (connection->is_new ? setup->header_timeout_s : setup->idle_timeout_s);
    case LINE_HEADER:
        return (connection->is_new ? connection->since_ms : connection->begun_ms) + 1e3 * setup->header_timeout_s;
    case LINE_BODY:
        return connection->begun_ms + 1e3 * setup->receive_timeout_s;
    case LINE_REPLY:
        return connection->begun_ms + 1e3 * setup->request_timeout_s;
    case LINE_COMPUTING:
    case LINE_CLOSING:
    case CROWD_LINES:
        break;
    }
    return (double)INFINITY;
}

/* ---- answers that stand still ------------------------------------------------------------------------------------ */

/* The line of answers is ordered by the time at which the client last took something. */
static void note_progress(struct connection *connection, const struct peer *peer, double now_ms)
{
    if (!peer->has_all && peer->taken_bytes - connection->taken_bytes < TAKES_BYTES)
        return;
    connection->taken_bytes = peer->taken_bytes;
    connection->moved_ms = now_ms;
    crowd_move(&connection->server->crowd, &connection->member, LINE_REPLY);
}

/* The answer that has stood still for the longest time, if that is at least least_ms. NULL: none. */
static struct connection *standing_still(struct http_server *server, double now_ms, double least_ms)
{
    struct connection *connection = connection_of_member(server->crowd.lines[LINE_REPLY].first);
    return connection != NULL && now_ms - connection->moved_ms >= least_ms ? connection : NULL;
}

static bool is_memory_wanted(const struct http_server *server, double now_ms)
{
    attn_budget *budget = server->setup.budget;
    return budget != NULL && (now_ms - atomic_load(&server->memory_refused_ms) < CONNECTION_STILL_MS ||
                              attn_budget_bytes(budget) > attn_budget_limit_bytes(budget) / 8 * 7);
}

/*
 * Requests in the queue do not count: they wait for a compute thread, and an answer that stands still does not occupy
 * one.
 */
static bool do_others_wait(const struct http_server *server, double now_ms)
{
    return server->connections >= server->setup.connections ||
           now_ms - atomic_load(&server->refused_ms) < STILL_MOST_MS;
}

/* Cuts only a few answers per round, because the memory of a cut answer returns a moment later. */
static void cut_answers(struct http_server *server, double now_ms)
{
    enum { IN_A_ROUND = 8 };
    struct connection *connection = NULL;
    const double least_ms = is_memory_wanted(server, now_ms) ? CONNECTION_STILL_MS : STILL_MOST_MS;
    if (standing_still(server, now_ms, least_ms) == NULL ||
        (least_ms > CONNECTION_STILL_MS && !do_others_wait(server, now_ms)))
        return;
    for (int i = 0; i < IN_A_ROUND && (connection = standing_still(server, now_ms, least_ms)) != NULL; i++)
        connection_evict(connection);
}

/* ---- one connection ---------------------------------------------------------------------------------------------- */

/*
 * A shutdown of the reading half wakes the library again. The library then reads what there is and finds the end of the
 * stream. A shutdown of both halves ends the connection in any case.
 */
static void look_after(struct connection *connection, double now_ms)
{
    const struct http_setup *setup = &connection->server->setup;
    const enum crowd_line line = connection->member.line;
    if (now_ms > cut_at_ms(connection)) {
        shutdown(connection->fd, SHUT_RDWR);
        return;
    }
    const struct peer peer = peer_of(connection->fd);
    if (line == LINE_IDLE && peer.presence != PEER_PRESENT) /* no further request can arrive */
        shutdown(connection->fd, SHUT_RDWR);
    else if (line == LINE_COMPUTING &&
             (peer.presence == PEER_GONE || (peer.presence == PEER_HALF_CLOSED && setup->cancels_on_half_close)))
        atomic_store(&connection->is_abandoned, true);
    else if (line != LINE_COMPUTING && peer.presence != PEER_PRESENT)
        shutdown(connection->fd, SHUT_RD);
    if (line == LINE_REPLY)
        note_progress(connection, &peer, now_ms);
}

/* ---- the thread -------------------------------------------------------------------------------------------------- */

static void wait_a_round(struct http_server *server)
{
    const struct timespec until = clock_after_ms(ROUND_MS);
    while (!server->watch_ends && pthread_cond_timedwait(&server->watch_wakes, &server->lock, &until) != ETIMEDOUT)
        continue;
}

/* Releases the lock for a moment. Without the pause, this thread would mostly get the lock again at once. */
static void let_others_in(struct http_server *server)
{
    pthread_mutex_unlock(&server->lock);
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    pthread_mutex_lock(&server->lock);
}

/* Checks one part of all connections; QUIET_ROUNDS parts are all of them. */
static void walk(struct http_server *server, double now_ms)
{
    for (size_t left = server->crowd.count / QUIET_ROUNDS + 1; left > 0; left--) {
        if (left % SLICE == 0)
            let_others_in(server);
        struct connection *connection = connection_of_member(crowd_next(&server->crowd));
        if (connection != NULL && connection->member.line != LINE_CLOSING)
            look_after(connection, now_ms);
    }
}

/* Checks all connections whose request is computed. Each one moves to the end of the line. */
static void walk_computing(struct http_server *server, double now_ms)
{
    for (size_t left = server->crowd.lines[LINE_COMPUTING].count; left > 0; left--) {
        if (left % SLICE == 0)
            let_others_in(server);
        struct connection *connection = connection_of_member(server->crowd.lines[LINE_COMPUTING].first);
        if (connection == NULL)
            return;
        crowd_move(&server->crowd, &connection->member, LINE_COMPUTING);
        look_after(connection, now_ms);
    }
}

static void *watch_thread(void *argument)
{
    struct http_server *server = argument;
    pthread_mutex_lock(&server->lock);
    while (!server->watch_ends) {
        if (server->crowd.count == 0) {
            pthread_cond_wait(&server->watch_wakes, &server->lock);
            continue;
        }
        wait_a_round(server);
        const double now_ms = clock_now_ms();
        walk_computing(server, now_ms);
        walk(server, now_ms);
        cut_answers(server, now_ms);
    }
    pthread_mutex_unlock(&server->lock);
    return NULL;
}

bool watch_start(struct http_server *server)
{
    const int failure = pthread_create(&server->watch, NULL, watch_thread, server);
    if (failure != 0)
        errno = failure;
    return failure == 0;
}

void watch_stop(struct http_server *server)
{
    pthread_mutex_lock(&server->lock);
    server->watch_ends = true;
    pthread_cond_broadcast(&server->watch_wakes);
    pthread_mutex_unlock(&server->lock);
    pthread_join(server->watch, NULL);
    crowd_free(&server->crowd);
}
