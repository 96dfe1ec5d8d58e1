/*
 * tls.h: TLS for `attnd health`. The client has the server's certificate from a file.
 *
 * The client connects to an address, usually the loopback, so it has no name to compare with the certificate. Instead
 * the server must show the certificate from its settings, and prove that it has the key.
 */
#ifndef HEALTH_TLS_H
#define HEALTH_TLS_H

#include <stdbool.h>
#include <stddef.h>

struct health_tls;

/*
 * Shakes hands over the connected socket fd, which the caller still owns. certificate_path is a PEM file; the server
 * must show its first certificate. NULL accepts any certificate. Returns NULL when the handshake fails, and in a build
 * without GnuTLS; message says why.
 */
struct health_tls *health_tls_open(int fd, const char *certificate_path, unsigned patience_ms, char *message,
                                   size_t message_size);
/* Both return false when some bytes were not sent or not received. */
bool health_tls_send(struct health_tls *tls, const char *bytes, size_t size);
bool health_tls_receive(struct health_tls *tls, char *bytes, size_t size);
/* tls may be NULL. */
void health_tls_close(struct health_tls *tls);

#endif
