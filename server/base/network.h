/* network.h: the addresses of machines as numbers and as texts, and lists of networks. */
#ifndef BASE_NETWORK_H
#define BASE_NETWORK_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "base/text.h"

/* Reads an IPv4 or IPv6 address, with brackets or a port or without: "10.0.0.1:80", "[::1]". IPv4 becomes ::ffff:0:0/96. */
bool network_read_address(struct text_span text, struct in6_addr *address);
/* The address of a socket. False: it has another family. */
bool network_address_of(const struct sockaddr *socket, struct in6_addr *address);
/* Writes "10.0.0.1" or "::1", and returns text. */
const char *network_write_address(const struct in6_addr *address, char text[INET6_ADDRSTRLEN]);

/* Whether text is an address, or a network such as 10.0.0.0/8. */
bool network_is_valid(struct text_span text);
/* Whether one of the networks of the list, which commas separate, has the address. Every element must be valid. */
bool network_list_has(const char *list, const struct in6_addr *address);

#endif
