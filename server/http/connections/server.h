/* server.h: the state that all requests of one server share. Only http/ accesses its members. */
#ifndef HTTP_CONNECTIONS_SERVER_H
#define HTTP_CONNECTIONS_SERVER_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "http/connections/setup.h"

/*
 * ---- crowd.c ----
 *
 * Keeps every open connection in a line by what its request does. The next connection to evict is the first of
 * a line, and the next ones to check are found without a search. Not safe from several threads: the lock of the server
 * guards the crowd.
 */

/*
 * A connection is idle between requests and before the first; receives a header; receives a body; has its request
 * computed; has its answer sent; or was shut down by us.
 */
enum crowd_line { LINE_IDLE, LINE_HEADER, LINE_BODY, LINE_COMPUTING, LINE_REPLY, LINE_CLOSING, CROWD_LINES };

/* The place of a connection in the crowd. It is a member of the connection. Only crowd.c writes here. */
struct crowd_member {
    enum crowd_line line;
    struct crowd_member *next, *before; /* neighbours in the line */
    size_t place;                       /* index in the array of all */
};

struct crowd {
    struct {
        struct crowd_member *first, *last;
        size_t count;
    } lines[CROWD_LINES];
    struct crowd_member **all;
    size_t count, room, next; /* next: the index at which a walk continues */
};

/* Adds a connection at the end of the line. False without memory. */
bool crowd_add(struct crowd *crowd, struct crowd_member *member, enum crowd_line line);
void crowd_remove(struct crowd *crowd, struct crowd_member *member);
/* Moves a connection to the end of that line, which may be the line it is in. */
void crowd_move(struct crowd *crowd, struct crowd_member *member, enum crowd_line line);
/* The next connection of a walk that goes round all of them. NULL: there is none. */
struct crowd_member *crowd_next(struct crowd *crowd);
/* Frees the memory of an empty crowd. */
void crowd_free(struct crowd *crowd);

/* ---- server.c ---- */

struct route;
struct tls;

struct http_server {
    struct http_setup setup; /* does not change while the server serves */
    struct MHD_Daemon *mhd;
    int listen_fd; /* -1 after it was closed */
    int acceptor_wake;
    pthread_t acceptor;
    struct tls *tls;   /* NULL: plain HTTP */
    bool is_listening; /* only the thread that starts and stops the server uses it */
    char url[160], http_library[64];
    bool is_loopback;           /* only this machine can connect */
    bool checks_host;           /* Host must be a name of this server */
    const struct route *routes; /* the table of routes; counters have its order */
    size_t route_count;
    uint64_t id_seed;
    atomic_uint_fast64_t ids_made;
    atomic_size_t places_taken; /* connections that were handed to the library and that it has not closed yet */
    atomic_bool is_ready;       /* the self-test has passed */
    atomic_bool is_draining;
    atomic_bool is_cancelled; /* running jobs should stop */
    /* When a request was last refused with Retry-After; the same for lack of memory. */
    _Atomic double refused_ms, memory_refused_ms;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    size_t connections;    /* open connections, without those that are being evicted */
    size_t newcomers;      /* accepted connections without a header yet */
    size_t requests;       /* requests whose header was read and that are not complete */
    size_t jobs;           /* jobs that the executor has not finished yet */
    bool is_closed;        /* no job is accepted any more */
    bool is_writing_ahead; /* a job writes a body to a file (write_ahead.c) */
    struct crowd crowd;    /* every connection */
    bool watch_ends;
    pthread_cond_t watch_wakes;
    pthread_t watch; /* the thread; not guarded by the lock */
};

/*
 * acceptor.c. acceptor_listen binds server->listen_fd by the setup and writes url; false: message says why not.
 * acceptor_start accepts connections there, in a thread, and hands them to server->mhd; both must be ready. False when
 * the system has no thread; errno says why. acceptor_stop accepts the connections that are in the backlog now and closes
 * the socket: new connections are refused from here on.
 */
bool acceptor_listen(struct http_server *server, char *message, size_t message_size);
bool acceptor_start(struct http_server *server);
void acceptor_stop(struct http_server *server);

/*
 * watch.c. Starts the thread that checks open connections; false when the system has no thread, and errno says why. The
 * lock of the server must be ready. When the thread is stopped, no connection may be open any more.
 */
bool watch_start(struct http_server *server);
void watch_stop(struct http_server *server);

/*
 * tls.c: the certificate of https, which is read from files and can be read again without a restart. NULL: message says
 * what is wrong with the files, or that this server, or its libmicrohttpd, was built without TLS.
 */
struct tls *tls_create(const char *certificate_path, const char *key_path, char *message, size_t message_size);
/* NULL is allowed. No handshake may be running. */
void tls_destroy(struct tls *tls);
/* Reads the files again, for all later handshakes. False: message says why, and the certificate stays. */
bool tls_reload(struct tls *tls, char *message, size_t message_size);
/*
 * The function for MHD_OPTION_HTTPS_CERT_CALLBACK. It finds the server, and with it the tls, by the connection of the
 * session.
 */
void *tls_callback(void);

/*
 * library.c, all in the thread of the connection. library_says is the logger of the library. library_status returns the
 * status with which a request that ends in error was answered, by the library if we made no reply; 0: it was not.
 * library_left logs and counts a request that the library refused, and never asked us for, when a connection ends.
 */
struct connection;
void library_says(void *cls, const char *format, va_list arguments) __attribute__((format(printf, 2, 0)));
unsigned library_status(struct MHD_Connection *mhd);
void library_left(const struct connection *connection);

/* Returns 64 bits that no other call in this process returns, and most likely no other process. */
uint64_t server_random(struct http_server *server);
/* Counts one more job. The caller holds the lock. False when the server accepts no more jobs. */
bool server_job_in(struct http_server *server);
/* Counts a finished job. The server may end from here on. */
void server_job_out(struct http_server *server);
/* Counts a complete request. The server may end from here on. */
void server_request_out(struct http_server *server);

/*
 * ---- lifecycle.c ----
 *
 * One open connection: its line in the crowd, how long it has been there, and whether it is evicted.
 *
 * A connection knows nothing of requests. fsm.c moves it from line to line with the steps of its request.
 */

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
