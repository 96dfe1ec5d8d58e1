/* signals.h: SIGTERM, SIGINT and SIGHUP as events that a thread can wait for, and faults. */
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

/*
 * Registers last_words(context, number), to be called before the process dies of a fault (SIGABRT, SIGSEGV, SIGBUS,
 * SIGFPE, SIGILL), in the thread with the fault, on its alternate stack if it has one. last_words may call only what a
 * signal handler may call. Then the action that the signal had before, such as a sanitizer's report, follows. A SIGBUS
 * in a mapped file (mapping.h) is no fault: the thread goes on, and reads zeros. Call this before any thread starts, and
 * again with NULL at the end.
 */
void signals_before_death(void (*last_words)(void *context, int number), void *context);
/* "SIGSEGV"; number is that of a fault. */
const char *signals_name(int number);

#endif
