/* client.h: the address that a request comes from, as the log has it. */
#ifndef HTTP_WIRE_CLIENT_H
#define HTTP_WIRE_CLIENT_H

#include <microhttpd.h>
#include <stdbool.h>

#include "base/network.h"

enum { CLIENT_TEXT = INET6_ADDRSTRLEN };

/*
 * Writes the address of the peer, or, behind proxies of the list trusted, the last hop of X-Forwarded-For that is none of
 * them. False: the library does not know it.
 */
bool client_address(struct MHD_Connection *mhd, const char *trusted, char text[CLIENT_TEXT]);

#endif
