/*
 * selftest.h: whether this build computes rightly on this machine, before anybody relies on it.
 */
#ifndef SERVICE_SELFTEST_H
#define SERVICE_SELFTEST_H

#include "service/executor.h"

/*
 * A known request goes the whole way from JSON to JSON and must give the known answer; and the kernel that was chosen
 * must agree with the portable one on numbers that are neither small nor even. Takes some milliseconds. False: message
 * says what is wrong.
 */
bool selftest_run(const struct executor *executor, size_t memory_bytes, char *message, size_t message_size);

#endif
