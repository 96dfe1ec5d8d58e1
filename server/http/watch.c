/*
 * watch.c: looks after every open connection.
 */
#include "http/watch.h"

#include <errno.h>
#include <linux/tcp.h>
#include <math.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"
#include "http/request.h"

/*
 * A client that left while its request is at work is noticed within a round. The others are looked at once in so many
 * rounds, and a slice of them while the lock is held, which every request wants.
 */
enum { ROUND_MS = 30, QUIET_ROUNDS = 8, SLICE = 128 };

/*
 * A client that takes less than so much of its answer stands still: for how long is counted, and after STILL it may
 * have to give its memory back, after STILL_MOST it is cut while others wait.
 */
enum { TAKES_BYTES = 4 << 10, STILL_MS = 1000, STILL_MOST_MS = 20000 };

enum presence { PEER_PRESENT, PEER_HALF_CLOSED, PEER_GONE };

struct peer {
    enum presence presence;
    uint64_t taken_bytes; /* of all that was sent on this connection */
    bool has_all;         /* nothing that was sent is on its way to it */
    bool has_no_room;     /* it has all that its window let through, and there is more */
};

/* A client that closed looks like one that only has nothing more to send, until it resets the connection. */
static struct peer peer_of(int fd)
{
    enum { CLOSE = 7, CLOSE_WAIT = 8 }; /* as <netinet/tcp.h> has them, whose tcp_info is an older one */
    struct tcp_info info = {.tcpi_state = 0};
    socklen_t length = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0)
        return (struct peer){.presence = PEER_PRESENT, .has_all = true};
    const enum presence presence = info.tcpi_state == CLOSE_WAIT ? PEER_HALF_CLOSED
                                   : info.tcpi_state == CLOSE    ? PEER_GONE
                                                                 : PEER_PRESENT;
    const bool is_all_acked = info.tcpi_unacked == 0;
    return (struct peer){presence, info.tcpi_bytes_acked, is_all_acked && info.tcpi_notsent_bytes == 0,
                         is_all_acked && info.tcpi_notsent_bytes > 0};
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

/* ---- answers that nobody takes ----------------------------------------------------------------------------------- */

/* Answers stand in their line in the order in which their clients last took something. */
static void note_progress(struct watched *watched, const struct peer *peer, double now_ms)
{
    if (!peer->has_all && peer->taken_bytes - watched->taken_bytes < TAKES_BYTES)
        return;
    watched->taken_bytes = peer->taken_bytes;
    watched->moved_ms = now_ms;
    crowd_move(&watched->server->crowd, watched, LINE_REPLY);
}

static void close_connection(struct watched *watched)
{
    crowd_move(&watched->server->crowd, watched, LINE_CLOSING);
    watched->server->connections--;
    shutdown(watched->fd, SHUT_RDWR);
    metrics_add(&watched->server->setup.metrics->connections_evicted, 1);
}

/* The answer that nobody has taken anything of for longest, when that is at least so long; else NULL. */
static struct watched *standing_still(struct http_server *server, double now_ms, double least_ms)
{
    struct watched *watched = server->crowd.lines[LINE_REPLY].first;
    return watched != NULL && now_ms - watched->moved_ms >= least_ms ? watched : NULL;
}

static bool is_memory_wanted(const struct http_server *server, double now_ms)
{
    const attn_budget *budget = server->setup.budget;
    return budget != NULL && (now_ms - atomic_load(&server->memory_refused_ms) < STILL_MS ||
                              attn_budget_bytes(budget) > attn_budget_limit_bytes(budget) / 8 * 7);
}

/* Requests in the queue do not count: they wait for a compute thread, and an answer that stands still holds none. */
static bool do_others_wait(const struct http_server *server, double now_ms)
{
    return server->connections >= server->setup.connections ||
           now_ms - atomic_load(&server->refused_ms) < STILL_MOST_MS;
}

/* The work of a few in a round: the memory of a closed one comes back a moment later. */
static void cut_answers(struct http_server *server, double now_ms)
{
    enum { IN_A_ROUND = 8 };
    struct watched *watched = NULL;
    const double least_ms = is_memory_wanted(server, now_ms) ? STILL_MS : STILL_MOST_MS;
    if (standing_still(server, now_ms, least_ms) == NULL || (least_ms > STILL_MS && !do_others_wait(server, now_ms)))
        return;
    for (int i = 0; i < IN_A_ROUND && (watched = standing_still(server, now_ms, least_ms)) != NULL; i++)
        close_connection(watched);
}

/* ---- one connection ---------------------------------------------------------------------------------------------- */

static enum crowd_line line_of(const struct watched *watched)
{
    if (watched->request == NULL)
        return LINE_IDLE;
    switch (atomic_load(&watched->request->phase)) {
    case REQUEST_HEADERS:
        return LINE_HEADER;
    case REQUEST_BODY:
    case REQUEST_DISCARD:
        return LINE_BODY;
    case REQUEST_COMPUTING:
        return LINE_COMPUTING;
    case REQUEST_REPLY:
        break;
    }
    return LINE_REPLY;
}

/* Phases change without the lock; a connection comes to its line a moment later. True: it was in another one. */
static bool find_line(struct watched *watched, double now_ms)
{
    const enum crowd_line line = line_of(watched);
    if (watched->line == line || watched->line == LINE_CLOSING)
        return false;
    crowd_move(&watched->server->crowd, watched, line);
    watched->moved_ms = now_ms;
    return true;
}

/*
 * A shutdown of the reading half wakes the library anew, which then reads what there is and comes to the end of the
 * stream. Of both halves, it ends the connection whatever comes.
 */
static void look_after(struct watched *watched, double now_ms)
{
    struct request *request = watched->request;
    const struct http_setup *setup = &watched->server->setup;
    find_line(watched, now_ms);
    if (now_ms > cut_at_ms(watched, setup)) {
        shutdown(watched->fd, SHUT_RDWR);
        return;
    }
    const bool computes = watched->line == LINE_COMPUTING;
    const struct peer peer = peer_of(watched->fd);
    if (request == NULL && peer.presence != PEER_PRESENT) /* nothing can come any more */
        shutdown(watched->fd, SHUT_RDWR);
    else if (computes &&
             (peer.presence == PEER_GONE || (peer.presence == PEER_HALF_CLOSED && setup->cancels_on_half_close)))
        atomic_store(&request->is_abandoned, true);
    else if (!computes && peer.presence != PEER_PRESENT)
        shutdown(watched->fd, SHUT_RD);
    if (watched->line == LINE_REPLY)
        note_progress(watched, &peer, now_ms);
}

/* ---- room for new connections ------------------------------------------------------------------------------------ */

/* The answer that nobody has taken anything of for longest, when its client has no room for more; else NULL. */
static struct watched *longest_untaken(struct http_server *server, double now_ms)
{
    enum { LOOKS = 32 };
    struct watched *watched = server->crowd.lines[LINE_REPLY].first;
    for (int i = 0; i < LOOKS && watched != NULL; i++, watched = watched->next)
        if (now_ms - watched->moved_ms >= STILL_MS || peer_of(watched->fd).has_no_room)
            return watched;
    return NULL;
}

/* The connection that has been idle for longest, else in its header, else in its body; NULL when there is none. */
static struct watched *longest_without_answer(struct http_server *server, const struct watched *newest, double now_ms)
{
    for (enum crowd_line line = LINE_IDLE; line <= LINE_BODY; line++) {
        struct watched *first = server->crowd.lines[line].first;
        while (first != NULL && first != newest && find_line(first, now_ms))
            first = server->crowd.lines[line].first;
        if (first != NULL && first != newest)
            return first;
    }
    return NULL;
}

/* Whether less than an eighth of the places is left to connections without an answer. */
static bool do_answers_crowd_out(const struct http_server *server)
{
    size_t without = 0;
    for (enum crowd_line line = LINE_IDLE; line <= LINE_BODY; line++)
        without += server->crowd.lines[line].count;
    return without <= server->setup.connections / 8;
}

/*
 * Connections without an answer cost least to close. While answers crowd them out, an answer that nobody takes goes
 * first, because otherwise newcomers would close each other in the few places that are left. NULL: all are served.
 */
static struct watched *one_to_close(struct http_server *server, const struct watched *newest, double now_ms)
{
    struct watched *chosen = NULL;
    if (do_answers_crowd_out(server))
        chosen = longest_untaken(server, now_ms);
    if (chosen == NULL)
        chosen = longest_without_answer(server, newest, now_ms);
    return chosen != NULL ? chosen : longest_untaken(server, now_ms);
}

static void make_room(struct http_server *server, struct watched *newest)
{
    struct watched *chosen = one_to_close(server, newest, newest->since_ms);
    close_connection(chosen != NULL ? chosen : newest);
}

struct http_server *watch_server(const void *context)
{
    const struct watched *watched = context;
    return watched != NULL ? watched->server : NULL;
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

/* False without memory. */
static bool add_connection(struct http_server *server, struct watched *watched)
{
    pthread_mutex_lock(&server->lock);
    const bool is_added = crowd_add(&server->crowd, watched, LINE_IDLE);
    if (is_added && server->crowd.count == 1)
        pthread_cond_signal(&server->watch_wakes);
    if (is_added && ++server->connections > server->setup.connections)
        make_room(server, watched);
    pthread_mutex_unlock(&server->lock);
    return is_added;
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
    if (request->watched == NULL)
        return;
    count_as_known(request->watched);
    if (request->watched->line != LINE_CLOSING)
        crowd_move(&request->server->crowd, request->watched, LINE_BODY);
}

static void remove_connection(struct http_server *server, struct watched *watched)
{
    pthread_mutex_lock(&server->lock);
    server->connections -= watched->line != LINE_CLOSING;
    crowd_remove(&server->crowd, watched);
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
        atomic_fetch_sub_explicit(&server->places_taken, 1, memory_order_relaxed);
        return;
    }
    atomic_fetch_add_explicit(&metrics->connections, 1, memory_order_relaxed);
    metrics_add(&metrics->connections_begun, 1);
    const int fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    watched = malloc(sizeof *watched);
    if (watched != NULL) {
        *watched = (struct watched){
            .server = server, .fd = fd, .since_ms = clock_now_ms(), .is_new = true, .is_newcomer = true};
        if (!add_connection(server, watched)) {
            free(watched);
            watched = NULL;
        }
    }
    *context = watched;
    if (watched == NULL) {
        shutdown(fd, SHUT_RDWR);
        watch_expect_no_more(server);
    }
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
    find_line(request->watched, request->clock.begun);
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
    find_line(request->watched, request->clock.ended);
    pthread_mutex_unlock(&request->server->lock);
}

void watch_answers(struct request *request)
{
    if (request->watched == NULL)
        return;
    pthread_mutex_lock(&request->server->lock);
    find_line(request->watched, clock_now_ms());
    pthread_mutex_unlock(&request->server->lock);
}

void watch_computes(struct request *request)
{
    request->phase = REQUEST_COMPUTING;
    if (request->watched != NULL)
        find_line(request->watched, request->clock.received);
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

/* Others have the lock, which is held here, for a moment: taken again at once, it would mostly be ours. */
static void let_others_in(struct http_server *server)
{
    pthread_mutex_unlock(&server->lock);
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    pthread_mutex_lock(&server->lock);
}

/* One part of all connections, as large as QUIET_ROUNDS of them are needed for all. */
static void walk(struct http_server *server, double now_ms)
{
    struct watched *watched = NULL;
    for (size_t left = server->crowd.count / QUIET_ROUNDS + 1; left > 0; left--) {
        if (left % SLICE == 0)
            let_others_in(server);
        watched = crowd_next(&server->crowd);
        if (watched != NULL && watched->line != LINE_CLOSING)
            look_after(watched, now_ms);
    }
}

/* All whose requests are at work: each goes to the end of the line. */
static void walk_computing(struct http_server *server, double now_ms)
{
    for (size_t left = server->crowd.lines[LINE_COMPUTING].count; left > 0; left--) {
        if (left % SLICE == 0)
            let_others_in(server);
        struct watched *watched = server->crowd.lines[LINE_COMPUTING].first;
        if (watched == NULL)
            return;
        crowd_move(&server->crowd, watched, LINE_COMPUTING);
        look_after(watched, now_ms);
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
    return pthread_create(&server->watch, NULL, watch_thread, server) == 0;
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
