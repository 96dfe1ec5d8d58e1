/*
 * server.h: what all requests of one server share; only this folder looks inside.
 */
#ifndef HTTP_SERVER_H
#define HTTP_SERVER_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

#include "http/crowd.h"
#include "http/daemon.h"
#include "http/tls.h"

struct http_server {
    struct http_setup setup; /* read only while serving */
    struct MHD_Daemon *mhd;
    int listen_fd; /* -1 once it is closed */
    int acceptor_wake;
    pthread_t acceptor;
    struct tls *tls;   /* NULL: plain http */
    bool is_listening; /* looked at by the thread that starts and stops only */
    char url[160], http_library[64];
    bool is_loopback;           /* nobody reaches it from another machine */
    bool checks_host;           /* Host must name this server */
    const struct route *routes; /* the table; requests are counted by the row */
    size_t route_count;
    uint64_t id_seed;
    atomic_uint_fast64_t ids_made;
    atomic_size_t places_taken; /* by connections, from when they are handed to the library until it has closed them */
    atomic_bool is_ready;       /* the self-test has passed */
    atomic_bool is_draining;
    atomic_bool is_cancelled; /* running jobs should stop */
    _Atomic double refused_ms,
        memory_refused_ms; /* when a request was last told to come again later; for want of memory */
    pthread_mutex_t lock;  /* guards what follows */
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

#endif
