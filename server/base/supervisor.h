/*
 * supervisor.h: tells the service manager that started us how we are (systemd's sd_notify(3), without its library).
 * Part of the floor.
 *
 * The protocol is one datagram of text to the socket that NOTIFY_SOCKET names; without that variable nobody listens and
 * nothing is sent.
 */
#ifndef BASE_SUPERVISOR_H
#define BASE_SUPERVISOR_H

void supervisor_ready(void);
void supervisor_reloading(void); /* supervisor_ready says that it is done */
void supervisor_stopping(void);
/* A sign of life, wanted every so often. */
void supervisor_alive(void);
/* Milliseconds between two signs of life: half of what the manager waits (WATCHDOG_USEC), or -1 when it wants none. */
int supervisor_alive_every_ms(void);

#endif
