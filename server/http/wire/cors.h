/*
 * cors.h: what pages of other origins may ask, and which answers they may read (Fetch standard, "CORS protocol"). Never
 * with credentials.
 *
 * The setting is --cors-origin: a list of origins separated by commas, with "*" possibly among them; "": none.
 * "*" opens the open paths of the table of routes to every page; only an origin that the list names reaches the others.
 */
#ifndef HTTP_WIRE_CORS_H
#define HTTP_WIRE_CORS_H

#include <microhttpd.h>
#include <stdbool.h>

/* What a browser says of the page that asks; NULL: it was not sent. */
struct cors_page {
    const char *origin, *fetch_site, *host; /* Origin, Sec-Fetch-Site, Host */
};

/* Whether a guarded path is refused to this page. Programs that are no browser send neither field and pass. */
bool cors_is_foreign(const char *setting, const struct cors_page *page);
/* The value of Access-Control-Allow-Origin, or NULL; origin is what the client sent, or NULL. */
const char *cors_allowed_origin(const char *setting, const char *origin, bool is_open);
/* Whether answers differ by Origin, so that a cache must not hand one page the permission of another. */
bool cors_varies(const char *setting);

/* What the fields of an answer depend on. */
struct cors_answer {
    const char *setting, *origin;
    const char *methods; /* of the path, in the answer to a preflight; else NULL */
    bool is_open;        /* the path, and what was asked of it */
};

/* Adds the fields that every answer has. False without memory. */
bool cors_add_fields(struct MHD_Response *response, const struct cors_answer *answer);

#endif
