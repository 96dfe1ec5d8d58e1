/* philox.c: Philox4x32-10, and the decision that it makes for each element. */
#include "formulas/philox.h"

void attn_philox(uint64_t seed, uint64_t stream, uint64_t counter, uint32_t block[4])
{
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t x[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), (uint32_t)stream, (uint32_t)(stream >> 32)};
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)x[0] * 0xD2511F53u, p1 = (uint64_t)x[2] * 0xCD9E8D57u;
        uint32_t y0 = (uint32_t)(p1 >> 32) ^ x[1] ^ key[0], y2 = (uint32_t)(p0 >> 32) ^ x[3] ^ key[1];
        x[1] = (uint32_t)p1;
        x[3] = (uint32_t)p0;
        x[0] = y0;
        x[2] = y2;
        key[0] += 0x9E3779B9u;
        key[1] += 0xBB67AE85u;
    }
    for (int w = 0; w < 4; w++)
        block[w] = x[w];
}

void attn_dropout_keep(uint64_t seed, uint64_t stream, double p, uint64_t first, size_t count, uint8_t *keep)
{
    const uint64_t threshold = (uint64_t)(p * 4294967296.0); /* at most 2^32, above every word */
    uint32_t block[4] = {0};
    for (size_t n = 0; n < count; n++) {
        uint64_t position = first + n;
        if (n == 0 || position % 4 == 0)
            attn_philox(seed, stream, position / 4, block);
        keep[n] = block[position % 4] >= threshold;
    }
}
