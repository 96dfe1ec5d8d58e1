/*
 * cpus.h: how many processors this process may use.
 */
#ifndef BASE_MACHINE_CPUS_H
#define BASE_MACHINE_CPUS_H

#include <stddef.h>

/*
 * The processors that the scheduler may run this process on, and no more than the smallest quota of its control groups
 * (version 1 or 2), rounded up to whole processors: what a container was given, not what the machine has. At least 1.
 */
size_t cpus_available(void);

#endif
