/*
 * written.h: how much was ever written to a socket, as the system counts it.
 *
 * The library tells whether an answer was sent whole, but not how much of one that was broken off.
 */
#ifndef HTTP_WIRE_WRITTEN_H
#define HTTP_WIRE_WRITTEN_H

#include <stdint.h>

/* Bytes that a TCP socket took so far, with headers and what TLS adds; 0 when the system does not tell. */
uint64_t written_bytes(int fd);

#endif
