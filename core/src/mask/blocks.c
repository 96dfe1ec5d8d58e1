/* blocks.c: block-sparse masks: which ranges of keys a block of queries may attend to. */
#include "mask/resolved.h"

#include <assert.h>
#include <string.h>

#include "base/parallel.h"
#include "base/size.h"
#include "formulas/formulas.h"

/* ---- checks ---- */

static bool check_number(size_t value, size_t min, size_t max, const char *field, struct attn_check *check)
{
    if (value >= min && value <= max)
        return true;
    return attn_refuse(check, ATTN_ERR_VALUE, field, "~ is %zu, it must be from %zu to %zu", value, min, max);
}

static bool check_global_tokens(const attn_tensor *tokens, size_t kv_len, const attn_runtime *watch,
                                struct attn_check *check)
{
    const char *field = "masks.blocks.global_tokens";
    struct attn_pace pace = attn_pace_begin(watch);
    if (tokens == NULL)
        return true;
    if (tokens->dtype != ATTN_I64)
        return attn_refuse(check, ATTN_ERR_FIELD, field, "global_tokens must be int64, got %s",
                           attn_dtype_name(tokens->dtype));
    if (tokens->rank != 1 || !attn_tensor_is_contiguous(tokens))
        return attn_refuse(check, ATTN_ERR_SHAPE, field, "global_tokens is a flat list of positions");
    const int64_t *token = tokens->data;
    for (size_t n = 0; n < tokens->shape[0]; n++) {
        if (attn_pace_stops(&pace, 1))
            return attn_refuse_stopped(check);
        if (token[n] < 0 || (uint64_t)token[n] >= kv_len)
            return attn_refuse(check, ATTN_ERR_VALUE, field, "global_tokens has %lld; keys are numbered 0 to %zu",
                               (long long)token[n], kv_len == 0 ? 0 : kv_len - 1);
        if (n > 0 && token[n - 1] >= token[n])
            return attn_refuse(check, ATTN_ERR_VALUE, field, "global_tokens must ascend, but %lld comes before %lld",
                               (long long)token[n - 1], (long long)token[n]);
    }
    return true;
}

bool attn_blocks_check(const attn_blocks *blocks, const attn_mask *mask, const attn_runtime *watch,
                       struct attn_check *check)
{
    const attn_blocks_kind kind = blocks->kind;
    const bool has_size = kind != ATTN_BLOCKS_NONE && kind != ATTN_BLOCKS_PREFIX;
    return (!has_size || check_number(blocks->size, 1, ATTN_BLOCK_MAX, "masks.blocks.size", check)) &&
           (kind != ATTN_BLOCKS_MATRIX ||
            check_number(blocks->kv_size, 1, ATTN_BLOCK_MAX, "masks.blocks.kv_size", check)) &&
           check_number(blocks->window, 0, ATTN_BLOCK_MAX, "masks.blocks.window", check) &&
           (kind != ATTN_BLOCKS_STRIDED ||
            check_number(blocks->stride, 1, ATTN_BLOCK_MAX, "masks.blocks.stride", check)) &&
           check_number(blocks->global_blocks, 0, ATTN_BLOCK_MAX, "masks.blocks.global_blocks", check) &&
           check_number(blocks->random_blocks, 0, ATTN_BLOCKS_RANDOM_MAX, "masks.blocks.random_blocks", check) &&
           check_global_tokens(blocks->global_tokens, mask->kv_len, watch, check);
}

/* ---- one query ---- */

/* floor(a / b), b above 0. */
static int64_t floor_divide(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static int64_t prefix_of(const attn_mask *mask, size_t b)
{
    const attn_tensor *prefix = mask->blocks.prefix;
    const bool is_one = prefix->rank == 0 || prefix->shape[0] == 1;
    return ((const int64_t *)prefix->data)[is_one ? 0 : (ptrdiff_t)b * prefix->stride[0]];
}

void attn_blocks_narrow(const attn_mask *mask, size_t b, int64_t p, int64_t *from, int64_t *to)
{
    const int64_t size = (int64_t)mask->blocks.size;
    if (mask->blocks.kind == ATTN_BLOCKS_CHUNKED) {
        const int64_t first = floor_divide(p, size) * size;
        *from = attn_max_i64(*from, first);
        *to = attn_min_i64(*to, first + size);
    } else if (mask->blocks.kind == ATTN_BLOCKS_PREFIX) {
        *to = attn_min_i64(*to, attn_max_i64(p + 1, prefix_of(mask, b)));
    }
}

bool attn_blocks_have_lookup(const attn_mask *mask)
{
    switch (mask->blocks.kind) {
    case ATTN_BLOCKS_NONE:
    case ATTN_BLOCKS_CHUNKED:
    case ATTN_BLOCKS_PREFIX:
        return false;
    case ATTN_BLOCKS_MATRIX:
    case ATTN_BLOCKS_STRIDED:
    case ATTN_BLOCKS_LONGFORMER:
    case ATTN_BLOCKS_BIGBIRD:
        return true;
    }
    return false;
}

static size_t global_token_count(const attn_blocks *blocks)
{
    return blocks->global_tokens == NULL ? 0 : blocks->global_tokens->shape[0];
}

/* How many global tokens stand before position. */
static size_t global_tokens_before(const attn_blocks *blocks, int64_t position)
{
    const size_t count = global_token_count(blocks);
    return count == 0 ? 0 : attn_count_below(blocks->global_tokens->data, 1, count, position);
}

/* The keys that a query attends to: all keys, or some ranges of blocks and single keys besides. */
struct view {
    int64_t block;        /* of the query */
    int64_t from, to;     /* blocks around it */
    int64_t edge, blocks; /* the first edge blocks and the last, of all blocks of keys */
};

static struct view view_of(const attn_mask *mask, int64_t p)
{
    const attn_blocks *blocks = &mask->blocks;
    const int64_t block = floor_divide(p, (int64_t)blocks->size), window = (int64_t)blocks->window;
    const int64_t all = (int64_t)mask->kv_blocks;
    return (struct view){.block = block,
                         .from = attn_min_i64(attn_max_i64(block - window, 0), all),
                         .to = attn_min_i64(attn_max_i64(block + window + 1, 0), all),
                         .edge = attn_min_i64((int64_t)blocks->global_blocks, all),
                         .blocks = all};
}

static bool sees_all(const attn_blocks *blocks, const struct view *view, int64_t p)
{
    /*
     * The position of a query may be before the first key or after the last. Such a query is in no block of keys, and
     * so not in an edge block.
     */
    const bool is_among_keys = view->block >= 0 && view->block < view->blocks;
    if (is_among_keys && (view->block < view->edge || view->block >= view->blocks - view->edge))
        return true;
    return global_tokens_before(blocks, p + 1) > global_tokens_before(blocks, p);
}

/* Blocks outside window and edges form up to two gaps; gap n is [from[n], to[n]). */
struct gaps {
    int64_t from[2], to[2];
};

static struct gaps gaps_of(const struct view *view)
{
    const int64_t low = view->edge, high = attn_max_i64(view->blocks - view->edge, low);
    const int64_t from = attn_min_i64(attn_max_i64(view->from, low), high),
                  to = attn_min_i64(attn_max_i64(view->to, low), high);
    return (struct gaps){.from = {low, to}, .to = {from, high}};
}

/* Robert Floyd's sampling algorithm: t counts up; if the drawn number was drawn before, t takes its place. */
static size_t draw_blocks(const attn_mask *mask, size_t h, const struct view *view, int64_t *drawn)
{
    const struct gaps gaps = gaps_of(view);
    const int64_t first = gaps.to[0] - gaps.from[0], all = first + gaps.to[1] - gaps.from[1];
    const int64_t count = attn_min_i64((int64_t)mask->blocks.random_blocks, all);
    for (int64_t n = 0; n < count; n++) {
        uint32_t word[4];
        const int64_t t = all - count + n;
        attn_philox(mask->blocks.seed, h, (uint64_t)view->block * 256 + (uint64_t)n, word);
        drawn[n] = (int64_t)((uint64_t)word[0] * ((uint64_t)t + 1) >> 32);
        for (int64_t before = 0; before < n; before++)
            if (drawn[before] == drawn[n])
                drawn[n] = t;
    }
    for (int64_t n = 0; n < count; n++)
        drawn[n] += drawn[n] < first ? gaps.from[0] : gaps.from[1] - first;
    return (size_t)count;
}

/* The part of blocks first … end that lies in keys from … to. */
static void allow_blocks(int64_t first, int64_t end, size_t size, size_t from, size_t to, uint8_t *allow)
{
    const int64_t low = attn_max_i64(first * (int64_t)size, (int64_t)from),
                  high = attn_min_i64(end * (int64_t)size, (int64_t)to);
    if (low < high)
        memset(allow + (low - (int64_t)from), 1, (size_t)(high - low));
}

static void allow_global_tokens(const attn_blocks *blocks, size_t from, size_t to, uint8_t *allow)
{
    const size_t end = global_tokens_before(blocks, (int64_t)to);
    for (size_t n = global_tokens_before(blocks, (int64_t)from); n < end; n++)
        allow[((const int64_t *)blocks->global_tokens->data)[n] - (int64_t)from] = 1;
}

/* The first block, from block number from on, whose distance to the query's block is a multiple of the stride. */
static int64_t next_strided(const attn_mask *mask, const struct view *view, int64_t from)
{
    const int64_t stride = (int64_t)mask->blocks.stride, offset = (from - view->block) % stride;
    return offset == 0 ? from : from + (offset < 0 ? -offset : stride - offset);
}

static void matrix_row(const attn_mask *mask, size_t b, size_t h, size_t i, size_t from, size_t to, uint8_t *allow)
{
    const attn_blocks *blocks = &mask->blocks;
    const uint8_t *row = (const uint8_t *)blocks->attend->data + (ptrdiff_t)b * mask->blocks_stride[0] +
                         (ptrdiff_t)h * mask->blocks_stride[1] + (ptrdiff_t)(i / blocks->size) * mask->blocks_stride[2];
    for (size_t key = from; key < to;) {
        const size_t block = key / blocks->kv_size, end = attn_min((block + 1) * blocks->kv_size, to);
        memset(allow + (key - from), row[(ptrdiff_t)block * mask->blocks_stride[3]] != 0, end - key);
        key = end;
    }
}

void attn_blocks_row(const attn_mask *mask, size_t b, size_t h, size_t i, int64_t p, size_t from, size_t to,
                     uint8_t *allow)
{
    const attn_blocks *blocks = &mask->blocks;
    if (blocks->kind == ATTN_BLOCKS_MATRIX) {
        matrix_row(mask, b, h, i, from, to, allow);
        return;
    }
    const struct view view = view_of(mask, p);
    memset(allow, sees_all(blocks, &view, p), to - from);
    allow_blocks(view.from, view.to, blocks->size, from, to, allow);
    allow_blocks(0, view.edge, blocks->size, from, to, allow);
    allow_blocks(view.blocks - view.edge, view.blocks, blocks->size, from, to, allow);
    allow_global_tokens(blocks, from, to, allow);
    if (blocks->kind == ATTN_BLOCKS_STRIDED)
        for (int64_t block = next_strided(mask, &view, (int64_t)(from / blocks->size));
             block * (int64_t)blocks->size < (int64_t)to; block += (int64_t)blocks->stride)
            allow_blocks(block, block + 1, blocks->size, from, to, allow);
    int64_t drawn[ATTN_BLOCKS_RANDOM_MAX];
    const size_t draws = blocks->random_blocks == 0 ? 0 : draw_blocks(mask, h, &view, drawn);
    for (size_t n = 0; n < draws; n++)
        allow_blocks(drawn[n], drawn[n] + 1, blocks->size, from, to, allow);
}

/* ---- tiles and sums ---- */

/* One query represents each block. Queries that see all keys are searched for separately. */
bool attn_blocks_hide_tile(const attn_mask *mask, size_t b, size_t h, size_t i, int64_t p, size_t rows, size_t from,
                           size_t to)
{
    const attn_blocks *blocks = &mask->blocks;
    const bool is_matrix = blocks->kind == ATTN_BLOCKS_MATRIX;
    const int64_t place = is_matrix ? (int64_t)i : p; /* of the first query, in the positions of its blocks */
    enum { KEYS_MAX = 1024 };
    uint8_t allow[KEYS_MAX];
    if (to - from > KEYS_MAX)
        return false;
    if (!is_matrix && global_tokens_before(blocks, p + (int64_t)rows) > global_tokens_before(blocks, p))
        return false;
    for (int64_t row = 0; row < (int64_t)rows;) {
        attn_blocks_row(mask, b, h, i + (size_t)row, p + row, from, to, allow);
        if (memchr(allow, 1, to - from) != NULL)
            return false;
        row = (floor_divide(place + row, (int64_t)blocks->size) + 1) * (int64_t)blocks->size - place;
    }
    return true;
}

double attn_blocks_matrix_pairs(const attn_mask *mask, const attn_runtime *watch)
{
    struct attn_pace pace = attn_pace_begin(watch);
    const attn_blocks *blocks = &mask->blocks;
    const ptrdiff_t *stride = mask->blocks_stride;
    const size_t items = stride[0] == 0 ? 1 : mask->batch, heads = stride[1] == 0 ? 1 : mask->heads;
    double pairs = 0;
    if (mask->batch == 0)
        return 0;
    for (size_t b = 0; b < items; b++)
        for (size_t h = 0; h < heads; h++)
            for (size_t row = 0; row < mask->q_blocks; row++)
                for (size_t column = 0; column < mask->kv_blocks; column++) {
                    if (attn_pace_stops(&pace, 1))
                        return 0;
                    const ptrdiff_t at = (ptrdiff_t)b * stride[0] + (ptrdiff_t)h * stride[1] +
                                         (ptrdiff_t)row * stride[2] + (ptrdiff_t)column * stride[3];
                    if (((const uint8_t *)blocks->attend->data)[at] != 0)
                        pairs += (double)blocks->size * (double)blocks->kv_size;
                }
    assert(items > 0 && heads > 0);
    return pairs * (double)(mask->batch / items) * (double)(mask->heads / heads);
}

/* The pieces of a pattern count as if they never overlapped. */
double attn_blocks_keys(const attn_mask *mask, int64_t p)
{
    const attn_blocks *blocks = &mask->blocks;
    const struct view view = view_of(mask, p);
    if (sees_all(blocks, &view, p))
        return (double)mask->kv_len;
    double seen = (double)(view.to - view.from) + 2 * (double)view.edge + (double)blocks->random_blocks;
    if (blocks->kind == ATTN_BLOCKS_STRIDED)
        seen += (double)(view.blocks / (int64_t)blocks->stride + 1);
    return seen * (double)blocks->size + (double)global_token_count(blocks);
}

/* Measured as in attn_mask_lookup_flops: blocks are written one by one, and a draw is compared with those before it. */
double attn_blocks_row_flops(const attn_mask *mask, double keys)
{
    const attn_blocks *blocks = &mask->blocks;
    const double draws = (double)blocks->random_blocks, globals = (double)global_token_count(blocks);
    if (!attn_blocks_have_lookup(mask))
        return 0;
    if (blocks->kind == ATTN_BLOCKS_MATRIX)
        return 450 * (1 + keys / (double)blocks->kv_size);
    double flops = 1500 * draws + 21 * draws * draws + 50 * (globals < keys ? globals : keys);
    if (blocks->kind == ATTN_BLOCKS_STRIDED)
        flops += 300 * (1 + keys / (double)blocks->size / (double)blocks->stride);
    return flops;
}
