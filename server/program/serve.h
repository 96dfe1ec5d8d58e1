/*
 * serve.h: the life of a server, from its settings to the signal that ends it.
 */
#ifndef PROGRAM_SERVE_H
#define PROGRAM_SERVE_H

#include "config/config.h"

/* Serves until SIGTERM or SIGINT. Returns the exit status; when it cannot start, it says why on standard error. */
int serve(const struct config *config);

#endif
