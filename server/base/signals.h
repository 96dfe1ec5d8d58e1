/* signals.h: SIGTERM, SIGINT and SIGHUP as events that a thread can wait for. */
#ifndef BASE_SIGNALS_H
#define BASE_SIGNALS_H

#include <stdbool.h>

/* SIGHUP asks to read keys and certificates and to open the log file again; the other two ask to end. */
typedef enum { SIGNAL_NONE, SIGNAL_RELOAD, SIGNAL_STOP } signal_wish;

/*
 * Call once, before any thread starts: the three signals become events instead of ending the process. SIGPIPE is
 * ignored, because a client that leaves must not end the process. False: errno says why.
 */
bool signals_take(void);
/*
 * Waits for the next of the three signals, at most timeout_ms (negative: no limit). SIGNAL_STOP has priority over
 * SIGNAL_RELOAD.
 */
signal_wish signals_wait(int timeout_ms);
/* Whether a SIGNAL_STOP waits to be taken. Any thread may ask. */
bool signals_ask_to_stop(void);

#endif
