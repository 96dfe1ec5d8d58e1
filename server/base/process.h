/* process.h: this process: its share of the machine, its signals, and its last words. */
#ifndef BASE_PROCESS_H
#define BASE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"

/* ---- machine.c: the processors, the memory and the descriptors that this process may use ---- */

/*
 * The processors that the scheduler may run this process on, at most the smallest quota of its control groups (version
 * 1 or 2), rounded up to whole processors. So the result is the share of a container, not the size of the machine. At
 * least 1.
 */
size_t machine_processors(void);
/* The least of the machine's memory and the limits of this process's control groups (version 1 or 2), in bytes. */
uint64_t machine_memory_bytes(void);
/* The descriptors that this process has open, and may have open. 0: the system does not tell. */
uint64_t machine_open_descriptors(void);
uint64_t machine_most_descriptors(void);

/* ---- signals.c: SIGTERM, SIGINT and SIGHUP as events that a thread can wait for ---- */

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

/*
 * ---- crash.c ----
 *
 * The last line of the log of a process that dies of a fault: the signal, and the request that the thread with
 * the fault was working on.
 *
 *     2026-01-31T12:00:00.000Z error crash signal=SIGSEGV id=5f… path=/v1/attention
 */

/*
 * From now on, a fault (SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL) writes its line to that log, after the lines that were
 * put before. Then the action that the signal had before, such as a sanitizer's report, follows. A SIGBUS in a mapped
 * file (mapping.h) is no fault: the thread goes on, and reads zeros. log must live until it is replaced by NULL. Call
 * this before any thread starts, and with NULL at the end.
 */
void crash_report_to(const struct log *log);

/*
 * The calling thread begins to work on a request. Its id and its path, without the query, are copied. The first call in
 * a thread gives it a stack for faults, so that an overflow of its own stack gets a line, too.
 */
void crash_request_begins(const char *id, const char *path);
void crash_request_ends(void);

#endif
