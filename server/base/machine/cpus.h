/*
 * cpus.h: how many processors this process may use.
 */
#ifndef BASE_MACHINE_CPUS_H
#define BASE_MACHINE_CPUS_H

#include <stddef.h>

/*
 * The processors that the scheduler may run us on, and no more than the quota of our control group (version 1 or 2,
 * the tightest on the way up, rounded up to whole processors): what a container was given and not what the machine
 * has. At least 1.
 */
size_t cpus_available(void);

#endif
