/*
 * supervisor.h: reports the state of the process to the service manager (systemd's sd_notify(3), without its library).
 *
 * The protocol is one datagram of text to the socket that NOTIFY_SOCKET names. Without that variable nothing is sent.
 */
#ifndef PROGRAM_SUPERVISOR_H
#define PROGRAM_SUPERVISOR_H

void supervisor_ready(void);
void supervisor_reloading(void); /* supervisor_ready ends it */
void supervisor_stopping(void);
/* Reports that the process is alive, which the manager may require at intervals. */
void supervisor_alive(void);
/* Milliseconds between two such reports: half of the manager's time limit (WATCHDOG_USEC). -1: it requires none. */
int supervisor_alive_every_ms(void);

#endif
