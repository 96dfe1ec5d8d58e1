/* features.c: how many features a mechanism has, the random projection of performer, and the generator: Philox4x32-10. */
#include "formulas/formulas.h"

#include <math.h>

enum { STREAM_DIRECTIONS = 2, STREAM_LENGTHS = 3 }; /* of the generator: dropout has 0 and 1 */

size_t attn_mechanism_features(const attn_mechanism *mechanism, size_t d_k)
{
    if (mechanism->type == ATTN_LINEAR)
        return d_k;
    if (mechanism->projection != NULL)
        return mechanism->projection->shape[0];
    return mechanism->features == 0 ? ATTN_PERFORMER_FEATURES : mechanism->features;
}

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

/* Independent standard normal numbers, two of each block: Box and Muller, 1958. */
static void draw_normals(uint64_t seed, uint64_t stream, uint64_t first, size_t count, double *to)
{
    static const double TWO_PI = 6.28318530717958647692;
    for (size_t n = 0; n < count; n++) {
        uint32_t word[4];
        attn_philox(seed, stream, (first + n) / 2, word);
        const double u = ((double)word[0] + (double)word[1] * 0x1p32 + 1) * 0x1p-64; /* in (0, 1] */
        const double v = ((double)word[2] + (double)word[3] * 0x1p32) * 0x1p-64;
        const double radius = sqrt(-2 * log(u));
        to[n] = radius * ((first + n) % 2 == 0 ? cos(TWO_PI * v) : sin(TWO_PI * v));
    }
}

static double dot(const double *a, const double *b, size_t count)
{
    double sum = 0;
    for (size_t n = 0; n < count; n++)
        sum += a[n] * b[n];
    return sum;
}

/* Gram and Schmidt: subtracts from row its projections on the rows before it, of length 1 each, and normalises it. */
static void make_orthogonal(const double *before, size_t rows, size_t d, double *row)
{
    for (int pass = 0; pass < 2; pass++) /* the second pass removes the rounding errors of the first */
        for (size_t r = 0; r < rows; r++) {
            const double share = dot(before + r * d, row, d);
            for (size_t f = 0; f < d; f++)
                row[f] -= share * before[r * d + f];
        }
    const double length = sqrt(dot(row, row, d));
    for (size_t f = 0; f < d; f++)
        row[f] = length > 0 ? row[f] / length : 0;
}

void attn_performer_direction(uint64_t seed, size_t r, size_t d_k, double *projection)
{
    double *row = projection + r * d_k;
    draw_normals(seed, STREAM_DIRECTIONS, r * d_k, d_k, row);
    make_orthogonal(projection + r / d_k * d_k * d_k, r % d_k, d_k, row);
}

void attn_performer_lengths(uint64_t seed, size_t features, size_t d_k, double *work, double *projection)
{
    for (size_t r = 0; r < features; r++) {
        draw_normals(seed, STREAM_LENGTHS, r * d_k, d_k, work);
        const double length = sqrt(dot(work, work, d_k));
        for (size_t f = 0; f < d_k; f++)
            projection[r * d_k + f] *= length;
    }
}

void attn_performer_projection(uint64_t seed, size_t features, size_t d_k, double *work, double *projection)
{
    for (size_t r = 0; r < features; r++)
        attn_performer_direction(seed, r, d_k, projection);
    attn_performer_lengths(seed, features, d_k, work, projection);
}

/*
 * Row r of a block is multiplied by the r rows before it, twice. Each product waits for the latency of the previous
 * subtraction, so an element takes as long as some 100 operations of a kernel's tile.
 */
double attn_performer_flops(size_t features, size_t d_k)
{
    const double whole = (double)(features / d_k), rest = (double)(features % d_k), d = (double)d_k;
    const double before = whole * d * (d - 1) / 2 + rest * (rest - 1) / 2;
    return 2 * 100 * before * d + 200 * (double)features * d;
}
