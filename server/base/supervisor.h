/*
 * supervisor.h: tells the service manager what the process is doing (systemd's sd_notify(3), without its library).
 *
 * The protocol is one datagram of text to the socket that NOTIFY_SOCKET names. Without that variable nothing
 * is sent.
 */
#ifndef BASE_SUPERVISOR_H
#define BASE_SUPERVISOR_H

void supervisor_ready(void);
void supervisor_reloading(void); /* supervisor_ready ends it */
void supervisor_stopping(void);
/* A sign of life, which the manager may want at intervals. */
void supervisor_alive(void);
/* Milliseconds between two signs of life: half of what the manager waits (WATCHDOG_USEC); -1: it wants none. */
int supervisor_alive_every_ms(void);

#endif
