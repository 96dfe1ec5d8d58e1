/*
 * commands.h: what attnd does by its command line. Each function returns the exit status of the process, and writes error
 * messages to standard error.
 */
#ifndef PROGRAM_COMMANDS_H
#define PROGRAM_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>

#include "config/settings.h"
#include "service/executor.h"

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

/* ---- selftest.c: whether this build computes correctly on this machine, before the server is ready ---- */

/*
 * Sends a known request through the service, from JSON to JSON, and compares the answer with the known one. Then it
 * compares the chosen kernel with the portable one on sizes that are not multiples of a block. Takes some milliseconds.
 * False: message says what is wrong.
 */
bool selftest_run(const struct executor *executor, size_t memory_bytes, char *message, size_t message_size);

/* ---- supervisor.c ---- */

/*
 * The socket that the service manager listens on and has passed to this process (systemd's sd_listen_fds(3), without its
 * library). The manager keeps it open while this process ends and the next one starts, so clients wait and are not
 * refused. *fd is 0 when there is none. False: message says what is wrong with it.
 */
bool supervisor_socket(int *fd, char *message, size_t message_size);

/*
 * Reports the state of the process to the service manager (systemd's sd_notify(3), without its library).
 *
 * The protocol is one datagram of text to the socket that NOTIFY_SOCKET names. Without that variable nothing is sent.
 */
void supervisor_ready(void);
void supervisor_reloading(void); /* supervisor_ready ends it */
void supervisor_stopping(void);
/* Reports that the process is alive, which the manager may require at intervals. */
void supervisor_alive(void);
/* Milliseconds between two such reports: half of the manager's time limit (WATCHDOG_USEC). -1: it requires none. */
int supervisor_alive_every_ms(void);

#endif
