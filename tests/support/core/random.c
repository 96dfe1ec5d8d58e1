/*
 * random.c: SplitMix64 (Steele, Lea and Flood, 2014): one addition and a mixing function, every seed as good as
 * another.
 */
#include "random.h"

#include <math.h>

random_source random_seeded(uint64_t seed)
{
    return (random_source){.state = seed};
}

uint64_t random_bits(random_source *source)
{
    source->state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = source->state;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

double random_uniform(random_source *source)
{
    return (double)(random_bits(source) >> 11) * 0x1p-53;
}

/* Box and Muller: 1 - uniform keeps the logarithm away from 0. */
double random_normal(random_source *source)
{
    double radius = sqrt(-2 * log(1 - random_uniform(source)));
    return radius * cos(6.283185307179586 * random_uniform(source));
}

size_t random_below(random_source *source, size_t below)
{
    return (size_t)(random_bits(source) % below);
}
