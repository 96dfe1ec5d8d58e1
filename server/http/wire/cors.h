/*
 * cors.h: decides what pages of other origins may ask, and which answers they may read (Fetch standard, "CORS
 * protocol"). Credentials are never allowed.
 *
 * The setting is --cors-origin: a list of origins separated by commas, in which "*" may stand; "" names none. "*" opens
 * the open paths of the table of routes to every page. Only origins in the list reach the other paths.
 */
#ifndef HTTP_WIRE_CORS_H
#define HTTP_WIRE_CORS_H

#include <microhttpd.h>
#include <stdbool.h>

/* ---- the "name:port" of Host and Origin ---- */

/*
 * Whether Host is an IP address, localhost, a name below localhost, or one of names. names is a list separated by
 * commas; "" is an empty list. Case, the port and a final dot do not count. In an attack by DNS rebinding, the name of
 * a foreign page points at this server, and Host has that foreign name.
 */
bool cors_host_is_ours(const char *host, const char *names);
/*
 * Whether Origin has the name and the port of Host. The schemes may differ, because TLS may end in front of the server.
 * A missing port means the default port of Origin's scheme.
 */
bool cors_host_is_of_origin(const char *host, const char *origin);

/* ---- pages of other origins ---- */

/* What a browser says about the page that asks. NULL: the field is missing. */
struct cors_page {
    const char *origin, *fetch_site, *host; /* Origin, Sec-Fetch-Site, Host */
};

/*
 * Whether this page must not reach a guarded path. Programs that are not browsers send none of these fields, and may.
 */
bool cors_is_foreign(const char *setting, const struct cors_page *page);
/* The value of Access-Control-Allow-Origin, or NULL; origin is what the client sent, or NULL. */
const char *cors_allowed_origin(const char *setting, const char *origin, bool is_open);
/* Whether answers differ by Origin, so that a cache must not serve one page the permission of another. */
bool cors_varies(const char *setting);

/* The facts that decide the CORS fields of an answer. */
struct cors_answer {
    const char *setting, *origin;
    const char *methods; /* the methods of the path, in the answer to a preflight; else NULL */
    bool is_open;        /* the path is open, and the answer tells nothing about kept data */
};

/* Adds the CORS fields of an answer. False without memory. */
bool cors_add_fields(struct MHD_Response *response, const struct cors_answer *answer);

#endif
