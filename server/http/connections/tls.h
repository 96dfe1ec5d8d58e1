/*
 * tls.h: the certificate that https is served with, read from files and read again without a restart.
 *
 * Built without GnuTLS, tls_create refuses; with a libmicrohttpd without TLS, too.
 */
#ifndef HTTP_CONNECTIONS_TLS_H
#define HTTP_CONNECTIONS_TLS_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

struct tls;

/* NULL: message says what is wrong with the files, or that there is no TLS here. */
struct tls *tls_create(const char *certificate_path, const char *key_path, char *message, size_t message_size);
/* NULL is fine. No handshake may be on its way. */
void tls_destroy(struct tls *tls);
/* For handshakes from now on. False: message; all is as before. */
bool tls_reload(struct tls *tls, char *message, size_t message_size);
/* What MHD_OPTION_HTTPS_CERT_CALLBACK wants; the session is asked for its server, whose tls this is. */
void *tls_callback(void);

#endif
