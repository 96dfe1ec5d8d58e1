/*
 * cors.h: which pages of other origins may read our answers (Fetch standard, "CORS protocol"). Never with credentials.
 */
#ifndef HTTP_CORS_H
#define HTTP_CORS_H

#include <microhttpd.h>
#include <stdbool.h>

/* The value of Access-Control-Allow-Origin, or NULL. setting is --cors-origin; origin is what the client sent or NULL.
 */
const char *cors_allowed_origin(const char *setting, const char *origin);
/* Whether answers differ by Origin, so that a cache must not hand one page the permission of another. */
bool cors_varies(const char *setting);
/* Adds the fields that every answer has; methods is not NULL in the answer to a preflight. False without memory. */
bool cors_add_fields(struct MHD_Response *response, const char *setting, const char *origin, const char *methods);

#endif
