/* selftest.h: checks that this build computes correctly on this machine, before the server is ready. */
#ifndef SERVICE_RUN_SELFTEST_H
#define SERVICE_RUN_SELFTEST_H

#include "service/executor.h"

/*
 * Sends a known request through the service, from JSON to JSON, and compares the answer with the known one. Then it
 * compares the chosen kernel with the portable one on sizes that are not multiples of a block. Takes some milliseconds.
 * False: message says what is wrong.
 */
bool selftest_run(const struct executor *executor, size_t memory_bytes, char *message, size_t message_size);

#endif
