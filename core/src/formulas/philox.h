/*
 * philox.h: the generator of dropout, of random features and of random blocks. Which elements dropout keeps is a
 * function of (seed, stream, position) alone; the kernels decide it (kernel/dropout.inc.h).
 *
 * Philox4x32-10, a counter-based generator: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3",
 * SC 2011. The key is the seed; the counter is (position / 4, stream); word position % 4 of the block decides. There is
 * no state, so every thread gets the same answer for an element.
 */
#ifndef ATTN_FORMULAS_PHILOX_H
#define ATTN_FORMULAS_PHILOX_H

#include <stddef.h>
#include <stdint.h>

/* Two independent sequences from one seed. */
enum { DROPOUT_ATTENTION = 0, DROPOUT_RESIDUAL = 1 };

/* One block of the generator. */
void attn_philox(uint64_t seed, uint64_t stream, uint64_t counter, uint32_t block[4]);

#endif
