/*
 * crash.h: the last line of the log of a process that dies of a fault: the signal, and the request that the thread with
 * the fault was working on.
 *
 *     2026-01-31T12:00:00.000Z error crash signal=SIGSEGV id=5f… path=/v1/attention
 */
#ifndef BASE_CRASH_H
#define BASE_CRASH_H

#include "base/log.h"

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
