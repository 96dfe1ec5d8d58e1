/*
 * mask.h: which query may attend to which key.
 *
 * Query i of head h in batch item b may attend to key j when every mask that is given says so:
 *
 *     causal          j <= i + offset[b]
 *     window          i + offset[b] - left <= j <= i + offset[b] + right
 *     key_lengths     j < key_lengths[b]
 *     query_lengths   i < query_lengths[b]
 *     padding         padding[b][j] != 0
 *     attend          attend[b][h][i][j] != 0
 *     bias            bias[b][h][i][j] > -infinity; the finite ones are added to the scaled score
 *     scores          scores[b][h][i][j] is not -infinity; only when a request starts with them (plan.h)
 *     documents       documents_query[b][i] == documents_key[b][j]
 *     blocks          see attn_blocks
 *
 * Causal, window, lengths, chunks, prefixes, and documents in ascending order leave each query one contiguous range of
 * keys (a span), which a formula gives. All other masks are looked up pair by pair.
 */
#ifndef ATTN_MASK_H
#define ATTN_MASK_H

#include "attn/runtime.h"
#include "attn/tensor.h"

/* Where query 0 stands: at kv_len - q_len, at 0, or behind the cache, at past_len (which attn_plan_make adds). */
typedef enum { ATTN_ALIGN_BOTTOM_RIGHT, ATTN_ALIGN_TOP_LEFT, ATTN_ALIGN_PAST } attn_align;

#define ATTN_WINDOW_OPEN INT64_MAX

typedef enum {
    ATTN_BLOCKS_NONE,
    ATTN_BLOCKS_MATRIX,
    ATTN_BLOCKS_STRIDED,
    ATTN_BLOCKS_LONGFORMER,
    ATTN_BLOCKS_BIGBIRD,
    ATTN_BLOCKS_CHUNKED,
    ATTN_BLOCKS_PREFIX
} attn_blocks_kind;

/*
 * Block-sparse attention. It takes no memory of size q_len * kv_len, and hidden tiles are skipped.
 *
 * A matrix counts both sides from 0: query i and key j belong to attend[i / q_size][j / kv_size]. The patterns count in
 * positions, like causal: key j stands at j, query i at p = i + offset[b]; with P = floor(p / size), J = floor(j /
 * size)
 *
 *     strided      |P - J| <= window, or P - J a multiple of stride      Child et al., "Sparse Transformers" (2019)
 *     longformer   |P - J| <= window, or p or j among global_tokens      Beltagy et al., "Longformer" (2020)
 *     bigbird      |P - J| <= window, or p or j among global_tokens or in the first or last global_blocks blocks of the
 *                  keys, or J one of random_blocks drawn for the head and P among those that are left
 *                                                                        Zaheer et al., "Big Bird" (2020)
 *     chunked      P == J
 *     prefix       j < prefix[b] or j <= p: causal behind a prefix that all see. Beside masks.causal it changes nothing
 *
 * The draws of bigbird are the same for the same seed, whatever the batch and the threads: draw t of head h and block P
 * is word 0 of Philox4x32-10 (key seed, counter (256 P + t, h)), by Floyd's algorithm for samples without repetition.
 */
typedef struct {
    attn_blocks_kind kind;
    size_t size, kv_size;      /* tokens of a block, 1 to ATTN_BLOCK_MAX; kv_size belongs to the matrix alone */
    const attn_tensor *attend; /* bool or uint8, (q_blocks, kv_blocks) = lengths / sizes rounded up; heads and batch may
                                  stand in front, each whole or 1 */
    size_t window, stride, global_blocks, random_blocks; /* to ATTN_BLOCK_MAX; random to ATTN_BLOCKS_RANDOM_MAX */
    const attn_tensor *global_tokens;                    /* int64, (n), ascending, from 0 to kv_len - 1; NULL: none */
    const attn_tensor *prefix;                           /* int64, (), (1) or (batch), 0 to kv_len */
    uint64_t seed;
} attn_blocks;

/* A bias this low is probably meant to hide its key. But only -infinity hides a key in every row. */
enum { ATTN_BIAS_AS_MASK = -10000 };

enum { ATTN_BLOCK_MAX = 1 << 30, ATTN_BLOCKS_RANDOM_MAX = 64 };

/* The masks as a caller gives them. NULL: the mask is absent. A zero-initialised struct has no masks. */
typedef struct {
    bool causal;
    attn_align align;                 /* base of the offset */
    const attn_tensor *offset;        /* int64, (), (1) or (batch): added to the base; alone, the base is 0 */
    bool align_given;                 /* whether the request names align; if not, an offset counts from 0 */
    const attn_tensor *attend;        /* bool or uint8; broadcast from the right to (batch, heads, q_len, kv_len) */
    const attn_tensor *bias;          /* the compute type, finite or -infinity; broadcast likewise */
    const attn_tensor *padding;       /* bool or uint8, (batch, kv_len); also (kv_len) when batch is 1 */
    const attn_tensor *key_lengths;   /* int64, (batch) */
    const attn_tensor *query_lengths; /* int64, (batch) */
    bool has_window;
    int64_t window_left, window_right; /* inclusive; ATTN_WINDOW_OPEN = no limit */
    const attn_tensor *documents_query,
        *documents_key; /* int64, (q_len), (kv_len) or with batch in front; or neither */
    attn_blocks blocks;
} attn_masks;

/* Masks resolved against the dimensions of one computation: made by attn_mask_resolve, read by everything after. */
typedef struct {
    size_t batch, heads, q_len, kv_len;
    bool causal, has_window;
    int64_t left, right;   /* of the window */
    int64_t base_offset;   /* without offset[] */
    const int64_t *offset; /* per batch item with offset_stride 0 or 1; NULL: base_offset alone */
    size_t offset_stride;
    const int64_t *kv_lengths, *q_lengths; /* NULL: none; the stride is 0 or 1 */
    size_t kv_lengths_stride, q_lengths_stride;
    const uint8_t *padding;
    ptrdiff_t padding_stride[2]; /* b, j */
    const uint8_t *attend;
    ptrdiff_t attend_stride[4]; /* b, h, i, j */
    const void *bias;
    ptrdiff_t bias_stride[4];
    const void *scores; /* inputs.scores, of the compute type, (batch, heads, q_len, kv_len) without gaps; NULL: none */
    size_t bias_as_mask;                                          /* finite numbers of bias up to ATTN_BIAS_AS_MASK */
    double bias_lowest;                                           /* the lowest finite one */
    const int64_t *documents_query, *documents_key;               /* NULL: none */
    ptrdiff_t documents_query_stride[2], documents_key_stride[2]; /* b, position */
    bool documents_are_sorted;                                    /* of the keys: then a document is one range */
    attn_blocks blocks;
    size_t q_blocks, kv_blocks;
    ptrdiff_t blocks_stride[4]; /* of the matrix: b, h, block of queries, block of keys */
} attn_mask;

/* A range of keys [from, to); empty when from == to. */
typedef struct {
    size_t from, to;
} attn_span;

/*
 * Checks every mask against (batch, heads, q_len, kv_len) and the compute type, and resolves broadcasts into strides.
 * The tensors of masks must outlive *mask. Errors name the member ("masks.attend"): ATTN_ERR_SHAPE when it does not
 * broadcast, ATTN_ERR_VALUE when a length is negative or too long, or a bias is NaN or +infinity. watch is asked while
 * many numbers are read whether the work is cancelled; NULL: it is never. Then the status is ATTN_ERR_CANCELLED, or
 * *mask is of no use.
 */
ATTN_MUST_CHECK attn_status attn_mask_resolve(const attn_masks *masks, size_t batch, size_t heads, size_t q_len,
                                              size_t kv_len, attn_dtype compute, const attn_runtime *watch,
                                              attn_mask *mask, attn_error *err);

/* The offset of item b: key j stands at position j, query i at i + offset. */
int64_t attn_mask_offset(const attn_mask *mask, size_t b);
/* Whether the mask depends on positions: causal, window or a pattern of blocks. */
bool attn_mask_has_positions(const attn_mask *mask);
/* The range of keys that query i of item b may attend to. Keys in it may still be hidden by a mask that is looked up. */
attn_span attn_mask_span(const attn_mask *mask, size_t b, size_t i);
/* Whether any mask is looked up besides the span: attend, padding, bias, scores, unsorted documents, or blocks. */
bool attn_mask_has_lookup(const attn_mask *mask);
/*
 * allow[n] = whether query i may attend to key from + n, for from <= key < to; returns whether it may to any. span is
 * the result of attn_mask_span for the query.
 */
bool attn_mask_row(const attn_mask *mask, attn_dtype compute, size_t b, size_t h, size_t i, attn_span span, size_t from,
                   size_t to, uint8_t *allow);
/* True only if none of queries i … i + rows may attend to any of keys from … to; cheaper than asking for each row. */
bool attn_mask_hides_tile(const attn_mask *mask, size_t b, size_t h, size_t i, size_t rows, size_t from, size_t to);
/*
 * An upper bound of the allowed pairs of a query and a key, over batch and heads, from spans and blocks. When watch (NULL:
 * none) says that the work is cancelled, the sum ends early and is of no use.
 */
double attn_mask_pairs(const attn_mask *mask, const attn_runtime *watch);
/*
 * The cost of looking the mask up once for every query, in tiles of 512 keys of its span. The unit is floating-point
 * operations of a large product that takes as long. 0 where nothing is looked up. Drawn blocks and small blocks are
 * expensive: a row of a bigbird with 64 random blocks takes microseconds. watch as in attn_mask_pairs.
 */
double attn_mask_lookup_flops(const attn_mask *mask, const attn_runtime *watch);
/* Whether query i may attend to key j: slow and simple. */
bool attn_mask_allows(const attn_mask *mask, attn_dtype compute, size_t b, size_t h, size_t i, size_t j);

#endif
