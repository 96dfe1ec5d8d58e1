/*
 * authority.h: the "name:port" of Host and Origin, and whether it names this server.
 */
#ifndef HTTP_WIRE_AUTHORITY_H
#define HTTP_WIRE_AUTHORITY_H

#include "base/text.h"

/*
 * Whether Host is an IP address, localhost, a name below localhost, or one of names, a list separated by commas
 * ("": an empty list). Case, the port and a final dot do not count. A page whose own name was pointed at this
 * server (DNS rebinding) sends that name.
 */
bool authority_is_ours(const char *host, const char *names);
/*
 * Whether Origin has the name and the port of Host. The schemes may differ, because TLS may end in front of the server;
 * a port that is not written is the usual one of Origin's scheme.
 */
bool authority_is_of_origin(const char *host, const char *origin);

#endif
