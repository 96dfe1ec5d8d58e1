/* health.h: the server's answers about itself, for probes and people: /livez, /readyz, /version and /. */
#ifndef SERVICE_HEALTH_H
#define SERVICE_HEALTH_H

#include "codec/bytes/chunks.h"

/* The libraries and threads of this process. The texts are borrowed and must outlive the server. */
struct health_facts {
    const char *http_library; /* "libmicrohttpd 0.9.75" */
    const char *kernel;
    size_t io_threads, compute_threads;
};

/* Each function appends one JSON object to out. Without memory out->is_ok becomes false. */
void health_write_live(struct chunks *out);
/* Reasons why the server is not ready for new requests, as a set of bits. 0: it is ready. */
enum {
    HEALTH_STARTING = 1,   /* the self-test has not passed yet */
    HEALTH_DRAINING = 2,   /* the process was asked to end */
    HEALTH_QUEUE_FULL = 4, /* one more request would be refused */
    HEALTH_MEMORY = 8,     /* nearly all memory for requests is taken */
    HEALTH_USELESS = 16    /* models or layers were deployed, and none can be used */
};
void health_write_ready(unsigned reasons, struct chunks *out);
void health_write_version(const struct health_facts *facts, struct chunks *out);
/* Writes name, version, and links to the endpoints. */
void health_write_index(struct chunks *out);

#endif
