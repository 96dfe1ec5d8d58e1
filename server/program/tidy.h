/* tidy.h: returns memory to the system when the process does not need it. */
#ifndef PROGRAM_TIDY_H
#define PROGRAM_TIDY_H

#include "attn/arena.h"
#include "base/machine/memory.h"
#include "service/metrics.h"

/* All members but growth.bound_bytes start at 0. */
struct tidying {
    struct memory_growth growth;
    uint64_t known_bytes; /* bytes received and sent when the server was last idle */
};

/*
 * Call this at intervals. Returns all free memory when the server has become idle, and the free blocks of the heap when
 * they have grown beyond the bound.
 */
void tidy_memory(struct tidying *tidying, attn_budget *budget, const struct metrics *metrics);

#endif
