/*
 * setup.h: what the HTTP server is started with.
 */
#ifndef HTTP_CONNECTIONS_SETUP_H
#define HTTP_CONNECTIONS_SETUP_H

#include "base/log.h"
#include "service/call.h"
#include "service/executor.h"
#include "service/health.h"
#include "service/keys.h"
#include "service/metrics.h"

/* All pointers are borrowed until http_daemon_stop. */
struct http_setup {
    const char *host, *port; /* host "": every address; port "0": a free one */
    const char *cors_origin; /* a list separated by commas, with "*" possibly among it; "": empty */
    const char *host_names;  /* a list of names that Host may have beside addresses and localhost; "": empty */
    const char *tls_certificate, *tls_key;                     /* paths; NULL: plain http */
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

#endif
