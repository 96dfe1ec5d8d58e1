/*
 * tls.h: the certificate of https, which is read from files and can be read again without a restart.
 *
 * tls_create refuses when the server was built without GnuTLS, or when its libmicrohttpd was built without TLS.
 */
#ifndef HTTP_CONNECTIONS_TLS_H
#define HTTP_CONNECTIONS_TLS_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

struct tls;

/* NULL: message says what is wrong with the files, or that this server has no TLS. */
struct tls *tls_create(const char *certificate_path, const char *key_path, char *message, size_t message_size);
/* NULL is allowed. No handshake may be running. */
void tls_destroy(struct tls *tls);
/* Reads the files again, for all later handshakes. False: message says why, and the certificate stays. */
bool tls_reload(struct tls *tls, char *message, size_t message_size);
/*
 * The function for MHD_OPTION_HTTPS_CERT_CALLBACK. It finds the server, and with it the tls, by the connection of the
 * session.
 */
void *tls_callback(void);

#endif
