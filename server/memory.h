/*
 * memory.h: how much memory this process may use. Part of the floor: includes no other folder.
 */
#ifndef SERVER_MEMORY_H
#define SERVER_MEMORY_H

#include <stdint.h>

/* Bytes: the machine's memory, or the limit of the control group at the root of our namespace when that is less. */
uint64_t memory_available_bytes(void);

#endif
