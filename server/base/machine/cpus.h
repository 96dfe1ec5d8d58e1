/* cpus.h: counts the processors that this process may use. */
#ifndef BASE_MACHINE_CPUS_H
#define BASE_MACHINE_CPUS_H

#include <stddef.h>

/*
 * The processors that the scheduler may run this process on, at most the smallest quota of its control groups (version
 * 1 or 2), rounded up to whole processors. So the result is the share of a container, not the size of the machine. At
 * least 1.
 */
size_t cpus_available(void);

#endif
