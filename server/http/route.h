/*
 * route.h: one row of the table of routes (routes.c): method, path, and the facts that are needed before a body is
 * read.
 */
#ifndef HTTP_ROUTE_H
#define HTTP_ROUTE_H

#include "service/call.h"

struct request;

enum { ROUTE_NAMES_MAX = 2 };

struct route {
    /* "{name}" stands for any one segment. When two routes fit a path, the first in the table is used. */
    const char *path, *method;               /* GET includes HEAD */
    unsigned offers;                         /* media types of the answer, a set of MEDIA_BIT */
    bool ignores_accept;                     /* answers JSON when Accept allows nothing that is offered */
    void (*answer)(struct request *request); /* makes the reply at once; NULL: service makes it, in a job */
    service_function *service;               /* makes the answer in a job */
    unsigned reads;                          /* media types of the request's body */
    bool keeps_body;                         /* a body in safetensors is kept under the name in the path */
    bool takes_parameters;                   /* "?name=value", which the service checks */
    bool keeps_to_limits;                    /* the service takes no more time than its limits allow */
    bool has_hints;                          /* the body may state a priority (oip.h) */
    unsigned right;                          /* RIGHT_…; 0: the default of the method (routes_right) */
    /*
     * The paths that pages of every origin may use (cors.h). ROUTE_OPEN: this path. A name: those paths in which the
     * name stands for the first "{…}". NULL: none, the path is guarded. All routes of a path have the same value.
     */
    const char *open;
};

#define ROUTE_OPEN "*"

#endif
