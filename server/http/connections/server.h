/* server.h: the state that all requests of one server share. Only http/ accesses its members. */
#ifndef HTTP_CONNECTIONS_SERVER_H
#define HTTP_CONNECTIONS_SERVER_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

#include "http/connections/crowd.h"
#include "http/connections/setup.h"

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

/* Returns 64 bits that no other call in this process returns, and most likely no other process. */
uint64_t server_random(struct http_server *server);
/* Counts one more job. The caller holds the lock. False when the server accepts no more jobs. */
bool server_job_in(struct http_server *server);
/* Counts a finished job. The server may end from here on. */
void server_job_out(struct http_server *server);
/* Counts a complete request. The server may end from here on. */
void server_request_out(struct http_server *server);

#endif
