/*
 * routes.h: method and path to what answers, as one table.
 */
#ifndef HTTP_ROUTES_H
#define HTTP_ROUTES_H

#include "codec/envelope.h"
#include "text.h"

struct request;

struct route {
    const char *path, *method;               /* GET stands for HEAD too */
    void (*answer)(struct request *request); /* of a GET: makes the reply at once; NULL: the body goes to a job */
    envelope_kind kind;                      /* of a POST */
    bool is_probe;                           /* answers JSON whatever Accept says */
};

/* NULL when no route has that path and method. */
const struct route *route_find(struct text_span path, const char *method);
/* Writes "GET, HEAD, OPTIONS" for the path, or "" when there is no such path. "*" is every path. Returns text. */
const char *route_methods(struct text_span path, char *text, size_t size);
/* Whether the path is one that the contract of this server has, but not this version of it. */
bool route_is_planned(struct text_span path);
/* Writes the known paths that are most like path, as a list for a message. Returns text. */
const char *route_nearest(struct text_span path, char *text, size_t size);

#endif
