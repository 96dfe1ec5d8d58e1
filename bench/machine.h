/* machine.h: what this machine can do at best: multiply-adds a second, and bytes read a second from a given size. */
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

#include "attn/tensor.h"

/*
 * GFLOP/s (a multiply-add is two) of independent multiply-adds in registers, by the vectors of that name, or the best
 * that the CPU has if the name is empty. 0: the CPU has no such vectors.
 */
double machine_peak_gflops(attn_dtype dtype, size_t threads, const char *vectors);

/*
 * GB/s at which threads together read a buffer of so many bytes over and over: of a cache while it fits one, of the
 * memory beyond. 0 without memory for it.
 */
double machine_read_gbs(size_t bytes, size_t threads);

/* The best vectors that the CPU has: "avx512". */
const char *machine_vectors(void);

#endif
