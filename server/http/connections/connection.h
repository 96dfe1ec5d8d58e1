/*
 * connection.h: one open connection: what it is at, since when, and which other one is closed to make room for it.
 *
 * A connection knows nothing of requests, but each phase of a request is a phase of its connection. The thread that
 * serves the request sets the phase without a lock; the connection comes to its line of the crowd a moment later.
 */
#ifndef HTTP_CONNECTIONS_CONNECTION_H
#define HTTP_CONNECTIONS_CONNECTION_H

#include "http/connections/server.h"

enum connection_phase { PHASE_IDLE, PHASE_HEADER, PHASE_BODY, PHASE_DISCARD, PHASE_COMPUTING, PHASE_REPLY };

/* An answer of which the client takes nothing for so long stands still, and may have to make room. */
enum { CONNECTION_STILL_MS = 1000 };

struct connection {
    struct crowd_member member; /* first: connection_of_member */
    struct http_server *server;
    struct MHD_Connection *mhd;
    int fd;
    _Atomic(enum connection_phase) phase;
    atomic_bool is_abandoned; /* the client left while its request was computed: the job may stop */
    double since_ms;          /* accepted, or the end of the last request; this and what follows: with the lock */
    double begun_ms;          /* of the request */
    bool is_new;              /* there was no request yet */
    bool is_newcomer;         /* is counted in server.newcomers */
    double moved_ms;          /* came to its line; in the line of answers: when its client last took something */
    uint64_t taken_bytes;     /* as of then */
};

/* The connection of that place; NULL of NULL. */
static inline struct connection *connection_of_member(struct crowd_member *member)
{
    return (struct connection *)(void *)member;
}

/* What the library tells of connections that come and go. cls is the http_server. */
void connection_notify(void *cls, struct MHD_Connection *mhd, void **context, enum MHD_ConnectionNotificationCode code);
/* NULL when there was no memory for it. */
struct connection *connection_of(struct MHD_Connection *mhd);
/* A connection was accepted, and the library is about to tell of it; or will not tell after all. */
void connection_expect(struct http_server *server);
void connection_expect_no_more(struct http_server *server);

/* The first line of a request has arrived. */
void connection_begins(struct connection *connection, double now_ms);
/* The whole header has. The lock of the server is held. */
void connection_heard(struct connection *connection);
/* The request is about to be computed. The lock of the server is held. */
void connection_computes(struct connection *connection, double now_ms);
/* The answer is about to be sent. */
void connection_replies(struct connection *connection, double now_ms);
/* The request is at its end. */
void connection_ends(struct connection *connection, double now_ms);

/* With the lock of the server held: moves it to the line of its phase. True: it was in another one. */
bool connection_find_line(struct connection *connection, double now_ms);
/* With the lock of the server held: ends it, so that its place is free. */
void connection_evict(struct connection *connection);

#endif
