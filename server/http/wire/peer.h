/*
 * peer.h: what the system knows of the other end of a TCP connection.
 */
#ifndef HTTP_WIRE_PEER_H
#define HTTP_WIRE_PEER_H

#include <stdbool.h>
#include <stdint.h>

enum peer_presence { PEER_PRESENT, PEER_HALF_CLOSED, PEER_GONE };

struct peer {
    enum peer_presence presence;
    uint64_t taken_bytes; /* acknowledged, of all that was sent on this connection */
    bool has_all;         /* the peer has acknowledged all that was sent */
    bool has_no_room;     /* the peer has acknowledged all that its window lets through, and there is more */
};

/* A client that closed its socket looks like a client that only ended its sending, until it resets the connection. */
struct peer peer_of(int fd);
/*
 * The bytes that the socket took so far, with headers and what TLS adds; 0 when the system does not tell. The library
 * tells whether an answer was sent whole, but not how much of an answer that was broken off.
 */
uint64_t peer_written_bytes(int fd);

#endif
