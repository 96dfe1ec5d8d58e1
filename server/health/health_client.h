/*
 * health_client.h: `attnd health`: asks a running server whether it is well, for HEALTHCHECK and scripts.
 */
#ifndef HEALTH_HEALTH_CLIENT_H
#define HEALTH_HEALTH_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

/* The server to ask, in the words of its settings, and the path to ask for. */
struct health_question {
    const char *host, *port, *path;
    const char *tls_certificate; /* NULL: plain HTTP; else the file whose certificate an https server must show */
    bool takes_any_certificate;
};

/*
 * Sends GET path to the server that listens on host and port; a server that listens on every address is asked on the
 * loopback. True: it answered 200. False: message says what happened instead. Takes a few seconds at most.
 */
bool health_ask(const struct health_question *question, char *message, size_t message_size);

#endif
