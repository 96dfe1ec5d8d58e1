/* serving.h: the parts of a server's life that serve.c puts in order. */
#ifndef PROGRAM_SERVING_H
#define PROGRAM_SERVING_H

#include "config/settings.h"
#include "http/daemon.h"
#include "service/executor.h"

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
