/* authority.h: the "name:port" of Host and Origin, and whether it names this server. */
#ifndef HTTP_WIRE_AUTHORITY_H
#define HTTP_WIRE_AUTHORITY_H

#include "base/text.h"

/*
 * Whether Host is an IP address, localhost, a name below localhost, or one of names. names is a list separated by
 * commas; "" is an empty list. Case, the port and a final dot do not count. In an attack by DNS rebinding, the name of
 * a foreign page points at this server, and Host has that foreign name.
 */
bool authority_is_ours(const char *host, const char *names);
/*
 * Whether Origin has the name and the port of Host. The schemes may differ, because TLS may end in front of the server.
 * A missing port means the default port of Origin's scheme.
 */
bool authority_is_of_origin(const char *host, const char *origin);

#endif
