/*
 * signals.h: SIGTERM, SIGINT and SIGHUP as something that main can wait for. Part of the floor: includes no other
 * folder.
 */
#ifndef BASE_SIGNALS_H
#define BASE_SIGNALS_H

#include <stdbool.h>

/* What was asked for: nothing yet, to read keys, certificates and log file anew (SIGHUP), to end (the other two). */
typedef enum { SIGNAL_NONE, SIGNAL_RELOAD, SIGNAL_STOP } signal_wish;

/* Once, before any thread starts: from now on the three are noted instead of ending the process. SIGPIPE is ignored: a
 * client that leaves must not be a signal at all. False: the system has no descriptor for it. */
bool signals_take(void);
/* Waits for the next of the three, timeout_ms at most (negative: for ever). To end comes before to reload. */
signal_wish signals_wait(int timeout_ms);

/*
 * From now on last_words(context) is called before the process dies of a fault of its own (SIGABRT, SIGSEGV, SIGBUS,
 * SIGFPE, SIGILL), in the thread that has it; it may call only what handlers may. A signal that somebody else handles
 * already is left to them. Before any thread starts, and once more with NULL when there is nothing left to say.
 */
void signals_before_death(void (*last_words)(void *context), void *context);

#endif
