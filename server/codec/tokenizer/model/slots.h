/*
 * slots.h: the slots of hash tables with open addressing. Their number is no power of two, because a table must not take
 * twice the memory for one more entry.
 */
#ifndef CODEC_TOKENIZER_MODEL_SLOTS_H
#define CODEC_TOKENIZER_MODEL_SLOTS_H

#include <stddef.h>
#include <stdint.h>

/* Of three slots, one stays empty. */
static inline size_t slots_for(size_t entries)
{
    enum { LEAST = 64 };
    return entries + entries / 2 + LEAST;
}

static inline uint32_t slots_hash(uint64_t key)
{
    return (uint32_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 32);
}

/* The slot where an entry of that hash is looked for first. */
static inline uint32_t slots_first(uint32_t hash, uint32_t slots)
{
    return (uint32_t)((uint64_t)hash * slots >> 32);
}

static inline uint32_t slots_next(uint32_t slot, uint32_t slots)
{
    return slot + 1 < slots ? slot + 1 : 0;
}

#endif
