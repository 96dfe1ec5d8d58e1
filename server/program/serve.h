/* serve.h: runs a server, from its settings to the signal that ends it. */
#ifndef PROGRAM_SERVE_H
#define PROGRAM_SERVE_H

#include "config/config.h"

/* Serves until SIGTERM or SIGINT. Returns the exit status. When the server cannot start, standard error says why. */
int serve(const struct config *config);

#endif
