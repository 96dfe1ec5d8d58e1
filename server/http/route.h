/*
 * route.h: one row of the table of routes (routes.c): method and path, and what is known of them before a body is read.
 */
#ifndef HTTP_ROUTE_H
#define HTTP_ROUTE_H

#include "service/call.h"

struct request;

enum { ROUTE_NAMES_MAX = 2 };

struct route {
    /* "{name}" stands for any one segment; of two routes that fit a path, the first in the table has it. */
    const char *path, *method;               /* GET stands for HEAD too */
    unsigned offers;                         /* media types of the answer, a set of MEDIA_BIT */
    bool ignores_accept;                     /* answers JSON when Accept allows nothing that is offered */
    void (*answer)(struct request *request); /* makes the reply at once; NULL: a job does */
    service_function *service;               /* of a job */
    unsigned reads;                          /* media types of its body */
    bool may_lack_body;                      /* no body is as good as an empty one */
    bool keeps_body;                         /* the body is kept: as safetensors, under the name in the path */
    bool takes_parameters;                   /* "?name=value", which the service checks */
    bool keeps_to_limits;                    /* the service does nothing that takes time beyond its limits */
    bool has_hints;                          /* the body may say how urgent the request is (oip.h) */
    unsigned right;                          /* RIGHT_…; 0: the usual one of its method (routes_right) */
    /*
     * The path is open to the pages of every origin (cors.h): ROUTE_OPEN; or only where this stands for the first
     * "{…}"; NULL: the path is guarded. All routes of a path say the same.
     */
    const char *open;
};

#define ROUTE_OPEN "*"

#endif
