/*
 * signals.h: SIGTERM and SIGINT as something that main can wait for. Part of the floor: includes no other folder.
 */
#ifndef SERVER_SIGNALS_H
#define SERVER_SIGNALS_H

#include <stdbool.h>

/* Once, before any thread starts: from now on the two are noted instead of ending the process. SIGPIPE is ignored: a
 * client that leaves must not be a signal at all. False: the system has no descriptor for it. */
bool signals_take(void);
/* Waits for the next of the two, timeout_s seconds at most (negative: for ever). True when there was one. */
bool signals_wait(int timeout_s);

#endif
