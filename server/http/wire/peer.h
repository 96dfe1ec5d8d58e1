/* peer.h: asks the system about the other end of a TCP connection. */
#ifndef HTTP_WIRE_PEER_H
#define HTTP_WIRE_PEER_H

#include <stdbool.h>
#include <stdint.h>

enum peer_presence { PEER_PRESENT, PEER_HALF_CLOSED, PEER_GONE };

struct peer {
    enum peer_presence presence;
    uint64_t taken_bytes; /* the bytes that the peer has acknowledged on this connection */
    bool has_all;         /* the peer has acknowledged all sent bytes */
    bool has_no_room;     /* the peer's window is full, and more bytes wait */
};

/* A client that closed its socket looks like a client that only ended its sending, until it resets the connection. */
struct peer peer_of(int fd);
/*
 * The bytes that the socket took so far, including headers and the overhead of TLS. 0 when the system cannot tell. The
 * library says whether an answer was sent whole, but not how much of a broken answer was sent.
 */
uint64_t peer_written_bytes(int fd);

#endif
