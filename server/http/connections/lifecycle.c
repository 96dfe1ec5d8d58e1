/* lifecycle.c: follows one open connection from line to line, and evicts connections to make room. */
#include "http/connections/server.h"

#include <stdlib.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "http/wire/wire.h"

/* ---- room for new connections ------------------------------------------------------------------------------------ */

void connection_evict(struct connection *connection)
{
    struct http_server *server = connection->server;
    crowd_move(&server->crowd, &connection->member, LINE_CLOSING);
    server->connections--;
    shutdown(connection->fd, SHUT_RDWR);
    metrics_add(&server->setup.metrics->connections_evicted, 1);
}

static struct connection *first_of(const struct http_server *server, enum crowd_line line)
{
    return connection_of_member(server->crowd.lines[line].first);
}

/*
 * The answer of which the client has taken nothing for the longest time, if that client has no room for more. NULL:
 * none.
 */
static struct connection *longest_untaken(const struct http_server *server, double now_ms)
{
    enum { LOOKS = 32 };
    struct connection *connection = first_of(server, LINE_REPLY);
    for (int i = 0; i < LOOKS && connection != NULL; i++) {
        if (now_ms - connection->moved_ms >= CONNECTION_STILL_MS || peer_of(connection->fd).has_no_room)
            return connection;
        connection = connection_of_member(connection->member.next);
    }
    return NULL;
}

/*
 * The connection that has been idle for the longest time, else the one longest in its header, else in its body. NULL:
 * none.
 */
static struct connection *longest_without_answer(const struct http_server *server, const struct connection *newest)
{
    for (enum crowd_line line = LINE_IDLE; line <= LINE_BODY; line++) {
        struct connection *first = first_of(server, line);
        if (first != NULL && first != newest)
            return first;
    }
    return NULL;
}

/*
 * Whether at most an eighth of the places is left to connections without a request, and answers are more than these.
 * Requests that are being computed fill places, too, and evicting an answer would not help against them.
 */
static bool do_answers_crowd_out(const struct http_server *server)
{
    size_t without = 0;
    for (enum crowd_line line = LINE_IDLE; line <= LINE_BODY; line++)
        without += server->crowd.lines[line].count;
    return without <= server->setup.connections / 8 && without < server->crowd.lines[LINE_REPLY].count;
}

/*
 * Chooses the connection to evict. A connection without an answer costs least to close. But while answers crowd those
 * out, an answer that its client does not take is evicted first, because otherwise newcomers would evict each other in
 * the few places that are left. newest may be NULL. NULL: every connection is being served.
 */
static struct connection *one_to_evict(const struct http_server *server, const struct connection *newest, double now_ms)
{
    struct connection *chosen = NULL;
    if (do_answers_crowd_out(server))
        chosen = longest_untaken(server, now_ms);
    if (chosen == NULL)
        chosen = longest_without_answer(server, newest);
    return chosen != NULL ? chosen : longest_untaken(server, now_ms);
}

void connection_evict_one(struct http_server *server)
{
    pthread_mutex_lock(&server->lock);
    struct connection *chosen = one_to_evict(server, NULL, clock_now_ms());
    if (chosen != NULL)
        connection_evict(chosen);
    pthread_mutex_unlock(&server->lock);
}

static void make_room(struct connection *newest)
{
    struct connection *chosen = one_to_evict(newest->server, newest, newest->since_ms);
    connection_evict(chosen != NULL ? chosen : newest);
}

/* ---- begin and end of connections -------------------------------------------------------------------------------- */

/* Returns false without memory. */
static bool join_crowd(struct connection *connection)
{
    struct http_server *server = connection->server;
    pthread_mutex_lock(&server->lock);
    const bool is_added = crowd_add(&server->crowd, &connection->member, LINE_IDLE);
    if (is_added && server->crowd.count == 1)
        pthread_cond_signal(&server->watch_wakes);
    if (is_added && ++server->connections > server->setup.connections)
        make_room(connection);
    pthread_mutex_unlock(&server->lock);
    return is_added;
}

/* Returns NULL without memory. */
static struct connection *connection_create(struct http_server *server, struct MHD_Connection *mhd, int fd)
{
    struct connection *connection = malloc(sizeof *connection);
    if (connection == NULL)
        return NULL;
    *connection = (struct connection){
        .server = server, .mhd = mhd, .fd = fd, .since_ms = clock_now_ms(), .is_new = true, .is_newcomer = true};
    if (join_crowd(connection))
        return connection;
    free(connection);
    return NULL;
}

void connection_expect(struct http_server *server)
{
    pthread_mutex_lock(&server->lock);
    server->newcomers++;
    pthread_mutex_unlock(&server->lock);
}

void connection_expect_no_more(struct http_server *server)
{
    pthread_mutex_lock(&server->lock);
    server->newcomers--;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
}

static void count_as_known(struct connection *connection)
{
    if (!connection->is_newcomer)
        return;
    connection->is_newcomer = false;
    connection->server->newcomers--;
    pthread_cond_broadcast(&connection->server->changed);
}

static void connection_destroy(struct connection *connection)
{
    struct http_server *server = connection->server;
    pthread_mutex_lock(&server->lock);
    server->connections -= connection->member.line != LINE_CLOSING;
    crowd_remove(&server->crowd, &connection->member);
    count_as_known(connection);
    pthread_mutex_unlock(&server->lock);
    free(connection);
}

static void *greet(struct http_server *server, struct MHD_Connection *mhd)
{
    struct metrics *metrics = server->setup.metrics;
    const int fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    atomic_fetch_add_explicit(&metrics->connections, 1, memory_order_relaxed);
    metrics_add(&metrics->connections_begun, 1);
    struct connection *connection = connection_create(server, mhd, fd);
    if (connection == NULL) {
        shutdown(fd, SHUT_RDWR);
        connection_expect_no_more(server);
    }
    return connection;
}

void connection_notify(void *cls, struct MHD_Connection *mhd, void **context, enum MHD_ConnectionNotificationCode code)
{
    struct http_server *server = cls;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        *context = greet(server, mhd);
        return;
    }
    atomic_fetch_sub_explicit(&server->setup.metrics->connections, 1, memory_order_relaxed);
    if (*context != NULL) {
        library_left(*context);
        connection_destroy(*context);
    }
    *context = NULL;
    atomic_fetch_sub_explicit(&server->places_taken, 1, memory_order_relaxed);
}

struct connection *connection_of(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info != NULL ? info->socket_context : NULL;
}

/* ---- from line to line ------------------------------------------------------------------------------------------- */

void connection_enter(struct connection *connection, enum crowd_line line, double now_ms)
{
    switch (line) {
    case LINE_HEADER:
        connection->is_abandoned = false;
        connection->begun_ms = now_ms;
        break;
    case LINE_BODY:
        count_as_known(connection);
        break;
    case LINE_IDLE:
        connection->is_new = false;
        connection->since_ms = now_ms;
        break;
    case LINE_COMPUTING:
    case LINE_REPLY:
    case LINE_CLOSING:
    case CROWD_LINES:
        break;
    }
    if (connection->member.line == line || connection->member.line == LINE_CLOSING)
        return;
    crowd_move(&connection->server->crowd, &connection->member, line);
    connection->moved_ms = now_ms;
}
