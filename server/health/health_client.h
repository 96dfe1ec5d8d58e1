/*
 * health_client.h: asks a server that runs already whether it is well, for HEALTHCHECK and scripts: `attnd health`.
 */
#ifndef HEALTH_HEALTH_CLIENT_H
#define HEALTH_HEALTH_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

/* The server to ask, as struct config has it, and what for. */
struct health_question {
    const char *host, *port, *path;
    const char *tls_certificate; /* NULL: plain HTTP; else the file whose certificate an https server must show */
    bool takes_any_certificate;
};

/*
 * GET path from the server that listens on host and port; one that listens on every address is asked on the loopback.
 * True when it answers 200. Else message says what came instead. Takes a few seconds at most.
 */
bool health_ask(const struct health_question *question, char *message, size_t message_size);

#endif
