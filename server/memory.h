/*
 * memory.h: how much memory this process may use, and when it gives it back. Part of the floor: includes no other
 * folder.
 */
#ifndef SERVER_MEMORY_H
#define SERVER_MEMORY_H

#include <stdint.h>

/*
 * Bytes: the machine's memory, or the smallest limit of our control group (version 1 or 2) and of those around it when
 * that is less.
 */
uint64_t memory_available_bytes(void);

/*
 * What the C library does with blocks that were freed, from now on: those of 2 MiB and more go back to the system at
 * once, smaller ones stay for the next request. A page that is new to the process costs more than what is done with it:
 * with every body of 128 KiB and more from the system, requests of 300 KB were a third slower.
 */
void memory_keep_small_blocks(void);

/* Gives the system back what is free. Milliseconds, while other threads wait for memory: for idle moments. */
void memory_return_free_blocks(void);

#endif
