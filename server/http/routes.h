/*
 * routes.h: method and path to what answers, as one table.
 */
#ifndef HTTP_ROUTES_H
#define HTTP_ROUTES_H

#include "base/text.h"
#include "service/call.h"

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
    bool may_lack_body;                      /* none at all is as good as an empty one */
    bool keeps_body;                         /* its body is kept: as safetensors, under the name in the path */
    bool takes_parameters;                   /* "?name=value", which the service checks */
    bool keeps_to_limits;                    /* the service does nothing that takes time beyond its limits */
    bool has_hints;                          /* its body may say how urgent it is (oip.h) */
    unsigned right;                          /* RIGHT_…; 0: the usual one of its method (route_right) */
    /*
     * Open to the pages of every origin (cors.h): ROUTE_OPEN; or only where this stands for the first "{…}"; NULL: the
     * path is guarded. All routes of a path say the same.
     */
    const char *open;
};

#define ROUTE_OPEN "*"

/* NULL when no route has that path and method; names gets what stands at each "{…}", raw; others stay empty. */
const struct route *route_find(struct text_span path, const char *method, struct text_span names[ROUTE_NAMES_MAX]);
/* Whether the pages of every origin may ask for that path. One that no route has is guarded. */
bool route_is_open(struct text_span path);
/*
 * What a key must be good for: what the table says, else layers for PUT and DELETE, compute for all other work, and
 * nothing for what is answered at once: probes, descriptions and the page are for everybody.
 */
unsigned route_right(const struct route *route);
/* The number of the route for metrics; of NULL, that of all paths there is no route for. */
size_t route_number(const struct route *route);
/* Writes "GET, HEAD, OPTIONS" for the path, or "" when there is no such path. "*" is every path. Returns text. */
const char *route_methods(struct text_span path, char *text, size_t size);
/* Writes the known paths that are most like path, as a list for a message. Returns text. */
const char *route_nearest(struct text_span path, char *text, size_t size);

#endif
