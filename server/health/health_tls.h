/*
 * health_tls.h: the TLS of `attnd health`: a connection to a server whose certificate is known from a file.
 *
 * The server is asked at an address, on the loopback as a rule, so that no name could be held against its certificate.
 * Instead the server must show the very certificate that it was configured with, and prove that it has its key.
 */
#ifndef HEALTH_HEALTH_TLS_H
#define HEALTH_HEALTH_TLS_H

#include <stdbool.h>
#include <stddef.h>

struct health_tls;

/*
 * Shakes hands over the connected socket fd, which stays the caller's. certificate_path: a file in PEM, whose first
 * certificate the server must show; NULL takes any. NULL: message says why not, as it does in a build without GnuTLS.
 */
struct health_tls *health_tls_open(int fd, const char *certificate_path, unsigned patience_ms, char *message,
                                   size_t message_size);
/* False: not all of the bytes went out, or came in. */
bool health_tls_send(struct health_tls *tls, const char *bytes, size_t size);
bool health_tls_receive(struct health_tls *tls, char *bytes, size_t size);
/* NULL is fine. */
void health_tls_close(struct health_tls *tls);

#endif
