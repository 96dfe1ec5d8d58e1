/*
 * naive_masks.c: masks and biases as their papers define them, one pair of a query and a key at a time. Positions are
 * doubles: they do not overflow, and are exact as long as they decide anything.
 */
#include "naive_masks.h"

#include <math.h>
#include <stdlib.h>

#include "formulas/formulas.h"
#include "naive_attention.h"

/* ---- masks ---- */

double naive_offset(const attn_masks *masks, size_t q_len, size_t kv_len, size_t b)
{
    bool from_zero = masks->align == ATTN_ALIGN_TOP_LEFT || (masks->offset != NULL && !masks->align_given);
    double base = from_zero ? 0 : (double)kv_len - (double)q_len;
    return masks->offset != NULL ? base + naive_read(masks->offset, 0, 0, 0, b) : base;
}

static bool window_allows(const attn_masks *masks, double position, double key)
{
    if (masks->window_left != ATTN_WINDOW_OPEN && key < position - (double)masks->window_left)
        return false;
    return masks->window_right == ATTN_WINDOW_OPEN || key <= position + (double)masks->window_right;
}

static bool is_global_token(const attn_blocks *blocks, double position)
{
    const attn_tensor *tokens = blocks->global_tokens;
    for (size_t n = 0; tokens != NULL && n < tokens->shape[0]; n++)
        if (naive_read(tokens, 0, 0, 0, n) == position)
            return true;
    return false;
}

static bool is_edge(const attn_blocks *blocks, double block, double all)
{
    double edge = (double)blocks->global_blocks;
    return block >= 0 && block < all && (block < edge || block >= all - edge);
}

/* The draws of bigbird: blocks that are neither near nor at an edge, in order; a sample of them by Floyd's algorithm.
 */
static bool is_drawn(const attn_blocks *blocks, size_t h, double query_block, double key_block, size_t all)
{
    size_t *left = calloc(all + 1, sizeof *left), *drawn = calloc(all + 1, sizeof *drawn), count = 0, found = 0;
    for (size_t n = 0; n < all; n++)
        if (fabs((double)n - query_block) > (double)blocks->window && !is_edge(blocks, (double)n, (double)all))
            left[count++] = n;
    size_t draws = blocks->random_blocks < count ? blocks->random_blocks : count;
    for (size_t t = count - draws, n = 0; t < count; t++, n++) {
        uint32_t word[4];
        attn_philox(blocks->seed, h, 256 * (uint64_t)(int64_t)query_block + n, word);
        size_t index = (size_t)(word[0] * ((uint64_t)t + 1) >> 32);
        for (size_t before = 0; before < n; before++)
            if (drawn[before] == index)
                index = t;
        drawn[n] = index;
        found += (double)left[drawn[n]] == key_block;
    }
    free(left);
    free(drawn);
    return found > 0;
}

static bool blocks_allow(const attn_masks *masks, double position, size_t kv_len, size_t b, size_t h, size_t i,
                         size_t j)
{
    const attn_blocks *blocks = &masks->blocks;
    const double size = blocks->size > 0 ? (double)blocks->size : 1;
    const double query = floor(position / size), key = floor((double)j / size), all = ceil((double)kv_len / size);
    const bool is_near = fabs(query - key) <= (double)blocks->window;
    switch (blocks->kind) {
    case ATTN_BLOCKS_NONE:
        return true;
    case ATTN_BLOCKS_MATRIX:
        return naive_read(blocks->attend, b, h, i / blocks->size, j / blocks->kv_size) != 0;
    case ATTN_BLOCKS_STRIDED:
        return is_near || fmod(query - key, (double)blocks->stride) == 0;
    case ATTN_BLOCKS_LONGFORMER:
        return is_near || is_global_token(blocks, position) || is_global_token(blocks, (double)j);
    case ATTN_BLOCKS_BIGBIRD:
        return is_near || is_global_token(blocks, position) || is_global_token(blocks, (double)j) ||
               is_edge(blocks, query, all) || is_edge(blocks, key, all) || is_drawn(blocks, h, query, key, (size_t)all);
    case ATTN_BLOCKS_CHUNKED:
        return query == key;
    case ATTN_BLOCKS_PREFIX:
        return (double)j <= position || (double)j < naive_read(blocks->prefix, 0, 0, 0, b);
    }
    abort();
}

bool naive_allows(const attn_masks *masks, size_t q_len, size_t kv_len, size_t b, size_t h, size_t i, size_t j)
{
    double position = (double)i + naive_offset(masks, q_len, kv_len, b), key = (double)j;
    if (masks->causal && key > position)
        return false;
    if (masks->has_window && !window_allows(masks, position, key))
        return false;
    if (masks->key_lengths != NULL && key >= naive_read(masks->key_lengths, 0, 0, 0, b))
        return false;
    if (masks->query_lengths != NULL && (double)i >= naive_read(masks->query_lengths, 0, 0, 0, b))
        return false;
    if (masks->padding != NULL && naive_read(masks->padding, 0, 0, b, j) == 0)
        return false;
    if (masks->attend != NULL && naive_read(masks->attend, b, h, i, j) == 0)
        return false;
    if (masks->documents_key != NULL &&
        naive_read(masks->documents_query, 0, 0, b, i) != naive_read(masks->documents_key, 0, 0, b, j))
        return false;
    if (!blocks_allow(masks, position, kv_len, b, h, i, j))
        return false;
    return masks->bias == NULL || naive_read(masks->bias, b, h, i, j) > -HUGE_VAL;
}

/* ---- biases ---- */

/* Press's slopes: powers of two have a geometric series, other counts borrow every other one of the next. */
static double alibi_slope(size_t heads, size_t h)
{
    double below = pow(2, floor(log2((double)heads)));
    if ((double)h < below)
        return pow(2, -8 / below * ((double)h + 1));
    return pow(2, -8 / (2 * below) * (2 * ((double)h - below) + 1));
}

/* T5's bucket of a distance (key - query). */
static size_t t5_bucket(const attn_relative_bias *relative, double distance)
{
    double count = (double)relative->table->shape[0], first = 0, away = fmax(-distance, 0);
    if (relative->bidirectional) {
        count = floor(count / 2);
        first = distance > 0 ? count : 0;
        away = fabs(distance);
    }
    double exact = floor(count / 2);
    if (away < exact)
        return (size_t)(first + away);
    /* Slightly rounded up, so that a distance that is exactly a power falls into the bucket that begins there. */
    double grown = log(away / exact) / log((double)relative->max_distance / exact) * (count - exact) + 1e-6;
    return (size_t)(first + fmin(exact + floor(grown), count - 1));
}

double naive_position_bias(const attn_options *options, double distance, size_t heads, size_t h)
{
    double bias = 0;
    if (options->alibi_slopes != NULL)
        bias -= naive_read(options->alibi_slopes, 0, 0, 0, h) * fabs(distance);
    else if (options->alibi)
        bias -= alibi_slope(heads, h) * fabs(distance);
    if (options->relative_bias.table != NULL)
        bias += naive_read(options->relative_bias.table, 0, 0, t5_bucket(&options->relative_bias, distance), h);
    return bias;
}

/* DeBERTa's row of a distance (key - query). */
size_t naive_relative_row(const attn_relative_position *relative, size_t rows, double distance)
{
    const double half = (double)(rows / 2), exact = floor((double)relative->buckets / 2);
    double away = fabs(distance);
    /* Slightly rounded down, so that a distance that is exactly a power falls into the row that ends there. */
    if (relative->buckets > 0 && away > exact)
        away = exact + ceil(log(away / exact) / log(((double)relative->max_distance - 1) / exact) * (exact - 1) - 1e-6);
    return (size_t)(distance <= 0 ? fmin(half + away, 2 * half - 1) : fmax(half - away, 0));
}
