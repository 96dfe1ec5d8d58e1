/*
 * probe.h: asks a server that runs already whether it is well, for HEALTHCHECK and scripts: `attnd health`.
 */
#ifndef PROBE_H
#define PROBE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * GET path from the server that listens on host and port as struct config has them; one that listens on every address
 * is asked on the loopback. True when it answers 200. Else message says what came instead. Takes a few seconds at most.
 */
bool probe_ask(const char *host, const char *port, const char *path, char *message, size_t message_size);

#endif
