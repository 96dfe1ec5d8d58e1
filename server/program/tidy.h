/*
 * tidy.h: gives memory back to the system that the process keeps and does not need.
 */
#ifndef PROGRAM_TIDY_H
#define PROGRAM_TIDY_H

#include "attn/arena.h"
#include "base/machine/memory.h"
#include "service/metrics.h"

/* Begins as 0, but for growth.bound_bytes. */
struct tidying {
    struct memory_growth growth;
    uint64_t known_bytes; /* received and sent, when the server was idle last */
};

/*
 * To be called every so often. Gives back all free memory when the server has become idle, and the free blocks of the
 * heap when they have grown beyond the bound.
 */
void tidy_memory(struct tidying *tidying, attn_budget *budget, const struct metrics *metrics);

#endif
