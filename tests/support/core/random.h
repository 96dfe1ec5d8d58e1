/*
 * random.h: seeded random numbers for tests: the same seed gives the same test on every machine.
 */
#ifndef TESTS_RANDOM_H
#define TESTS_RANDOM_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t state;
} random_source;

random_source random_seeded(uint64_t seed);
uint64_t random_bits(random_source *source);
/* In [0, 1). */
double random_uniform(random_source *source);
/* Mean 0, variance 1. */
double random_normal(random_source *source);
/* In [0, below), below > 0. */
size_t random_below(random_source *source, size_t below);

#endif
