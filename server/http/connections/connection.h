/*
 * connection.h: one open connection: its phase, how long it has been in that phase, and whether it is evicted.
 *
 * A connection knows nothing of requests, but each phase of a request is a phase of its connection. The thread that
 * serves the request sets the phase without a lock. The connection moves to its line of the crowd a moment later.
 */
#ifndef HTTP_CONNECTIONS_CONNECTION_H
#define HTTP_CONNECTIONS_CONNECTION_H

#include "http/connections/server.h"

enum connection_phase { PHASE_IDLE, PHASE_HEADER, PHASE_BODY, PHASE_DISCARD, PHASE_COMPUTING, PHASE_REPLY };

/* An answer stands still when its client takes no bytes for this long. It may then be cut to make room. */
enum { CONNECTION_STILL_MS = 1000 };

struct connection {
    struct crowd_member member; /* the first member, because connection_of_member converts between the two */
    struct http_server *server;
    struct MHD_Connection *mhd;
    int fd;
    _Atomic(enum connection_phase) phase;
    atomic_bool is_abandoned; /* the client left during the computation, so the job may stop */
    double since_ms;          /* accepted, or end of the last request; the lock guards this and what follows */
    double begun_ms;          /* when the request began */
    bool is_new;              /* the connection has had no request yet */
    bool is_newcomer;         /* counted in server.newcomers */
    double moved_ms;          /* when it joined its line; for an answer, when the client last took bytes */
    uint64_t taken_bytes;     /* how many bytes the client had taken at the last look that counted as progress */
};

/* The connection that contains the member. NULL gives NULL. */
static inline struct connection *connection_of_member(struct crowd_member *member)
{
    return (struct connection *)(void *)member;
}

/* The library calls this when a connection begins and when it ends. cls is the http_server. */
void connection_notify(void *cls, struct MHD_Connection *mhd, void **context, enum MHD_ConnectionNotificationCode code);
/* Returns NULL when there was no memory for the connection. */
struct connection *connection_of(struct MHD_Connection *mhd);
/*
 * Counts an accepted connection as a newcomer; connection_notify will be called for it. connection_expect_no_more: it
 * will not be called after all.
 */
void connection_expect(struct http_server *server);
void connection_expect_no_more(struct http_server *server);

/* The first line of a request has arrived. */
void connection_begins(struct connection *connection, double now_ms);
/* The whole header has arrived. The caller holds the lock of the server. */
void connection_heard(struct connection *connection);
/* The request is about to be computed. The caller holds the lock of the server. */
void connection_computes(struct connection *connection, double now_ms);
/* The answer is about to be sent. */
void connection_replies(struct connection *connection, double now_ms);
/* The request has ended. */
void connection_ends(struct connection *connection, double now_ms);

/*
 * Moves the connection to the line of its phase. Returns whether it was in another line. The caller holds the lock of
 * the server.
 */
bool connection_find_line(struct connection *connection, double now_ms);
/* Evicts the connection: ends it, so that its place is free. The caller holds the lock of the server. */
void connection_evict(struct connection *connection);
/* Evicts the connection that costs least to close, if there is one, so that its descriptor is free. */
void connection_evict_one(struct http_server *server);

#endif
