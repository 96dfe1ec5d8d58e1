/*
 * refuse.h: refuses a request. A refusal is a value: request->refusal, with the problem and its words. fsm.c writes the
 * reply from it, in one place.
 *
 * Each function returns the problem, so that a check refuses by its last line: return refuse(request, PROBLEM_BODY, …).
 */
#ifndef HTTP_REFUSE_H
#define HTTP_REFUSE_H

#include "http/request.h"

/* The message follows the format. */
enum problem refuse(struct request *request, enum problem problem, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Refuses the method. allow is for the field Allow; below: paths that take the method, or "". */
enum problem refuse_method(struct request *request, const char *allow, const char *below);
/* The queue is full. */
enum problem refuse_busy(struct request *request);
/* The server is about to end. */
enum problem refuse_draining(struct request *request);
/* Memory is lacking, for what the message names. */
enum problem refuse_memory(struct request *request, const char *message);
/*
 * Refuses a page of another origin, or a Host that does not name this server. The log says which setting would allow
 * it.
 */
enum problem refuse_page(struct request *request);
enum problem refuse_host(struct request *request);
/* A service failed, and has filled in request->refusal.error. */
enum problem refuse_call(struct request *request, const struct call *call);

#endif
