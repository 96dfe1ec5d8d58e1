/*
 * daemon.h: the HTTP server: start, drain, stop.
 *
 * I/O threads receive and send; every POST becomes a job of the executor while its connection is suspended.
 */
#ifndef HTTP_DAEMON_H
#define HTTP_DAEMON_H

#include "base/log.h"
#include "service/call.h"
#include "service/executor.h"
#include "service/health.h"
#include "service/keys.h"
#include "service/metrics.h"

struct http_server;

/* All pointers are borrowed until http_daemon_stop. */
struct http_setup {
    const char *host, *port; /* host "": every address; port "0": a free one */
    const char *cors_origin; /* "*", "none", or a list separated by commas, with "*" possibly among it */
    const char *host_names;  /* "none", or a list: names that Host may have beside addresses and localhost */
    const char *tls_certificate, *tls_key;                     /* paths; "": plain http */
    unsigned io_threads, connections, connections_per_address; /* the last: 0 = no limit of its own */
    /* In seconds, in all: between requests; of a header; of header and body; of a request until its answer is sent. */
    unsigned idle_timeout_s, header_timeout_s, receive_timeout_s, request_timeout_s;
    unsigned deadline_s; /* from the end of a body to its answer */
    attn_budget *budget; /* of all requests together */
    size_t budget_bytes; /* its limit */
    struct keys *keys;   /* NULL: anybody may ask */
    bool is_open;        /* without keys, listen beyond the loopback nevertheless */
    struct metrics *metrics;
    bool cancels_on_half_close; /* a client that closed its sending half is taken for gone */
    size_t max_body_bytes;      /* below limits.memory_bytes */
    struct call_limits limits;  /* memory_bytes is the ceiling of a request's arena */
    service_function *instead;  /* what a test puts in the place of every service; else NULL */
    struct executor *executor;
    const struct font_set *fonts;
    struct layer_keeper *layers;
    struct cache_store *caches;
    const struct log *log;
    struct health_facts facts; /* http_library is filled in by the server */
};

/* Serves once this returns. NULL: message says what the system refused. */
struct http_server *http_daemon_start(const struct http_setup *setup, char *message, size_t message_size);
/* "http://127.0.0.1:8080", with the port that was taken. Lives as long as the server. */
const char *http_daemon_url(const struct http_server *server);
/* Whether other machines reach it, and no key is asked for. */
bool http_daemon_is_open_to_all(const struct http_server *server);

/* From now on /readyz says 200: the self-test has passed. */
void http_daemon_set_ready(struct http_server *server);
/* Reads the certificate again, if there is one. False: message; it goes on with the old one. */
bool http_daemon_reload(struct http_server *server, char *message, size_t message_size);
/* From now on /readyz says 503 and every answer closes its connection; new connections are still served. */
void http_daemon_begin_drain(struct http_server *server);
/* New connections are refused from now on; those that are there go on. */
void http_daemon_stop_listening(struct http_server *server);
/* Waits until no request is on its way, at most so long; false when some still are. */
bool http_daemon_await_idle(struct http_server *server, unsigned timeout_s);
/*
 * Ends the server from any state: jobs are asked to stop, every suspended connection is resumed, everything is given
 * back. The executor must still be running. NULL is fine.
 */
void http_daemon_stop(struct http_server *server);

#endif
