/*
 * commands.h: what attnd does by its command line. Each function returns the exit status of the process, and writes error
 * messages to standard error.
 */
#ifndef PROGRAM_COMMANDS_H
#define PROGRAM_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>

#include "config/settings.h"

/* The exit status of a command line that is wrong. */
enum { EXIT_USAGE = 2 };

/* Makes an API key: prints the key for its owner on standard error, and its line of the file on standard output. */
int command_key(const struct config *config);
/* Requests config->health_path from the server that runs with these settings. */
int command_health(const struct config *config);
/*
 * import.c. Writes every layer of config->checkpoint into config->layers_directory, which is created when it does not
 * exist. It replaces layers of the same names, and reports each on standard output once the layer is written. The
 * checkpoint has config.json and model.safetensors, or the index and the files that it names, as transformers writes
 * them. For an unknown architecture, it writes a mapping to complete into the directory.
 */
int command_import(const struct config *config);
/* serve.c. Serves, from the settings to SIGTERM or SIGINT. */
int serve(const struct config *config);
/* serve.c. Prepares a server as serve does, says which part fails, and serves nobody. */
int check(const struct config *config);

/* ---- asks a running server for its health, for HEALTHCHECK and scripts ---- */

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
