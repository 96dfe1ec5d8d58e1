/* machine.h: the processors, the memory and the descriptors that this process may use. */
#ifndef BASE_MACHINE_H
#define BASE_MACHINE_H

#include <stddef.h>
#include <stdint.h>

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

#endif
