/*
 * dropout.inc.h: the decisions of dropout (formulas/philox.c), for many blocks of Philox4x32-10 at a time. Part of a
 * kernel.
 */
#ifndef ATTN_KERNEL_DROPOUT_INC_H
#define ATTN_KERNEL_DROPOUT_INC_H

#include "kernel/entries.h"
#include "kernel/vector/operations.inc.h"

/* A 32-bit word of one block per lane. What stands in the upper half of a lane does not matter. */
typedef uint64_t word_vec __attribute__((vector_size(VECTOR_BYTES)));
typedef uint32_t decision_vec __attribute__((vector_size(VECTOR_BYTES / 2)));

#define WORD_LANES     (VECTOR_BYTES / 8)
#define PHILOX_VECTORS 2 /* side by side, which hides the latency of a round */
#define PHILOX_DRAWS   (PHILOX_VECTORS * WORD_LANES * 4)

/* The products of the words, with 64 bits. */
static inline word_vec multiply_words(word_vec a, word_vec b)
{
#if defined(__AVX512F__)
    return (word_vec)_mm512_mul_epu32((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
    return (word_vec)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
    return (word_vec)_mm_mul_epu32((__m128i)a, (__m128i)b);
#elif defined(__aarch64__)
    return (word_vec)vmull_u32(vmovn_u64((uint64x2_t)a), vmovn_u64((uint64x2_t)b));
#else
    return (a & UINT32_MAX) * (b & UINT32_MAX);
#endif
}

/* Blocks counter … counter + WORD_LANES of each vector: x[v][w] has word w. See attn_philox. */
static inline void draw_blocks(uint64_t seed, uint64_t stream, uint64_t counter, word_vec x[PHILOX_VECTORS][4])
{
    static const uint64_t lane[] = {0, 1, 2, 3, 4, 5, 6, 7};
    const word_vec zero = {0}, first = zero + 0xD2511F53u, second = zero + 0xCD9E8D57u;
    word_vec lanes;
    memcpy(&lanes, lane, sizeof lanes);
    uint32_t low = (uint32_t)seed, high = (uint32_t)(seed >> 32);
    for (int v = 0; v < PHILOX_VECTORS; v++) {
        x[v][0] = lanes + (counter + (uint64_t)(v * WORD_LANES));
        x[v][1] = x[v][0] >> 32;
        x[v][2] = zero + stream;
        x[v][3] = zero + (stream >> 32);
    }
    for (int round = 0; round < 10; round++) {
        UNROLLED_FOR (v, PHILOX_VECTORS) {
            const word_vec p0 = multiply_words(x[v][0], first), p1 = multiply_words(x[v][2], second);
            x[v][0] = (p1 >> 32) ^ x[v][1] ^ (zero + low);
            x[v][2] = (p0 >> 32) ^ x[v][3] ^ (zero + high);
            x[v][1] = p1;
            x[v][3] = p0;
        }
        low += 0x9E3779B9u;
        high += 0xBB67AE85u;
    }
}

/* keep[n]: whether draw n of the blocks is at least threshold, which is at most 2^32. */
static inline void decide_blocks(word_vec x[PHILOX_VECTORS][4], uint64_t threshold, uint8_t keep[PHILOX_DRAWS])
{
    UNROLLED_FOR (v, PHILOX_VECTORS) {
        word_vec dropped = {0}; /* a byte per word of a block: the sign of word - threshold */
        UNROLLED_FOR (w, 4) {
            const int shift = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 24 - 8 * w : 8 * w;
            dropped |= ((x[v][w] & UINT32_MAX) - threshold) >> 63 << shift;
        }
        const decision_vec kept = __builtin_convertvector(dropped ^ 0x01010101, decision_vec);
        memcpy(keep + v * WORD_LANES * 4, &kept, sizeof kept);
    }
}

static void dropout_keep(uint64_t seed, uint64_t stream, double p, uint64_t first, size_t count, uint8_t *keep)
{
    const uint64_t threshold = (uint64_t)(p * 4294967296.0); /* at most 2^32, above every word */
    uint8_t drawn[PHILOX_DRAWS];
    for (size_t done = 0, some; done < count; done += some) {
        const size_t skip = (first + done) % 4, left = count - done;
        word_vec x[PHILOX_VECTORS][4];
        draw_blocks(seed, stream, (first + done) / 4, x);
        decide_blocks(x, threshold, drawn);
        some = left < PHILOX_DRAWS - skip ? left : PHILOX_DRAWS - skip;
        memcpy(keep + done, drawn + skip, some);
    }
}

#endif
