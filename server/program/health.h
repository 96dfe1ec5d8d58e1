/* health.h: `attnd health`: asks a running server for its health, for HEALTHCHECK and scripts. */
#ifndef PROGRAM_HEALTH_H
#define PROGRAM_HEALTH_H

#include <stdbool.h>
#include <stddef.h>

/* The server to ask, in the form of its settings, and the path to request. */
struct health_question {
    const char *host, *port, *path;
    const char *tls_certificate; /* the file with the certificate that an https server must show; NULL: plain HTTP */
    bool takes_any_certificate;
};

/*
 * Sends GET path to the server at host and port. A server that listens on every address is asked on the loopback. True:
 * it answered 200. False: message says what happened instead. This takes a few seconds at most.
 */
bool health_ask(const struct health_question *question, char *message, size_t message_size);

#endif
