/*
 * http_stage.h: a whole server in the test's own process, with a service of the test's choice behind its POST routes.
 */
#ifndef SUPPORT_HTTP_STAGE_H
#define SUPPORT_HTTP_STAGE_H

#include "http/daemon.h"

struct http_stage {
    struct log log;
    struct http_setup setup;
    size_t compute_threads, queue;
    struct executor *executor;
    struct http_server *server;
    unsigned port;
};

/* Small limits, port 0, no log. Change them before the start. */
struct http_stage http_stage_of(service_function *service);
/* Aborts the test when the server does not start. */
void http_stage_start(struct http_stage *stage);
void http_stage_stop(struct http_stage *stage);

/* Two services: one returns the body; the other does so after http_stage_release was called (a long job). */
service_function http_stage_echo, http_stage_wait;
void http_stage_release(void);
/* Jobs of http_stage_wait that have begun, and others that say so. */
size_t http_stage_begun(void);
void http_stage_note_begun(void);

#endif
