/*
 * server.h: what all requests of one server share. Only http/ looks inside.
 */
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
    struct http_setup setup; /* read only while serving */
    struct MHD_Daemon *mhd;
    int listen_fd; /* -1 once it is closed */
    int acceptor_wake;
    pthread_t acceptor;
    struct tls *tls;   /* NULL: plain http */
    bool is_listening; /* only the thread that starts and stops looks at it */
    char url[160], http_library[64];
    bool is_loopback;           /* nobody reaches it from another machine */
    bool checks_host;           /* Host must name this server */
    const struct route *routes; /* the table; requests are counted by its rows */
    size_t route_count;
    uint64_t id_seed;
    atomic_uint_fast64_t ids_made;
    atomic_size_t places_taken; /* by connections, from when they are handed to the library until it has closed them */
    atomic_bool is_ready;       /* the self-test has passed */
    atomic_bool is_draining;
    atomic_bool is_cancelled; /* running jobs should stop */
    /* When a request was last told to come again later; the same for want of memory. */
    _Atomic double refused_ms, memory_refused_ms;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    size_t connections;    /* open, without those that are being closed to make room */
    size_t newcomers;      /* accepted, and no header read yet */
    size_t requests;       /* begun (header read) and not yet completed */
    size_t jobs;           /* handed to the executor and not yet back */
    bool is_closed;        /* no further job is handed over */
    bool is_writing_ahead; /* a body (write_ahead.c) */
    struct crowd crowd;    /* every connection */
    bool watch_ends;
    pthread_cond_t watch_wakes;
    pthread_t watch; /* itself not guarded */
};

/* 64 bits that differ from all others of this process, and most likely from those of other processes. */
uint64_t server_random(struct http_server *server);
/* One more job, with the lock held; false when the server takes no more jobs. */
bool server_job_in(struct http_server *server);
/* A job is back. The server may end from here on. */
void server_job_out(struct http_server *server);
/* A request that was counted is complete. The server may end from here on. */
void server_request_out(struct http_server *server);

#endif
