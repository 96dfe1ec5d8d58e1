/*
 * route.h: the table of routes (routes.c). A row has method, path, and the facts that are needed before a body is read.
 * Below are the functions that answer from the header alone.
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
    void (*answer)(struct request *request); /* makes the reply, or refuses; NULL: service makes it */
    service_function *service;               /* makes the answer, mostly in a job */
    unsigned reads;                          /* media types of the request's body */
    bool keeps_body;                         /* a body in safetensors is kept under the name in the path */
    bool takes_parameters;                   /* "?name=value", which the service checks */
    bool keeps_to_limits;                    /* the service takes no more time than its limits allow */
    bool has_hints;                          /* the body may state a priority (oip.h) */
    unsigned right;                          /* RIGHT_…; 0: the default of the method (routes_right) */
    /*
     * Whether pages of every origin may use the path (cors.h) with this name in the place of its first "{…}". NULL: none,
     * the path is guarded. All routes of a path have the same value.
     */
    bool (*is_open)(struct text_span name);
};

/* ---- the table, in routes.c ---- */

/* The whole table. */
const struct route *routes_all(size_t *count);
/*
 * Finds the route of a path and method. NULL: there is none. names receives the segments that stand for "{…}", still
 * percent-encoded: the path "/v1/layers/a%20b" gives "a%20b" and "".
 */
const struct route *routes_find(struct text_span path, const char *method, struct text_span names[ROUTE_NAMES_MAX]);
/* Whether pages of every origin may use that path. A path without a route is guarded. */
bool routes_are_open(struct text_span path);
/*
 * The right that an API key needs: the one in the table, else layers for PUT and DELETE, and compute for all other
 * work. Routes that are answered at once need none: probes, descriptions and the page are for everybody.
 */
unsigned routes_right(const struct route *route);
/* Writes "GET, HEAD, OPTIONS" for the path, or "" when there is no such path. "*" is every path. Returns text. */
const char *routes_methods(struct text_span path, char *text, size_t size);
enum { ROUTES_TEXT_MAX = 192 }; /* of the lists below */

/* Writes at most three known paths that are most like path, as a list for a message. Returns text. */
const char *routes_nearest(struct text_span path, char *text, size_t size);
/* Writes at most three paths of the method that go on behind path, as such a list; "" when there is none. Returns text. */
const char *routes_below(struct text_span path, const char *method, char *text, size_t size);

/* ---- answers from the header alone ---- */

/*
 * pages.c: files that are embedded in the program. GET / is the visualizer when Accept prefers HTML, as browsers do; any
 * other client, such as curl and fetch, gets an index in JSON. GET /docs shows /openapi.json and sends requests for its
 * reader. GET /web/{folder}/{file} is what the visualizer fetches when it is wanted, such as the texts of another
 * language, and the module for pages of others. Its folder is the version: of 0.2.0, "0.2.0" never changes, and "0.2" is
 * asked for anew. Answers support If-None-Match.
 */
void pages_answer_root(struct request *request);
void pages_answer_docs(struct request *request);
void pages_answer_file(struct request *request);
void pages_answer_openapi(struct request *request);

/*
 * probes.c: the state of the server: GET /livez, /readyz, /version, /metrics; and /v2, /v2/health/live,
 * /v2/health/ready of the Open Inference Protocol.
 */
void probes_answer_live(struct request *request);
void probes_answer_ready(struct request *request);
void probes_answer_version(struct request *request);
void probes_answer_metrics(struct request *request);
void probes_answer_v2(struct request *request);
void probes_answer_v2_ready(struct request *request);

#endif
