/*
 * routes.h: method and path to what answers, as one table.
 */
#ifndef HTTP_ROUTES_H
#define HTTP_ROUTES_H

#include "service/call.h"
#include "text.h"

struct request;

enum { ROUTE_NAMES_MAX = 2 };

struct route {
    /* "{name}" stands for any one segment; of two routes that fit a path, the first in the table has it. */
    const char *path, *method;               /* GET stands for HEAD too */
    unsigned offers;                         /* media types of the answer, a set of MEDIA_BIT */
    bool is_probe;                           /* answers whatever Accept says */
    void (*answer)(struct request *request); /* makes the reply at once; NULL: a job does */
    service_function *service;               /* of a job */
    unsigned reads;                          /* media types of its body */
    bool takes_parameters;                   /* "?name=value", which the service checks */
    bool keeps_to_limits;                    /* the service does nothing that takes time beyond its limits */
};

/* NULL when no route has that path and method; names gets what stands at each "{…}", raw; others stay empty. */
const struct route *route_find(struct text_span path, const char *method, struct text_span names[ROUTE_NAMES_MAX]);
/* Writes "GET, HEAD, OPTIONS" for the path, or "" when there is no such path. "*" is every path. Returns text. */
const char *route_methods(struct text_span path, char *text, size_t size);
/* Whether the path is one that the contract of this server has, but not this version of it. */
bool route_is_planned(struct text_span path);
/* Writes the known paths that are most like path, as a list for a message. Returns text. */
const char *route_nearest(struct text_span path, char *text, size_t size);

#endif
