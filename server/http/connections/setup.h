/* setup.h: the settings with which the HTTP server starts. */
#ifndef HTTP_CONNECTIONS_SETUP_H
#define HTTP_CONNECTIONS_SETUP_H

#include "base/log.h"
#include "service/call.h"
#include "service/endpoints.h"
#include "service/executor.h"
#include "service/keys.h"
#include "service/metrics.h"

/* The pointers must stay valid until http_daemon_stop. */
struct http_setup {
    const char *host, *port;               /* host "": every address; port "0": a free one */
    int passed_socket;                     /* a socket that listens already, in place of host and port; 0: none */
    const char *cors_origin;               /* a list separated by commas, which may contain "*"; "": empty */
    const char *host_names;                /* names that Host may have, beside addresses and localhost; "": empty */
    const char *trusted_proxies;           /* networks whose X-Forwarded-For counts; "": none */
    const char *tls_certificate, *tls_key; /* paths; NULL: plain http */
    unsigned io_threads, connections, connections_per_address; /* connections_per_address 0: no limit per address */
    /*
     * Each limit is in seconds. They apply between requests; to a header; to header and body; to a request and its
     * answer.
     */
    unsigned idle_timeout_s, header_timeout_s, receive_timeout_s, request_timeout_s;
    unsigned deadline_s;        /* from the end of a body to its answer */
    attn_budget *budget;        /* shared by all requests */
    attn_budget *models_budget; /* shared by all models */
    size_t budget_bytes;        /* the limit of budget */
    struct keys *keys;          /* NULL: no client needs a key */
    bool is_open;               /* listens beyond the loopback even without keys */
    struct metrics *metrics;
    bool cancels_on_half_close; /* a client that closed its sending half counts as gone */
    size_t max_body_bytes;      /* less than limits.memory_bytes */
    struct call_limits limits;  /* memory_bytes is the limit of a request's arena */
    service_function *instead;  /* tests replace every service by this one; else NULL */
    struct executor *executor;
    const struct font_set *fonts;
    double started_s; /* when the process began, in seconds since 1970 */
    struct layer_keeper *layers;
    struct models *models;
    struct cache_store *caches;
    const struct log *log;
    struct health_facts facts; /* the server fills in http_library */
};

#endif
