/* routes.h: finds the function that answers a method and a path. */
#ifndef HTTP_ROUTES_H
#define HTTP_ROUTES_H

#include "base/text.h"
#include "http/route.h"

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

#endif
