/*
 * lifecycle.h: one open connection: its line in the crowd, how long it has been there, and whether it is evicted.
 *
 * A connection knows nothing of requests. fsm.c moves it from line to line with the steps of its request.
 */
#ifndef HTTP_CONNECTIONS_LIFECYCLE_H
#define HTTP_CONNECTIONS_LIFECYCLE_H

#include "http/connections/server.h"

/* An answer stands still when its client takes no bytes for this long. It may then be cut to make room. */
enum { CONNECTION_STILL_MS = 1000 };

struct connection {
    struct crowd_member member; /* the first member, because connection_of_member converts between the two */
    struct http_server *server;
    struct MHD_Connection *mhd;
    int fd;
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

/*
 * Moves the connection to the line of what happens to its request: the first line has arrived (LINE_HEADER), the whole
 * header has (LINE_BODY), it is about to be computed, its answer is about to be sent, it has ended (LINE_IDLE). A
 * connection that was evicted stays in its line. The caller holds the lock of the server.
 */
void connection_enter(struct connection *connection, enum crowd_line line, double now_ms);
/* Evicts the connection: ends it, so that its place is free. The caller holds the lock of the server. */
void connection_evict(struct connection *connection);
/* Evicts the connection that costs least to close, if there is one, so that its descriptor is free. */
void connection_evict_one(struct http_server *server);

#endif
